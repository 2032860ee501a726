package cosmosfake

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/sql"
)

// orderKey is one value of ORDER BY. Its JSON form is the value, and [] for undefined, as a resume
// filter has it.
type orderKey struct{ value any }

func (k orderKey) MarshalJSON() ([]byte, error) {
	if _, undefined := k.value.(sql.Undefined); undefined {
		return []byte("[]"), nil
	}
	return json.Marshal(k.value)
}

func (k *orderKey) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&k.value); err != nil {
		return err
	}
	if list, ok := k.value.([]any); ok && len(list) == 0 {
		k.value = sql.Undefined{}
	}
	return nil
}

func values(keys []orderKey) []any {
	all := make([]any, len(keys))
	for i, k := range keys {
		all[i] = k.value
	}
	return all
}

// resumeFilter is where a client wants an order to go on: at rows with these values, or behind
// them. With a RID it names the document where it stopped, of which the client itself knows how
// many results it has had (azure-cosmos-dotnet-v3, SqlQueryResumeFilter.cs and
// StreamingOrderByCrossPartitionQueryPipelineStage). Where a request has a continuation as well,
// the further of the two counts.
type resumeFilter struct {
	Value   []orderKey `json:"value"`
	RID     string     `json:"rid"`
	Exclude bool       `json:"exclude"`
}

func (f *resumeFilter) check(query *sql.Query) error {
	if len(f.Value) != query.Orders() {
		return badRequest("The resume filter has another number of values than the query has orders.")
	}
	for _, k := range f.Value {
		switch k.value.(type) {
		case map[string]any, []any: // the hash of an array or an object
			return badRequest("The stand-in does not resume an order by arrays or objects.")
		}
	}
	if _, ok := serialOf(f.RID); f.RID != "" && !ok {
		return badRequest("The resume filter's rid is not that of a document.")
	}
	return nil
}

// serialOf reads a document's serial from its RID.
func serialOf(rid string) (serial uint64, ok bool) {
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(rid, "-", "/"))
	if err != nil || len(b) != 16 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[8:]), true
}

// ordered is a row with the values that place it.
type ordered struct {
	*row
	keys []any
}

// inOrder is the order of a query: by its values, then by RID, which a descending order reverses.
// It is independent of partitions, so an order resumes at the same row after a split.
type inOrder struct{ *sql.Query }

func (q inOrder) compare(a ordered, keys []any, serial uint64) int {
	order := q.CompareKeys(a.keys, keys)
	switch {
	case order != 0 || a.serial == serial:
		return order
	case a.serial < serial != q.Descending():
		return -1
	}
	return 1
}

// before reports whether the client has had a row.
func (q inOrder) before(r ordered, at continuation, resume *resumeFilter) bool {
	if len(at.Keys) > 0 && q.compare(r, values(at.Keys), at.Serial) <= 0 {
		return true
	}
	if resume == nil {
		return false
	}
	order := q.CompareKeys(r.keys, values(resume.Value))
	if serial, ok := serialOf(resume.RID); ok {
		order = q.compare(r, values(resume.Value), serial)
	}
	return order < 0 || order == 0 && resume.Exclude
}

// queryOrdered adds the rows that are to come in the query's order. The continuation holds the
// values of the last row.
func (p *partition) queryOrdered(query *sql.Query, rows []sql.Row, at continuation, page *queryPage) *continuation {
	by := inOrder{query}
	pending := make([]ordered, 0, len(rows))
	for _, r := range rows {
		if o := (ordered{r.(*row), query.OrderKeys(r)}); !by.before(o, at, page.resume) {
			pending = append(pending, o)
		}
	}
	slices.SortFunc(pending, func(a, b ordered) int { return by.compare(a, b.keys, b.serial) })
	skip, take := query.Window()
	for i, r := range pending {
		if take >= 0 && page.matched >= skip+take {
			return nil
		}
		if page.full() {
			return &continuation{Low: at.Low, Keys: orderKeys(pending[i-1].keys), Serial: pending[i-1].serial}
		}
		if page.matched++; page.matched <= skip {
			continue
		}
		if result, ok := p.result(query, r.row); ok {
			page.add(result)
		}
	}
	return nil
}

func orderKeys(all []any) []orderKey {
	keys := make([]orderKey, len(all))
	for i, v := range all {
		keys[i] = orderKey{v}
	}
	return keys
}
