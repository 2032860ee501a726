package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// listPageSize is how many databases or containers a page holds, as far as the service allows.
	listPageSize = 100
	// maxListPages bounds a listing: 2,000 of either are more than an account may have without asking
	// (https://learn.microsoft.com/azure/cosmos-db/concepts-limits), which is 500 of both together.
	maxListPages = 20
	// maxRangePages and maxRanges bound the reading of partition key ranges against a server that never
	// says that it is done.
	maxRangePages = 1000
	maxRanges     = 250_000 // revisions included
)

// Listed is a container of a database.
type Listed struct {
	Container
	PartitionKey []string // paths
}

// Databases lists the databases of the account. Its error, and that of Containers, says what to do.
func (a *Account) Databases(ctx context.Context) (ids []string, used Usage, err error) {
	all, used, err := a.list(ctx, subject{}, "/dbs")
	for _, database := range all {
		ids = append(ids, database.ID)
	}
	return ids, used, err
}

// Containers lists the containers of a database.
func (a *Account) Containers(ctx context.Context, database string) (listed []Listed, used Usage, err error) {
	all, used, err := a.list(ctx, subject{container: Container{Database: database}}, "/dbs/"+url.PathEscape(database)+"/colls")
	for _, c := range all {
		listed = append(listed, Listed{Container{database, c.ID}, c.PartitionKey.Paths})
	}
	return listed, used, err
}

// list reads each page of a feed of databases or containers, as the SDKs do if no query is given
// (azure-cosmos-dotnet-v3, CosmosClient.GetDatabaseQueryIterator;
// https://learn.microsoft.com/rest/api/cosmos-db/list-databases).
func (a *client) list(ctx context.Context, about subject, path string) (all []properties, used Usage, err error) {
	t, continuation := call{about: about}, ""
	for range maxListPages {
		var page struct{ Databases, DocumentCollections []properties }
		answer, err := a.getJSON(ctx, &t, path, func(h http.Header) {
			h.Set(headerMaxItemCount, strconv.Itoa(listPageSize))
			if continuation != "" {
				h.Set(headerContinuation, continuation)
			}
		}, &page)
		if err != nil {
			return nil, t.Usage, err
		}
		all = slices.Concat(all, page.Databases, page.DocumentCollections)
		if continuation = answer.Get(headerContinuation); continuation == "" {
			return all, t.Usage, nil
		}
	}
	return all, t.Usage, fmt.Errorf("account %s: the list has more than %d pages, of which only those were read", a.host, maxListPages)
}

// Ranges reads the partition key ranges of a container: every page until the service has no more to
// say, since it may deliver a range in two revisions while the range splits.
func (a *Account) Ranges(ctx context.Context, c Container) (changefeed.Ranges, Usage, error) {
	var revisions []changefeed.PartitionKeyRange
	t, etag := call{about: subject{container: c}}, ""
	for range maxRangePages {
		var page struct {
			PartitionKeyRanges []changefeed.PartitionKeyRange
		}
		answer, err := a.getJSON(ctx, &t, c.path()+"/pkranges", func(h http.Header) {
			h[headerIM] = incrementalFeed
			h.Set(headerMaxItemCount, "-1")
			if etag != "" {
				h.Set("If-None-Match", etag)
			}
		}, &page)
		if err != nil {
			return nil, t.Usage, err
		}
		revisions = append(revisions, page.PartitionKeyRanges...)
		if last := etag; len(revisions) > maxRanges {
			break
		} else if etag = answer.Get(headerETag); len(page.PartitionKeyRanges) > 0 && etag != "" && etag != last {
			continue
		}
		ranges := changefeed.NewRanges(revisions)
		if len(ranges) == 0 {
			return nil, t.Usage, fmt.Errorf("account %s lists no partition key ranges of container %s", a.host, c)
		}
		return ranges, t.Usage, nil
	}
	return nil, t.Usage, fmt.Errorf("account %s: the list of the partition key ranges of %s has no end", a.host, c)
}
