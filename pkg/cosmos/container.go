package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Description is what is needed of a container's properties.
type Description struct {
	RID          string
	PartitionKey []string      // paths
	TTL          time.Duration // defaultTtl: documents are gone after it; 0 = never, or as each document says
	Retention    time.Duration // of the feed of all versions and deletes; 0 = it is not offered
}

// Describe reads the properties of a container.
func (a *Account) Describe(ctx context.Context, c Container) (Description, Usage, error) {
	var (
		t tally
		d Description
	)
	about := subject{container: c}
	err := a.do(ctx, &t, request{about: about, method: http.MethodGet, path: c.path(), signed: resource{"colls", c.link()}}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return a.refused(about, response)
		}
		var properties struct {
			RID          string `json:"_rid"`
			DefaultTTL   int64  `json:"defaultTtl"` // seconds; -1 = as each document says
			PartitionKey struct {
				Paths []string `json:"paths"`
			} `json:"partitionKey"`
			ChangeFeed struct {
				Retention int64 `json:"retentionDuration"` // minutes
			} `json:"changeFeedPolicy"`
		}
		body, err := runtime.Payload(response)
		if err == nil {
			err = json.Unmarshal(body, &properties)
		}
		if err != nil || properties.RID == "" {
			return fmt.Errorf("account %s describes container %s without a _rid: is that endpoint a Cosmos DB account?", a.host, c)
		}
		d = Description{RID: properties.RID, PartitionKey: properties.PartitionKey.Paths}
		d.TTL = time.Duration(max(0, properties.DefaultTTL)) * time.Second
		d.Retention = time.Duration(max(0, properties.ChangeFeed.Retention)) * time.Minute
		return nil
	})
	return d, t.spent(), err
}

// maxRangePages and maxRanges bound the reading of partition key ranges against a server that never says
// that it is done.
const (
	maxRangePages = 1000
	maxRanges     = 250_000 // revisions included
)

// Ranges reads the partition key ranges of a container: every page until the service has no more to
// say, since it may deliver a range in two revisions while the range splits.
func (a *Account) Ranges(ctx context.Context, c Container) (changefeed.Ranges, Usage, error) {
	var (
		t         tally
		revisions []changefeed.PartitionKeyRange
		etag      string
	)
	about := subject{container: c}
	for more, pages := true, 0; more; pages++ {
		if pages == maxRangePages || len(revisions) > maxRanges {
			return nil, t.spent(), fmt.Errorf("account %s: the list of the partition key ranges of %s has no end", a.host, c)
		}
		err := a.do(ctx, &t, request{
			about: about, method: http.MethodGet, path: c.path() + "/pkranges", signed: resource{"pkranges", c.link()},
			headers: func(h http.Header) {
				h.Set(headerIM, "Incremental Feed")
				h.Set(headerMaxItemCount, "-1")
				if etag != "" {
					h.Set("If-None-Match", etag)
				}
			},
		}, func(response *http.Response) error {
			switch response.StatusCode {
			case http.StatusNotModified:
				more = false
				return nil
			case http.StatusOK:
			default:
				return a.refused(about, response)
			}
			var page struct {
				Ranges *[]changefeed.PartitionKeyRange `json:"PartitionKeyRanges"`
			}
			body, err := runtime.Payload(response)
			if err == nil {
				err = json.Unmarshal(body, &page)
			}
			if err == nil && page.Ranges == nil {
				err = errors.New("it has no PartitionKeyRanges")
			}
			if err != nil {
				return fmt.Errorf("account %s: the answer about %s is no whole page of partition key ranges: %w: the next poll asks again", a.host, c, err)
			}
			revisions = append(revisions, *page.Ranges...)
			next := response.Header.Get(headerETag)
			more = len(*page.Ranges) > 0 && next != "" && next != etag
			etag = next
			return nil
		})
		if err != nil {
			return nil, t.spent(), err
		}
	}
	ranges := changefeed.NewRanges(revisions)
	if len(ranges) == 0 {
		return nil, t.spent(), fmt.Errorf("account %s lists no partition key ranges of container %s", a.host, c)
	}
	return ranges, t.spent(), nil
}
