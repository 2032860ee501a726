package cosmosfake

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/sql"
)

func (c *call) createDatabase() (*reply, error) {
	var input struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(c.body, &input); err != nil {
		return nil, badRequest("The input content is not a JSON object.")
	}
	o, err := c.parseOffer()
	if err != nil {
		return nil, err
	}
	d, err := c.server.addDatabase(input.ID, o)
	if err != nil {
		return nil, err
	}
	return jsonReply(http.StatusCreated, d.document(), 4.95), nil
}

func (c *call) deleteDatabase() (*reply, error) {
	if !c.server.databases.remove(c.database) {
		return nil, notFound()
	}
	return &reply{status: http.StatusNoContent, charge: 4.95}, nil
}

func (c *call) listDatabases() (*reply, error) {
	var all []map[string]any
	for _, d := range c.server.databases.list() {
		all = append(all, d.document())
	}
	return c.listResources("", "Databases", all)
}

// listResources answers with one page of a feed, or of a query, of resources that are not
// documents. Like every feed of the service it keeps to x-ms-max-item-count and goes on at
// x-ms-continuation
// (https://learn.microsoft.com/rest/api/cosmos-db/common-cosmosdb-rest-request-headers); what is in
// that token is the stand-in's own: how many resources came before.
func (c *call) listResources(rid, name string, all []map[string]any) (*reply, error) {
	results := []any{}
	var query *sql.Query
	if c.method == http.MethodPost {
		var err error
		if query, _, err = parseQuery(c.body); err != nil {
			return nil, err
		}
	}
	next := ""
	first, err := c.firstResource(len(all))
	if err != nil {
		return nil, err
	}
	if end := first + c.pageSize(); end < len(all) {
		all, next = all[:end], strconv.Itoa(end)
	}
	for _, one := range all[first:] {
		switch {
		case query == nil:
			results = append(results, one)
		case query.Matches(plainRow(one)):
			if v, ok := query.Project(plainRow(one)); ok {
				results = append(results, v)
			}
		}
	}
	r := listReply(rid, name, results, 2)
	if next != "" {
		r.set("x-ms-continuation", next)
	}
	return r, nil
}

// firstResource reads where a page of so many resources begins.
func (c *call) firstResource(of int) (int, error) {
	token := c.Header.Get("x-ms-continuation")
	if token == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(token)
	if err != nil || n < 0 {
		return 0, badRequest("The continuation token is malformed.")
	}
	return min(n, of), nil // some may have been deleted since
}

// plainRow lets a query look at a resource that is not a document.
type plainRow map[string]any

func (r plainRow) Field(name string) (any, bool) { v, ok := r[name]; return v, ok }
func (r plainRow) Value() any                    { return map[string]any(r) }
