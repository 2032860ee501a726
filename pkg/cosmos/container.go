package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// RID reads the resource id (_rid) of a container. Every error says what to do.
func (a *Account) RID(ctx context.Context, c Container) (string, Usage, error) {
	var t tally
	response, err := a.get(context.WithValue(ctx, tallyKey{}, &t), c.path(), resource{"colls", c.link()}, nil)
	if err != nil {
		return "", t.spent(), a.failed(subject{container: c}, &t, err)
	}
	if response.StatusCode != http.StatusOK {
		return "", t.spent(), a.refused(subject{container: c}, response)
	}
	var properties struct {
		RID string `json:"_rid"`
	}
	body, err := runtime.Payload(response)
	if err == nil {
		err = json.Unmarshal(body, &properties)
	}
	if err != nil || properties.RID == "" {
		return "", t.spent(), fmt.Errorf("account %s describes container %s without a _rid: is that endpoint a Cosmos DB account?", a.host, c)
	}
	return properties.RID, t.spent(), nil
}

// maxRangePages bounds the reading of partition key ranges, in case a server never answers 304.
const maxRangePages = 1000

// Ranges reads the partition key ranges of a container. It reads every page of this feed, until a
// 304 or an empty page: while a range splits, the service may deliver it in two revisions. The
// result is never empty without an error.
func (a *Account) Ranges(ctx context.Context, c Container) (changefeed.Ranges, Usage, error) {
	var (
		t         tally
		revisions []changefeed.PartitionKeyRange
		etag      string
	)
	ctx = context.WithValue(ctx, tallyKey{}, &t)
	for range maxRangePages {
		response, err := a.get(ctx, c.path()+"/pkranges", resource{"pkranges", c.link()}, func(h http.Header) {
			h.Set(headerIM, "Incremental Feed")
			h.Set(headerMaxItemCount, "-1")
			if etag != "" {
				h.Set("If-None-Match", etag)
			}
		})
		if err != nil {
			return nil, t.spent(), a.failed(subject{container: c}, &t, err)
		}
		if response.StatusCode == http.StatusNotModified {
			break
		}
		if response.StatusCode != http.StatusOK {
			return nil, t.spent(), a.refused(subject{container: c}, response)
		}
		var page struct {
			Ranges []changefeed.PartitionKeyRange `json:"PartitionKeyRanges"`
		}
		body, err := runtime.Payload(response)
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		if err != nil {
			return nil, t.spent(), fmt.Errorf("the partition key ranges of container %s in account %s cannot be read: %w", c, a.host, err)
		}
		revisions = append(revisions, page.Ranges...)
		next := response.Header.Get(headerETag)
		if len(page.Ranges) == 0 || next == "" || next == etag {
			break
		}
		etag = next
	}
	ranges := changefeed.NewRanges(revisions)
	if len(ranges) == 0 {
		return nil, t.spent(), fmt.Errorf("account %s lists no partition key ranges of container %s", a.host, c)
	}
	return ranges, t.spent(), nil
}
