package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// ErrMissing says that the lease container, or its database, does not exist: no processor has run yet.
var ErrMissing = errors.New("the lease container does not exist")

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
// changefeed.LeaseFields. With many prefixes it may return other leases of the container, too. The error
// is ErrMissing if the container does not exist, and says what to do in every other case: a page
// that is not a whole one is an error, since some of the leases would pass for all.
func (a *Account) Leases(ctx context.Context, c Container, prefixes []string) ([]changefeed.LeaseDocument, Usage, error) {
	text, parameters := leaseQuery(prefixes)
	return a.readLeases(ctx, c, text, parameters)
}

// readLeases reads the leases that a query finds.
func (a *Account) readLeases(ctx context.Context, c Container, text string, parameters []azcosmos.QueryParameter) ([]changefeed.LeaseDocument, Usage, error) {
	var documents []changefeed.LeaseDocument
	usage, err := a.queryLeases(ctx, c, text, parameters, func(items [][]byte) {
		documents = slices.Grow(documents, len(items))
		for _, item := range items {
			lease, err := changefeed.ParseLease(item)
			documents = append(documents, changefeed.LeaseDocument{Lease: lease, Err: err})
		}
	})
	if err != nil {
		return nil, usage, err
	}
	return documents, usage, nil
}

// FindLeases reads every lease document of a container, of whichever processor: every page,
// projected to changefeed.LeaseFields. The error is ErrMissing if the container does not exist;
// every other says what to do.
func (a *Account) FindLeases(ctx context.Context, c Container) ([]changefeed.LeaseDocument, Usage, error) {
	return a.readLeases(ctx, c, selectLeases(anyLease), nil)
}

// ProbeLeases reads a page of the leases in a container.
func (a *Account) ProbeLeases(ctx context.Context, c Container) error {
	t := call{about: subject{container: c, leases: true}}
	_, err := a.query(ctx, &t, selectLeases(anyLease), nil, 1, func([][]byte) (more bool) { return false })
	if errors.Is(err, ErrMissing) {
		return a.refusal(t.about, http.StatusNotFound, 0)
	}
	return err
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
	t := call{about: subject{container: c, leases: true}}
	g.Whole, err = a.query(ctx, &t, selectFields, nil, glanceSize, func(items [][]byte) (more bool) {
		for _, item := range items {
			if lease, err := changefeed.ParseLease(item); err == nil && strings.Contains(lease.ID, "..") {
				g.Leases++
			}
		}
		g.Seen += len(items)
		return g.Seen < glanceSize
	})
	return g, t.Usage, err
}

// queryLeases hands over the results of a query, page by page, until there are too many.
func (a *client) queryLeases(ctx context.Context, c Container, text string, parameters []azcosmos.QueryParameter, take func(items [][]byte)) (Usage, error) {
	t := call{about: subject{container: c, leases: true}}
	count, size := 0, 0
	whole, err := a.query(ctx, &t, text, parameters, leasePageSize, func(items [][]byte) (more bool) {
		count += len(items)
		for _, item := range items {
			size += len(item)
		}
		if more = count <= maxLeases && size <= maxLeaseBytes; more {
			take(items)
		}
		return more
	})
	switch {
	case err == nil && (count > maxLeases || size > maxLeaseBytes):
		err = fmt.Errorf("account %s: the leases in %s are more than %d, or have more than %d MiB: put leases of other processors into another container", a.host, c, maxLeases, maxLeaseBytes>>20)
	case err == nil && !whole:
		err = fmt.Errorf("account %s: the query of the leases in %s has no end", a.host, c)
	}
	return t.Usage, err
}

// query hands over the pages of a query until take wants no more. whole reports whether these are all. A
// page of a query over all partitions may be empty before one that is not.
func (a *client) query(ctx context.Context, t *call, text string, parameters []azcosmos.QueryParameter, size int32, take func(items [][]byte) (more bool)) (whole bool, err error) {
	c, err := a.container(t.about.container)
	if err != nil {
		return false, err
	}
	pager := c.NewQueryItemsPager(text, azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{QueryParameters: parameters, PageSizeHint: size})
	for range maxLeasePages {
		page, err := pager.NextPage(t.in(ctx))
		if refused, ok := errors.AsType[answerError](err); ok && a.refused(t.about, refused.response).Kind == Missing {
			return false, ErrMissing
		}
		if err != nil {
			return false, a.failed(t, err)
		}
		if more := take(page.Items); !more || !pager.More() {
			return !pager.More(), nil
		}
	}
	return false, nil
}

// anyLease finds what stands in the id of every lease, and in no other document's that the SDKs keep
// there.
const anyLease = `CONTAINS(c.id, "..")`

// selectFields projects every document to what a lease has.
var selectFields = "SELECT c." + strings.Join(changefeed.LeaseFields, ", c.") + " FROM c"

// selectLeases projects the leases that a condition finds.
func selectLeases(where string) string { return selectFields + " WHERE " + where }

// leaseQuery asks for the leases of every prefix at once, and where there are too many prefixes for all
// leases.
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
