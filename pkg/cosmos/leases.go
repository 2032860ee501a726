package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// ErrMissing is returned where the lease container, or its database, does not exist, so that no
// processor can have run yet.
var ErrMissing = errors.New("the lease container does not exist")

// maxPrefixes is the number of lease id prefixes up to which a query names each. With more, reading
// every lease of the container is cheaper than a query of thousands of terms
// (docs/decisions/0002-one-lease-query.md).
const maxPrefixes = 64

// leasePageSize is the number of leases asked for per page. The service may return fewer.
const leasePageSize = 1000

// Leases reads the lease documents whose ids begin with one of the prefixes: every page, projected
// to changefeed.LeaseFields. With more than 64 prefixes it returns all leases of the container, so
// the caller selects (changefeed.Select). A document that is no lease has its own Err. The error is
// ErrMissing where the container does not exist; every other says what to do. No leases come with
// an error, since some would be taken for all.
func (a *Account) Leases(ctx context.Context, c Container, prefixes []string) ([]changefeed.LeaseDocument, Usage, error) {
	query, parameters := leaseQuery(prefixes)
	var documents []changefeed.LeaseDocument
	usage, err := a.queryLeases(ctx, c, query, parameters, func(item []byte) {
		lease, err := changefeed.ParseLease(item)
		documents = append(documents, changefeed.LeaseDocument{Lease: lease, Err: err})
	})
	if err != nil {
		return nil, usage, err // some of the leases would be taken for all
	}
	return documents, usage, nil
}

// queryLeases calls take for each result of a query, over all its pages.
func (a *Account) queryLeases(ctx context.Context, c Container, query string, parameters []azcosmos.QueryParameter, take func(item []byte)) (Usage, error) {
	var t tally
	about := subject{c, true}
	client, err := a.client()
	if err != nil {
		return t.spent(), err
	}
	container, err := client.NewContainer(c.Database, c.ID)
	if err != nil {
		return t.spent(), fmt.Errorf("account %s: to %s: %w", a.host, about.reading(), err)
	}
	options := azcosmos.QueryOptions{QueryParameters: parameters, PageSizeHint: leasePageSize}
	ctx = context.WithValue(context.WithValue(ctx, callKey{}, ctx), tallyKey{}, &t)
	for more := true; more; more = options.ContinuationToken != nil {
		page, err := queryPage(ctx, container, query, options)
		if err != nil {
			if missing(err) {
				return t.spent(), ErrMissing
			}
			a.forget(client)
			return t.spent(), a.failed(about, &t, err)
		}
		for _, item := range page.Items {
			take(item)
		}
		options.ContinuationToken = page.ContinuationToken
	}
	return t.spent(), nil
}

// queryPage reads a page of a query. It retries by itself where azcosmos does not let the pipeline
// retry: azcosmos marks a 503, among others, as not to be retried.
func queryPage(ctx context.Context, c *azcosmos.ContainerClient, query string, o azcosmos.QueryOptions) (azcosmos.QueryItemsResponse, error) {
	delay := firstRetryDelay
	for try := 0; ; try++ {
		page, err := c.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &o).NextPage(ctx) // a pager that failed once cannot be used again
		if try == retries || !unretried(err) {
			return page, err
		}
		select {
		case <-time.After(delay):
			delay *= 2
		case <-ctx.Done():
			return page, err
		}
	}
}

// unretried reports whether an answer is to be retried and the pipeline did not do so, since
// azcosmos prevented it.
func unretried(err error) bool {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return false
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusGone, statusRetryWith:
		return false // the pipeline has retried these
	default:
		return changefeed.OutcomeOf(response.StatusCode, substatus(response.RawResponse)) == changefeed.Transient
	}
}

// missing reports whether the container or its database does not exist. Two other 404s do not say
// that: the one of the account's description, which azcosmos reads first (a GET), and 404/1002, a
// session that this region does not have yet.
func missing(err error) bool {
	var response *azcore.ResponseError
	return errors.As(err, &response) && response.StatusCode == http.StatusNotFound &&
		response.RawResponse.Request.Method == http.MethodPost &&
		changefeed.OutcomeOf(response.StatusCode, substatus(response.RawResponse)) == changefeed.Refused
}

// anyLease is a condition that the id of every lease meets, and that of no other document that the
// SDKs keep in a lease container (".info" and ".lock").
const anyLease = `CONTAINS(c.id, "..")`

// selectLeases returns the query for the leases that meet a condition, projected to
// changefeed.LeaseFields.
func selectLeases(where string) string {
	return "SELECT c." + strings.Join(changefeed.LeaseFields, ", c.") + " FROM c WHERE " + where
}

// leaseQuery returns one query for the leases of every prefix, or for all leases where there are
// more than maxPrefixes.
func leaseQuery(prefixes []string) (string, []azcosmos.QueryParameter) {
	if len(prefixes) > maxPrefixes {
		return selectLeases(anyLease), nil
	}
	terms := make([]string, len(prefixes))
	parameters := make([]azcosmos.QueryParameter, len(prefixes))
	for i, prefix := range prefixes {
		name := fmt.Sprintf("@p%d", i)
		terms[i] = "STARTSWITH(c.id, " + name + ")"
		parameters[i] = azcosmos.QueryParameter{Name: name, Value: prefix}
	}
	return selectLeases(strings.Join(terms, " OR ")), parameters
}
