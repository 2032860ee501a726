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

// ErrMissing says that the lease container, or its database, does not exist:
// no processor has run yet.
var ErrMissing = errors.New("the lease container does not exist")

// maxPrefixes is how many lease id prefixes a query names. Beyond it, reading
// every lease of the container is cheaper than a query of thousands of terms.
const maxPrefixes = 64

// leasePageSize is how many leases a page of the query holds, as far as the
// service allows.
const leasePageSize = 1000

// Leases reads the lease documents whose ids begin with one of the prefixes:
// all pages, projected to changefeed.LeaseFields. With many prefixes it may
// return other leases of the container too. The error is ErrMissing where the
// container does not exist, and says what to do in every other case.
func (a *Account) Leases(ctx context.Context, c Container, prefixes []string) ([]changefeed.LeaseDocument, Usage, error) {
	query, parameters := leaseQuery(prefixes)
	var documents []changefeed.LeaseDocument
	usage, err := a.queryLeases(ctx, c, query, parameters, func(item []byte) {
		lease, err := changefeed.ParseLease(item)
		documents = append(documents, changefeed.LeaseDocument{Lease: lease, Err: err})
	})
	if err != nil {
		return nil, usage, err // some of the leases would pass for all
	}
	return documents, usage, nil
}

// queryLeases hands each result of a query over, of all pages.
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
	ctx = context.WithValue(context.WithValue(ctx, caller{}, ctx), meter{}, &t)
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

// queryPage reads a page of a query, again where the service asks for patience
// and azcosmos has none: it ends the pipeline's retries of a 503 at once.
func queryPage(ctx context.Context, c *azcosmos.ContainerClient, query string, o azcosmos.QueryOptions) (azcosmos.QueryItemsResponse, error) {
	delay := firstDelay
	for try := 0; ; try++ {
		page, err := c.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &o).NextPage(ctx) // a pager that failed once stays so
		if try == retries || !cutShort(err) {
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

// cutShort tells whether an answer is one that the pipeline would retry and that
// azcosmos keeps from it.
func cutShort(err error) bool {
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		return false
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusGone, retryWith:
		return false // the pipeline had its tries
	default:
		return changefeed.OutcomeOf(response.StatusCode, substatus(response.RawResponse)) == changefeed.Transient
	}
}

// missing tells whether it is the container or its database that was not found:
// neither the account, whose description azcosmos asks for first, nor a session
// that a region does not have yet.
func missing(err error) bool {
	var response *azcore.ResponseError
	return errors.As(err, &response) && response.StatusCode == http.StatusNotFound &&
		response.RawResponse.Request.Method == http.MethodPost &&
		changefeed.OutcomeOf(response.StatusCode, substatus(response.RawResponse)) == changefeed.Refused
}

// anyLease finds what stands in the id of every lease, and in no other document's
// that the SDKs keep there.
const anyLease = `CONTAINS(c.id, "..")`

// selectLeases projects the leases that a condition finds.
func selectLeases(where string) string {
	return "SELECT c." + strings.Join(changefeed.LeaseFields, ", c.") + " FROM c WHERE " + where
}

// leaseQuery asks for the leases of every prefix at once, and where there are
// too many prefixes for all leases.
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
