package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// listPageSize is how many databases or containers a page holds, as far as the service allows.
	listPageSize = 100
	// maxListPages bounds a listing: 2,000 of either are more than an account may have without asking
	// (https://learn.microsoft.com/azure/cosmos-db/concepts-limits), which is 500 of both together.
	maxListPages = 20
)

// Listed is a container of a database.
type Listed struct {
	Container
	PartitionKey []string // paths
}

// Databases lists the databases of the account. Its error, and that of Containers, says what to do.
func (a *Account) Databases(ctx context.Context) ([]string, Usage, error) {
	var ids []string
	usage, err := a.list(ctx, subject{}, "/dbs", resource{"dbs", ""}, "Databases", func(item []byte) error {
		var database struct {
			ID string `json:"id"`
		}
		err := json.Unmarshal(item, &database)
		ids = append(ids, database.ID)
		return err
	})
	return ids, usage, err
}

// Containers lists the containers of a database.
func (a *Account) Containers(ctx context.Context, database string) ([]Listed, Usage, error) {
	var all []Listed
	about := subject{container: Container{Database: database}}
	usage, err := a.list(ctx, about, "/dbs/"+url.PathEscape(database)+"/colls", resource{"colls", "dbs/" + database}, "DocumentCollections", func(item []byte) error {
		var container struct {
			ID           string `json:"id"`
			PartitionKey struct {
				Paths []string `json:"paths"`
			} `json:"partitionKey"`
		}
		err := json.Unmarshal(item, &container)
		all = append(all, Listed{Container{database, container.ID}, container.PartitionKey.Paths})
		return err
	})
	return all, usage, err
}

// list hands over each item of a feed of databases or containers, which the SDKs read where no query is
// given (azure-cosmos-dotnet-v3, CosmosClient.GetDatabaseQueryIterator;
// https://learn.microsoft.com/rest/api/cosmos-db/list-databases).
func (a *Account) list(ctx context.Context, about subject, path string, signed resource, name string, take func(item []byte) error) (Usage, error) {
	var t tally
	continuation := ""
	for range maxListPages {
		err := a.do(ctx, &t, request{
			about: about, method: http.MethodGet, path: path, signed: signed,
			headers: func(h http.Header) {
				h.Set(headerMaxItemCount, strconv.Itoa(listPageSize))
				if continuation != "" {
					h.Set(headerContinuation, continuation)
				}
			},
		}, func(response *http.Response) error {
			if response.StatusCode != http.StatusOK {
				return a.refused(about, response)
			}
			body, err := runtime.Payload(response)
			if err == nil {
				err = takeList(body, name, take)
			}
			if err != nil {
				return fmt.Errorf("account %s: the answer to %s is no whole page of them: %w", a.host, about.reading(), err)
			}
			continuation = response.Header.Get(headerContinuation)
			return nil
		})
		if err != nil || continuation == "" {
			return t.spent(), err
		}
	}
	return t.spent(), fmt.Errorf("account %s: the list has more than %d pages, of which only those were read", a.host, maxListPages)
}

func takeList(body []byte, name string, take func(item []byte) error) error {
	var page map[string]json.RawMessage
	if err := json.Unmarshal(body, &page); err != nil {
		return err
	}
	var items []json.RawMessage
	if page[name] == nil {
		return errors.New("it has no " + name)
	}
	if err := json.Unmarshal(page[name], &items); err != nil {
		return err
	}
	for _, item := range items {
		if err := take(item); err != nil {
			return err
		}
	}
	return nil
}

const (
	glanceSize  = 50 // documents
	glancePages = 20 // some may be empty, one for each partition
)

// Glance is what the first documents of a container look like.
type Glance struct {
	Seen   int  // documents that were looked at, up to some 50
	Leases int  // of them, leases by their id and their properties
	Whole  bool // these are all there are
}

// Glance looks at the first documents of a container, whatever they are: a container of many documents is
// never searched. The error is ErrMissing where the container does not exist.
func (a *Account) Glance(ctx context.Context, c Container) (Glance, Usage, error) {
	var (
		t tally
		g Glance
	)
	from := ""
	for range glancePages {
		next, err := a.queryPage(ctx, &t, c, selectFields, []parameter{}, glanceSize, from, func(item []byte) {
			g.Seen++
			if lease := changefeed.ParseFoundLease(item); lease.Err == nil && strings.Contains(lease.ID, "..") {
				g.Leases++
			}
		})
		if err != nil {
			return g, t.spent(), err
		}
		if g.Whole = next == ""; g.Whole || g.Seen >= glanceSize {
			return g, t.spent(), nil
		}
		from = next
	}
	return g, t.spent(), nil
}
