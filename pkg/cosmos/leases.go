package cosmos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// ErrMissing is what errors.Is finds in the error of a container that does not exist, or whose database does
// not. If that is a lease container, no processor has run yet. The error of a container that has no throughput
// of its own wraps it, too.
var ErrMissing = errors.New("the container does not exist")

const (
	// maxPrefixes is how many lease id prefixes a query names. Beyond it, reading every lease of the
	// container is cheaper than a query of thousands of terms (docs/decisions/0002).
	maxPrefixes = 64
	// leasePageSize is how many leases a page of the query holds, as far as the service allows.
	leasePageSize = 1000
	// maxLeasePages bounds a query against a server that never says that it is done.
	maxLeasePages = 10_000
	// maxLeases and maxLeaseBytes bound what all pages of a query have.
	maxLeases     = 250_000
	maxLeaseBytes = 256 << 20
)

// Leases reads the lease documents whose ids begin with one of the prefixes: all pages, projected to
// changefeed.LeaseFields. With many prefixes, or none, it returns every lease of the container. The error is
// ErrMissing if the container does not exist, and says what to do: a page that is not a whole one is an error,
// since some of the leases would pass for all.
func (a *Account) Leases(ctx context.Context, c Container, prefixes []string) (documents []changefeed.LeaseDocument, used Usage, err error) {
	t := call{about: Subject{Container: c, Leases: true}}
	text, parameters := leaseQuery(prefixes)
	size := 0
	whole, err := a.query(ctx, &t, text, parameters, leasePageSize, func(items []gjson.Result) (more bool) {
		documents = slices.Grow(documents, len(items))
		for _, item := range items {
			size += len(item.Raw)
			lease, err := changefeed.ParseLease([]byte(item.Raw))
			documents = append(documents, changefeed.LeaseDocument{Lease: lease, Err: err})
		}
		return len(documents) <= maxLeases && size <= maxLeaseBytes
	})
	if err == nil && !whole {
		err = fmt.Errorf("account %s: the leases in %s are more than %d, or have more than %d MiB: put leases of other processors into another container", a.host, c, maxLeases, maxLeaseBytes>>20)
	}
	if err != nil {
		documents = nil
	}
	return documents, t.Usage, err
}

const glanceSize = 50 // documents

// Glance is what the first documents of a container look like.
type Glance struct {
	Seen   int  // documents that were looked at, up to some 50
	Leases int  // of them, leases by their id and their properties
	Whole  bool // these are all there are
}

// Glance looks at the first documents of a container, whatever they are: a container of many documents is
// never searched. The error is ErrMissing if the container does not exist.
func (a *Account) Glance(ctx context.Context, c Container) (g Glance, used Usage, err error) {
	t := call{about: Subject{Container: c, Leases: true}}
	g.Whole, err = a.query(ctx, &t, selectFields, nil, glanceSize, func(items []gjson.Result) (more bool) {
		for _, item := range items {
			if lease, err := changefeed.ParseLease([]byte(item.Raw)); err == nil && strings.Contains(lease.ID, "..") {
				g.Leases++
			}
		}
		g.Seen += len(items)
		return g.Seen < glanceSize
	})
	return g, t.Usage, err
}

// query hands over the pages of a query until take wants no more. whole reports whether these are all. A
// page of a query over all partitions may be empty before one that is not.
func (a *Account) query(ctx context.Context, t *call, text string, parameters []azcosmos.QueryParameter, size int32, take func(items []gjson.Result) (more bool)) (whole bool, err error) {
	c, err := a.sdk.NewContainer(t.about.Container.Database, t.about.Container.ID)
	if err != nil {
		return false, err
	}
	pager := c.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{QueryParameters: parameters, PageSizeHint: size})
	for range maxLeasePages {
		if _, err := pager.NextPage(t.in(ctx)); err != nil {
			return false, a.failed(t, err)
		}
		if more := take(t.items); !more || !pager.More() {
			return !pager.More(), nil
		}
	}
	return false, nil
}

// selectFields projects every document to what a lease has.
var selectFields = "SELECT c." + strings.Join(changefeed.LeaseFields, ", c.") + " FROM c"

// leaseQuery asks for the leases of every prefix at once, and with too many prefixes, or none, for all leases:
// their ids alone have two dots, of the documents that the SDKs keep there.
func leaseQuery(prefixes []string) (text string, parameters []azcosmos.QueryParameter) {
	if len(prefixes) == 0 || len(prefixes) > maxPrefixes {
		return selectFields + ` WHERE CONTAINS(c.id, "..")`, nil
	}
	terms := make([]string, len(prefixes))
	for i, prefix := range prefixes {
		name := fmt.Sprintf("@p%d", i)
		terms[i] = "STARTSWITH(c.id, " + name + ")"
		parameters = append(parameters, azcosmos.QueryParameter{Name: name, Value: prefix})
	}
	return selectFields + " WHERE " + strings.Join(terms, " OR "), parameters
}
