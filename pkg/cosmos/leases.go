package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

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
	return documents, usage, err
}

// queryLeases hands each result of a query over, of all pages.
func (a *Account) queryLeases(ctx context.Context, c Container, query string, parameters []azcosmos.QueryParameter, take func(item []byte)) (Usage, error) {
	var t tally
	about := subject{"the leases in", c}
	client, err := a.client()
	if err != nil {
		return t.Usage, err
	}
	container, err := client.NewContainer(c.Database, c.ID)
	if err != nil {
		return t.Usage, fmt.Errorf("reading %s: %w", about, err)
	}
	pager := container.NewQueryItemsPager(query, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{
		QueryParameters: parameters,
		PageSizeHint:    leasePageSize,
	})
	ctx = context.WithValue(ctx, meter{}, &t)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			var response *azcore.ResponseError
			if errors.As(err, &response) && response.StatusCode == http.StatusNotFound {
				return t.Usage, ErrMissing
			}
			a.forget(client)
			return t.Usage, a.failed(about, t, err)
		}
		for _, item := range page.Items {
			take(item)
		}
	}
	return t.Usage, nil
}

// leaseQuery asks for the leases of every prefix at once. ".." stands in the
// id of every lease, and in no other document's that the SDKs keep there.
func leaseQuery(prefixes []string) (string, []azcosmos.QueryParameter) {
	var q strings.Builder
	q.WriteString("SELECT ")
	for i, field := range changefeed.LeaseFields {
		if i > 0 {
			q.WriteString(", ")
		}
		q.WriteString("c." + field)
	}
	q.WriteString(" FROM c WHERE ")
	if len(prefixes) > maxPrefixes {
		q.WriteString(`CONTAINS(c.id, "..")`)
		return q.String(), nil
	}
	parameters := make([]azcosmos.QueryParameter, len(prefixes))
	for i, prefix := range prefixes {
		if i > 0 {
			q.WriteString(" OR ")
		}
		name := fmt.Sprintf("@p%d", i)
		q.WriteString("STARTSWITH(c.id, " + name + ")")
		parameters[i] = azcosmos.QueryParameter{Name: name, Value: prefix}
	}
	return q.String(), parameters
}
