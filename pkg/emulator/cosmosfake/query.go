package cosmosfake

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/sql"
)

// parseQuery reads a query as clients send it: the text and its parameters, and where an order
// resumes.
func parseQuery(body []byte) (*sql.Query, *resumeFilter, error) {
	var input struct {
		Query      string `json:"query"`
		Parameters []struct {
			Name  string `json:"name"`
			Value any    `json:"value"`
		} `json:"parameters"`
		Resume *resumeFilter `json:"resumeFilter"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&input); err != nil {
		return nil, nil, badRequest("The input content is not a JSON object that holds a query.")
	}
	parameters := map[string]any{}
	for _, p := range input.Parameters {
		parameters[p.Name] = p.Value
	}
	query, err := sql.Parse(input.Query, parameters)
	var wrong *sql.SyntaxError
	if errors.As(err, &wrong) {
		text, _ := json.Marshal(wrong.Error()) // a string always has a JSON form
		return nil, nil, badRequest(`Message: {"errors":[{"severity":"Error","location":{"start":%d,"end":%d},"code":"SC1001","message":%s}]}`, wrong.Start, wrong.End, text)
	}
	if err == nil && input.Resume != nil {
		err = input.Resume.check(query)
	}
	return query, input.Resume, err
}

// queryPage is a page of results under construction.
type queryPage struct {
	results [][]byte
	size    int
	limit   int
	matched int           // rows so far, on earlier pages too, for TOP and OFFSET
	resume  *resumeFilter // nil: from the beginning, or the continuation
}

func (p *queryPage) full() bool { return len(p.results) >= p.limit || p.size >= fullPage }

func (p *queryPage) add(result []byte) {
	p.results = append(p.results, result)
	p.size += len(result)
}

// continuation says where a query resumes. It names documents rather than positions in partitions,
// so that it survives splits and merges: everything below Low is done, and between Low and High
// everything up to Serial.
type continuation struct {
	Low     string `json:"min"`
	High    string `json:"max"`
	Serial  uint64 `json:"after"`
	Matched int    `json:"trc"`
	// Keys are those of the last row of a query with an order, where Serial is that row's.
	Keys []orderKey `json:"keys,omitempty"`
}

func (c *call) continuation() (continuation, error) {
	var at continuation
	token := c.Header.Get("x-ms-continuation")
	if token == "" {
		return at, nil
	}
	d := json.NewDecoder(strings.NewReader(token))
	d.UseNumber()
	if err := d.Decode(&at); err != nil {
		return at, badRequest("The continuation token is malformed.")
	}
	return at, nil
}

// start is the first serial of a partition that can be pending.
func (at continuation) start(p *partition) uint64 {
	if epk.Compare(at.High, p.span.high) < 0 {
		return 0
	}
	return at.Serial + 1
}

func (at continuation) done(d *document) bool {
	return epk.Compare(d.epk, at.Low) < 0 || epk.Compare(d.epk, at.High) < 0 && d.serial <= at.Serial
}

// queryDocuments answers with one page of a query's results.
func (c *call) queryDocuments() (*reply, error) {
	query, resume, err := parseQuery(c.body)
	if err != nil {
		return nil, err
	}
	s, err := c.queryScope(query)
	if err != nil {
		return nil, err
	}
	return c.page(query, resume, s)
}

// listDocuments answers with one page of all documents.
func (c *call) listDocuments() (*reply, error) {
	query, err := sql.Parse("SELECT * FROM c", nil)
	if err != nil {
		return nil, err
	}
	s, err := c.scope()
	if err != nil {
		return nil, err
	}
	return c.page(query, nil, s)
}

// queryScope finds the ranges that a query is about, and refuses what the gateway does not do by
// itself.
func (c *call) queryScope(query *sql.Query) (scope, error) {
	s, err := c.scope()
	if err != nil {
		return scope{}, err
	}
	narrow := c.RangeID != "" || c.Header.Get("x-ms-documentdb-partitionkey") != ""
	if !narrow {
		if key, ok := c.requiredKey(query); ok {
			s.span, narrow = c.container.key.span(key), true
			s.ranges = c.container.routing.Load().overlapping(s.span)
		}
	}
	if !narrow && c.Header.Get("x-ms-read-key-type") == "" && !isTrue(c.Header, "x-ms-documentdb-query-enablecrosspartition") {
		return scope{}, badRequest("Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception.")
	}
	if len(s.ranges) > 1 && query.NeedsClient() {
		return scope{}, &fault{status: http.StatusBadRequest, substatus: substatusNeedsPlan, charge: 1, extra: string(c.plan(query)),
			message: "The provided cross partition query can not be directly served by the gateway. Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates and needs a query plan."}
	}
	return s, nil
}

// requiredKey is the partition key that the query's condition asks for.
func (c *call) requiredKey(query *sql.Query) (partitionKey, bool) {
	var components []any
	for _, steps := range c.container.key.steps {
		v, ok := query.EqualTo(steps)
		if !ok {
			return partitionKey{}, false
		}
		switch scalar := v.(type) {
		case json.Number:
			f, err := scalar.Float64()
			if err != nil {
				return partitionKey{}, false
			}
			v = f
		case map[string]any, []any, sql.Undefined:
			return partitionKey{}, false
		}
		components = append(components, v)
	}
	return c.container.key.key(components), true
}

// page runs a query over a scope, from the request's continuation on.
func (c *call) page(query *sql.Query, resume *resumeFilter, s scope) (*reply, error) {
	at, err := c.continuation()
	if err != nil {
		return nil, err
	}
	if err := c.admit(s.ranges...); err != nil {
		return nil, err
	}
	if len(at.Keys) != query.Orders() && (len(at.Keys) > 0 || at.Serial > 0) {
		return nil, badRequest("The continuation token does not belong to this query.")
	}
	page := &queryPage{limit: c.pageSize(), matched: at.Matched, resume: resume}
	var last *partition
	var lsn uint64
	next := &at
	for i, p := range s.ranges {
		if epk.Compare(p.span.high, at.Low) <= 0 {
			continue
		}
		last = p
		if c.emptyPage {
			break
		}
		ok := p.read(c.now, func() {
			lsn = p.lsn
			next = p.query(query, s, at, page)
		})
		if !ok {
			return c.pageAgain(query, resume, p)
		}
		at.Low = p.span.high
		if next == nil && i+1 < len(s.ranges) && page.full() {
			next = &at
		}
		if next != nil {
			next.Matched = page.matched
			break
		}
	}
	if last == nil {
		return nil, badRequest("The continuation token does not belong to this query.")
	}
	if err := c.checkSession(last, lsn); err != nil {
		return nil, err
	}
	return c.queryReply(last, lsn, page, next), nil
}

// pageAgain follows a split or merge that happened while the query ran, unless the client named the
// range itself.
func (c *call) pageAgain(query *sql.Query, resume *resumeFilter, gone *partition) (*reply, error) {
	if c.RangeID != "" {
		return nil, rangeGone(gone.id)
	}
	s, err := c.queryScope(query)
	if err != nil {
		return nil, err
	}
	return c.page(query, resume, s)
}

func (c *call) queryReply(p *partition, lsn uint64, page *queryPage, next *continuation) *reply {
	body := c.openFeed()
	body = append(body, bytes.Join(page.results, []byte{','})...)
	body = strconv.AppendInt(append(body, `],"_count":`...), int64(len(page.results)), 10)
	r := &reply{status: http.StatusOK, body: append(body, '}'), charge: queryCharge(len(page.results), page.size)}
	c.spend(p, r.charge)
	c.progress(r, p, lsn)
	r.setCount(len(page.results))
	if next != nil {
		token, _ := json.Marshal(next) // strings and numbers always have a JSON form
		r.set("x-ms-continuation", string(token))
	}
	return r
}

// query adds a partition's results to a page. It returns where to go on, nil if the partition has
// no more. The caller holds mu.
func (p *partition) query(query *sql.Query, s scope, at continuation, page *queryPage) *continuation {
	if query.Aggregates() || query.Ordered() {
		return p.queryWhole(query, s, at, page)
	}
	skip, take := query.Window()
	last := at.Serial
	for d := range p.creation.from(at.start(p)) {
		if take >= 0 && page.matched >= skip+take {
			return nil
		}
		if page.full() {
			return &continuation{Low: p.span.low, High: p.span.high, Serial: last}
		}
		last = d.serial
		r := &row{document: d}
		if at.done(d) || !s.span.contains(d.epk) || !query.Matches(r) {
			continue
		}
		if page.matched++; page.matched <= skip {
			continue
		}
		if result, ok := p.result(query, r); ok {
			page.add(result)
		}
	}
	return nil
}

// queryWhole answers what needs all rows of the partition at once: aggregates and orders.
func (p *partition) queryWhole(query *sql.Query, s scope, at continuation, page *queryPage) *continuation {
	var rows []sql.Row
	for d := range p.creation.from(0) {
		if r := (&row{document: d}); s.span.contains(d.epk) && query.Matches(r) {
			rows = append(rows, r)
		}
	}
	if !query.Aggregates() {
		return p.queryOrdered(query, rows, at, page)
	}
	if v, ok := query.Fold(rows); ok {
		if result, err := json.Marshal(v); err == nil {
			page.add(result)
		}
	}
	return nil
}

// result is a row as the query selects it.
func (p *partition) result(query *sql.Query, r *row) ([]byte, bool) {
	if query.SelectsAll() {
		return r.json(), true
	}
	v, ok := query.Project(r)
	if !ok {
		return nil, false
	}
	result, err := json.Marshal(v)
	return result, err == nil
}

// plan is the JSON form of a query's plan, with the part of the key space it is about.
func (c *call) plan(query *sql.Query) []byte {
	wanted := everything()
	if key, ok := c.requiredKey(query); ok {
		wanted = c.container.key.span(key)
	}
	plan, err := json.Marshal(map[string]any{
		"partitionedQueryExecutionInfoVersion": 2,
		"queryInfo":                            query.Plan(),
		"queryRanges": []any{map[string]any{
			"min": wanted.low, "max": wanted.high, "isMinInclusive": true, "isMaxInclusive": false,
		}},
	})
	if err != nil {
		return []byte("{}")
	}
	return plan
}

// planQuery answers how a client has to run a query over several partitions.
func (c *call) planQuery() (*reply, error) {
	query, _, err := parseQuery(c.body)
	if err != nil {
		return nil, err
	}
	supported := strings.FieldsFunc(c.Header.Get("x-ms-cosmos-supported-query-features"), func(r rune) bool { return r == ',' || r == ' ' })
	missing := slices.DeleteFunc(query.Features(), func(f string) bool { return slices.Contains(supported, f) })
	if len(missing) > 0 {
		return nil, badRequest("Query contains the following features, which the calling client does not support:\n%s", strings.Join(missing, " "))
	}
	return &reply{status: http.StatusOK, body: c.plan(query), charge: 1}, nil
}
