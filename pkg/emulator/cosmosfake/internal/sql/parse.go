package sql

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Query is a query that has been read and can be evaluated any number of times, from several
// goroutines.
type Query struct {
	source    string
	alias     string
	top       *int
	offset    *int
	limit     *int
	all       bool // SELECT *
	value     bool // SELECT VALUE
	selection expression
	selected  string   // the selection as an expression of the language
	columns   []column // of a selection that is neither * nor VALUE
	where     expression
	condition string // its source
	order     []ordering
	functions []string // the aggregate functions used, in order
}

type column struct {
	name   string
	value  expression
	source string
}

type ordering struct {
	by         expression
	source     string
	descending bool
}

// deepest is how far expressions may nest: enough for people and SDKs, and little enough for the
// stack.
const deepest = 200

type parser struct {
	source     string
	tokens     []token
	at, depth  int
	parameters map[string]any
	query      *Query
}

// Parse reads a query. Parameters are named as in the text, with their @. The error is a
// *SyntaxError.
func Parse(source string, parameters map[string]any) (*Query, error) {
	p, err := newParser(source, parameters)
	if err != nil {
		return nil, err
	}
	if err := p.parseSelect(); err != nil {
		return nil, err
	}
	return p.query, nil
}

// ParseCondition reads a condition as a patch carries it: FROM c WHERE ....
func ParseCondition(source string) (*Query, error) {
	p, err := newParser(source, nil)
	if err != nil {
		return nil, err
	}
	if err := p.parseFrom(); err != nil {
		return nil, err
	}
	if err := p.parseWhere(); err != nil {
		return nil, err
	}
	return p.query, p.expectEnd()
}

