package cosmosfake

import (
	"encoding/json"
	"net/http"

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

// listResources answers a feed or a query of resources that are not documents, all on one page.
func (c *call) listResources(rid, name string, all []map[string]any) (*reply, error) {
	results := []any{}
	var query *sql.Query
	if c.method == http.MethodPost {
		var err error
		if query, _, err = parseQuery(c.body); err != nil {
			return nil, err
		}
	}
	for _, one := range all {
		switch {
		case query == nil:
			results = append(results, one)
		case query.Matches(plainRow(one)):
			if v, ok := query.Project(plainRow(one)); ok {
				results = append(results, v)
			}
		}
	}
	return listReply(rid, name, results, 2), nil
}

// plainRow lets a query look at a resource that is not a document.
type plainRow map[string]any

func (r plainRow) Field(name string) (any, bool) { v, ok := r[name]; return v, ok }
func (r plainRow) Value() any                    { return map[string]any(r) }
