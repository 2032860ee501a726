package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

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
// changefeed.LeaseFields. With many prefixes it may return other leases of the container too. The error
// is ErrMissing where the container does not exist, and says what to do in every other case: a page
// that is not a whole one is an error, since some of the leases would pass for all.
func (a *Account) Leases(ctx context.Context, c Container, prefixes []string) ([]changefeed.LeaseDocument, Usage, error) {
	text, parameters := leaseQuery(prefixes)
	var documents []changefeed.LeaseDocument
	usage, err := a.query(ctx, c, text, parameters, func(item []byte) {
		lease, err := changefeed.ParseLease(item)
		documents = append(documents, changefeed.LeaseDocument{Lease: lease, Err: err})
	})
	if err != nil {
		return nil, usage, err
	}
	return documents, usage, nil
}

// query hands each result of a query over, of all pages.
func (a *Account) query(ctx context.Context, c Container, text string, parameters []parameter, take func(item []byte)) (Usage, error) {
	var t tally
	continuation, items, size := "", 0, 0
	for range maxLeasePages {
		next, err := a.queryPage(ctx, &t, c, text, parameters, leasePageSize, continuation, func(item []byte) {
			items++
			size += len(item)
			if items <= maxLeases && size <= maxLeaseBytes {
				take(item)
			}
		})
		switch {
		case err == nil && (items > maxLeases || size > maxLeaseBytes):
			return t.spent(), fmt.Errorf("account %s: the leases in %s are more than %d, or have more than %d MiB: put leases of other processors into another container", a.host, c, maxLeases, maxLeaseBytes>>20)
		case err != nil || next == "":
			return t.spent(), err
		}
		continuation = next
	}
	return t.spent(), fmt.Errorf("account %s: the query of the leases in %s has no end", a.host, c)
}

// queryPage hands each result of a page over, and returns where the next page begins; "" where there is
// none. The page of a query over all partitions may be empty before one that is not.
func (a *Account) queryPage(ctx context.Context, t *tally, c Container, text string, parameters []parameter, size int, from string, take func(item []byte)) (next string, err error) {
	about := subject{container: c, leases: true}
	body, err := json.Marshal(query{text, parameters})
	if err != nil {
		return "", err
	}
	err = a.do(ctx, t, request{
		class: lookup, about: about, method: http.MethodPost, path: c.path() + "/docs", signed: resource{"docs", c.link()}, body: body,
		headers: func(h http.Header) {
			h.Set(headerIsQuery, "True")
			h.Set(headerCrossQuery, "True")
			h.Set(headerMaxItemCount, strconv.Itoa(size))
			if from != "" {
				h.Set(headerContinuation, from)
			}
		},
	}, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			if refusal := a.refused(about, response); refusal.Kind != Missing {
				return refusal
			}
			return ErrMissing
		}
		body, err := runtime.Payload(response)
		if err == nil {
			err = changefeed.EachDocument(body, take)
		}
		if err != nil {
			return fmt.Errorf("account %s: the answer about %s is no whole page of leases: %w: the next poll asks again", a.host, c, err)
		}
		next = response.Header.Get(headerContinuation)
		return nil
	})
	return next, err
}

// anyLease finds what stands in the id of every lease, and in no other document's that the SDKs keep
// there.
const anyLease = `CONTAINS(c.id, "..")`

// selectFields projects every document to what a lease has.
var selectFields = "SELECT c." + strings.Join(changefeed.LeaseFields, ", c.") + " FROM c"

// selectLeases projects the leases that a condition finds.
func selectLeases(where string) string { return selectFields + " WHERE " + where }

// query is the body of one.
type query struct {
	Text       string      `json:"query"`
	Parameters []parameter `json:"parameters"`
}

// parameter is a parameter of a query.
type parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// leaseQuery asks for the leases of every prefix at once, and where there are too many prefixes for all
// leases.
func leaseQuery(prefixes []string) (string, []parameter) {
	if len(prefixes) > maxPrefixes {
		return selectLeases(anyLease), []parameter{}
	}
	terms := make([]string, len(prefixes))
	parameters := make([]parameter, len(prefixes))
	for i, prefix := range prefixes {
		name := fmt.Sprintf("@p%d", i)
		terms[i] = "STARTSWITH(c.id, " + name + ")"
		parameters[i] = parameter{Name: name, Value: prefix}
	}
	return selectLeases(strings.Join(terms, " OR ")), parameters
}