func newParser(source string, parameters map[string]any) (*parser, error) {
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	if err := refused(tokens); err != nil {
		return nil, err
	}
	return &parser{source: source, tokens: tokens, parameters: parameters, query: &Query{source: source, alias: "c"}}, nil
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

func (p *parser) accept(want string) bool {
	if p.peek().is(want) {
		p.at++
		return true
	}
	return false
}

func (p *parser) expect(want string) error {
	if !p.accept(want) {
		return p.unexpected()
	}
	return nil
}

func (p *parser) expectEnd() error {
	if p.peek().kind != end {
		return p.unexpected()
	}
	return nil
}

func (p *parser) unexpected() error {
	t := p.peek()
	return &SyntaxError{Start: t.start, End: t.end, Near: p.source[t.start:t.end]}
}

// since returns the source from a token's start to the end of the last token read.
func (p *parser) since(start int) string { return p.source[start:p.tokens[p.at-1].end] }

// parseSelect finds the alias first: the selection stands before the FROM that declares it.
func (p *parser) parseSelect() error {
	if err := p.expect("SELECT"); err != nil {
		return err
	}
	selection := p.at
	for depth := 0; p.peek().kind != end && (depth > 0 || !p.peek().is("FROM")); p.at++ {
		switch {
		case p.peek().is("(") || p.peek().is("[") || p.peek().is("{"):
			depth++
		case p.peek().is(")") || p.peek().is("]") || p.peek().is("}"):
			depth--
		}
	}
	if err := p.parseFrom(); err != nil {
		return err
	}
	rest := p.at
	p.at = selection
	if err := p.parseSelection(); err != nil {
		return err
	}
	if !p.peek().is("FROM") {
		return p.unexpected()
	}
	p.at = rest
	if err := p.parseWhere(); err != nil {
		return err
	}
	if err := p.parseOrder(); err != nil {
		return err
	}
	if err := p.parseOffset(); err != nil {
		return err
	}
	return p.expectEnd()
}

func (p *parser) parseFrom() error {
	if err := p.expect("FROM"); err != nil {
		return err
	}
	if p.peek().kind != word {
		return p.unexpected()
	}
	p.query.alias = p.next().text
	named := p.accept("AS")
	switch t := p.peek(); {
	case t.kind == word && (named || !reserved(t)):
		p.query.alias = p.next().text
	case named:
		return p.unexpected()
	}
	return nil
}

func reserved(t token) bool {
	for _, k := range [...]string{"WHERE", "ORDER", "OFFSET", "GROUP", "JOIN", "IN"} {
		if t.is(k) {
			return true
		}
	}
	return false
}

func (p *parser) parseSelection() error {
	q := p.query
	if p.accept("TOP") {
		n, err := p.parseCount()
		if err != nil {
			return err
		}
		q.top = &n
	}
	if p.accept("*") {
		q.all, q.selection, q.selected = true, path{}, q.alias
		return nil
	}
	if p.accept("VALUE") {
		start := p.peek().start
		e, err := p.parseExpression()
		if err != nil {
			return err
		}
		q.value, q.selection, q.selected = true, e, p.since(start)
		return nil
	}
	first := p.peek().start
	for {
		start := p.peek().start
		e, err := p.parseExpression()
		if err != nil {
			return err
		}
		source := p.since(start)
		name, err := p.parseName(e, len(q.columns)+1)
		if err != nil {
			return err
		}
		q.columns = append(q.columns, column{name, e, source})
		if !p.accept(",") {
			break
		}
	}
	var properties []property
	var written []string
	for _, c := range q.columns {
		properties = append(properties, property{c.name, c.value})
		written = append(written, fmt.Sprintf("%s: %s", quote(c.name), c.source))
	}
	q.selection, q.selected = object{properties}, "{"+strings.Join(written, ", ")+"}"
	if q.Aggregates() && !q.foldsEverything() {
		return &SyntaxError{Start: first, End: p.tokens[p.at-1].end, Composed: true}
	}
	return nil
}

// foldsEverything reports whether the columns are aggregates and nothing else, or one object, as in
// rewritten queries.
func (q *Query) foldsEverything() bool {
	if len(q.columns) == 1 {
		if _, made := q.columns[0].value.(object); made {
			return true
		}
	}
	return !slices.ContainsFunc(q.columns, func(c column) bool { _, ok := c.value.(aggregate); return !ok })
}

func quote(name string) string {
	quoted, _ := json.Marshal(name) // a string always has a JSON form
	return string(quoted)
}

// parseName reads AS name, or derives a column's name: the last step of a path, else $ and its
// position.
func (p *parser) parseName(e expression, position int) (string, error) {
	if p.accept("AS") || p.peek().kind == word && !p.peek().is("FROM") {
		if p.peek().kind != word {
			return "", p.unexpected()
		}
		return p.next().text, nil
	}
	if column, ok := e.(path); ok {
		if len(column.steps) == 0 {
			return p.query.alias, nil
		}
		if name, ok := column.steps[len(column.steps)-1].(string); ok {
			return name, nil
		}
	}
	return fmt.Sprintf("$%d", position), nil
}

func (p *parser) parseWhere() error {
	if !p.accept("WHERE") {
		return nil
	}
	start := p.peek().start
	e, err := p.parseExpression()
	if err != nil {
		return err
	}
	p.query.where, p.query.condition = e, p.since(start)
	return nil
}

func (p *parser) parseOrder() error {
	if !p.accept("ORDER") {
		return nil
	}
	if err := p.expect("BY"); err != nil {
		return err
	}
	for {
		start := p.peek().start
		e, err := p.parseExpression()
		if err != nil {
			return err
		}
		o := ordering{by: e, source: p.since(start)}
		if p.accept("DESC") {
			o.descending = true
		} else {
			p.accept("ASC")
		}
		p.query.order = append(p.query.order, o)
		if !p.accept(",") {
			return nil
		}
	}
}

func (p *parser) parseOffset() error {
	if !p.accept("OFFSET") {
		return nil
	}
	offset, err := p.parseCount()
	if err != nil {
		return err
	}
	if err := p.expect("LIMIT"); err != nil {
		return err
	}
	limit, err := p.parseCount()
	if err != nil {
		return err
	}
	p.query.offset, p.query.limit = &offset, &limit
	return nil
}

// parseCount reads a whole number that is not negative, written out or given as a parameter.
func (p *parser) parseCount() (int, error) {
	at := p.at
	e, err := p.parsePrimary()
	if err != nil {
		return 0, err
	}
	if l, ok := e.(literal); ok {
		if n, ok := asNumber(l.value); ok && n >= 0 && n <= 1<<31 && n == float64(int(n)) {
			return int(n), nil
		}
	}
	p.at = at
	return 0, p.unexpected()
}
