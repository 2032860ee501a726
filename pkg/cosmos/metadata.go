package cosmos

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

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

// Description is what is needed of the properties of a container or a database. azcosmos' own type lacks the
// changeFeedPolicy.
type Description struct {
	ID           string `json:"id"`
	RID          string `json:"_rid"`
	DefaultTTL   int64  `json:"defaultTtl"` // seconds; -1 = as each document says
	PartitionKey struct {
		Paths []string `json:"paths"`
	} `json:"partitionKey"`
	ChangeFeed struct {
		Retention int64 `json:"retentionDuration"` // minutes
	} `json:"changeFeedPolicy"`
}

// TTL returns how long documents stay; 0 = for ever, or as each document says.
func (d Description) TTL() time.Duration { return time.Duration(max(0, d.DefaultTTL)) * time.Second }

// Retention returns that of the feed of all versions and deletes; 0 = it is not offered.
func (d Description) Retention() time.Duration {
	return time.Duration(max(0, d.ChangeFeed.Retention)) * time.Minute
}

// read reads the properties of a container, or of a database if the container has no ID.
func (a *Account) read(ctx context.Context, t *call) (d Description, err error) {
	of := t.about.Container
	database, err := a.sdk.NewDatabase(of.Database)
	if err != nil {
		return d, err
	}
	// policy.WithCaptureResponse would put the answer into the context, which azcosmos also uses for requests in
	// the background.
	var answer *http.Response
	if of.ID == "" {
		response, failed := database.Read(t.in(ctx), nil)
		answer, err = response.RawResponse, failed
	} else {
		container, _ := database.NewContainer(of.ID) // it fails without an ID alone
		response, failed := container.Read(t.in(ctx), nil)
		answer, err = response.RawResponse, failed
	}
	if err == nil {
		err = runtime.UnmarshalAsJSON(answer, &d)
	}
	return d, a.failed(t, err)
}

// Describe reads the properties of a container. The error is ErrMissing if it does not exist.
func (a *Account) Describe(ctx context.Context, c Container) (Description, Usage, error) {
	t := call{about: Subject{Container: c}}
	d, err := a.read(ctx, &t)
	return d, t.Usage, err
}

// NamesOf returns the names of a database and a container by their RIDs, which lease ids hold. The error is
// ErrMissing if the account has no such container: it was deleted, or it is in another account.
func (a *Account) NamesOf(ctx context.Context, databaseRID, containerRID string) (Container, Usage, error) {
	t := call{about: Subject{Container: Container{databaseRID, containerRID}}, byRID: true}
	container, err := a.read(ctx, &t)
	if err != nil {
		return Container{}, t.Usage, err
	}
	t.about.Container.ID = ""
	database, err := a.read(ctx, &t)
	return Container{database.ID, container.ID}, t.Usage, err
}

// Databases lists the databases of the account. Its error, and that of Containers, says what to do.
func (a *Account) Databases(ctx context.Context) ([]Description, Usage, error) {
	return a.list(ctx, "", "/dbs")
}

// Containers lists the containers of a database.
func (a *Account) Containers(ctx context.Context, database string) ([]Description, Usage, error) {
	return a.list(ctx, database, "/dbs/"+url.PathEscape(database)+"/colls")
}

// list reads each page of a feed of databases or containers, as the SDKs do if no query is given
// (azure-cosmos-dotnet-v3, CosmosClient.GetDatabaseQueryIterator;
// https://learn.microsoft.com/rest/api/cosmos-db/list-databases).
func (a *Account) list(ctx context.Context, database, path string) (all []Description, used Usage, err error) {
	t := call{about: Subject{Container: Container{Database: database}}}
	h := http.Header{"X-Ms-Max-Item-Count": {strconv.Itoa(listPageSize)}}
	for range maxListPages {
		var page struct{ Databases, DocumentCollections []Description }
		answer, err := a.getJSON(ctx, &t, path, maps.Clone(h), &page)
		if err != nil {
			return nil, t.Usage, err
		}
		all = slices.Concat(all, page.Databases, page.DocumentCollections)
		if h.Set("X-Ms-Continuation", answer.Get("X-Ms-Continuation")); h.Get("X-Ms-Continuation") == "" {
			return all, t.Usage, nil
		}
	}
	return all, t.Usage, fmt.Errorf("account %s: the list has more than %d pages, of which only those were read", a.host, maxListPages)
}

// Ranges reads the partition key ranges of a container: every page until the service has no more to
// say, since it may deliver a range in two revisions while the range splits.
func (a *Account) Ranges(ctx context.Context, c Container) (changefeed.Ranges, Usage, error) {
	var revisions []changefeed.PartitionKeyRange
	t, h := call{about: Subject{Container: c}}, http.Header{"A-Im": {"Incremental Feed"}, "X-Ms-Max-Item-Count": {"-1"}}
	for range maxRangePages {
		var page struct {
			PartitionKeyRanges []changefeed.PartitionKeyRange
		}
		answer, err := a.getJSON(ctx, &t, c.path()+"/pkranges", maps.Clone(h), &page)
		if err != nil {
			return nil, t.Usage, err
		}
		if revisions = append(revisions, page.PartitionKeyRanges...); len(revisions) > maxRanges {
			break
		}
		if etag := answer.Get("Etag"); len(page.PartitionKeyRanges) > 0 && etag != "" && etag != h.Get("If-None-Match") {
			h.Set("If-None-Match", etag)
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

// ProbeAccount reads the account's description, which the SDKs read before anything else. If the account is not in
// the Region of its Options, missing says so, and where it is.
func (a *Account) ProbeAccount(ctx context.Context) (missing string, err error) {
	_, err = a.getJSON(ctx, &call{}, "/", http.Header{}, &struct{}{})
	a.router.mu.Lock()
	defer a.router.mu.Unlock()
	return a.router.missing, err
}
