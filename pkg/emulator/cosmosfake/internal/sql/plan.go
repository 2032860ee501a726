package sql

import (
	"fmt"
	"strings"
)

// Plan tells a client how to run a query over several partitions: what to ask of each, and how to put the answers
// together. Its JSON form is the service's queryInfo.
type Plan struct {
	DistinctType                string            `json:"distinctType"`
	Top                         *int              `json:"top"`
	Offset                      *int              `json:"offset"`
	Limit                       *int              `json:"limit"`
	OrderBy                     []string          `json:"orderBy"`
	OrderByExpressions          []string          `json:"orderByExpressions"`
	GroupByExpressions          []string          `json:"groupByExpressions"`
	GroupByAliases              []string          `json:"groupByAliases"`
	Aggregates                  []string          `json:"aggregates"`
	GroupByAliasToAggregateType map[string]string `json:"groupByAliasToAggregateType"`
	RewrittenQuery              string            `json:"rewrittenQuery"`
	HasSelectValue              bool              `json:"hasSelectValue"`
	DCountInfo                  *struct{}         `json:"dCountInfo"`
	HasNonStreamingOrderBy      bool              `json:"hasNonStreamingOrderBy"`
}

// filterPlaceholder is where a client that resumes an ordered query puts its own condition.
const filterPlaceholder = "{documentdb-formattableorderbyquery-filter}"

// Plan returns the plan of the query.
func (q *Query) Plan() Plan {
	p := Plan{
		DistinctType: "None", Top: q.top, Offset: q.offset, Limit: q.limit, HasSelectValue: q.value,
		OrderBy: []string{}, OrderByExpressions: []string{}, GroupByExpressions: []string{}, GroupByAliases: []string{},
		Aggregates: []string{}, GroupByAliasToAggregateType: map[string]string{},
	}
	for _, o := range q.order {
		direction := "Ascending"
		if o.descending {
			direction = "Descending"
		}
		p.OrderBy = append(p.OrderBy, direction)
		p.OrderByExpressions = append(p.OrderByExpressions, o.source)
	}
	switch {
	case q.Aggregates():
		p.RewrittenQuery = q.rewriteAggregate(&p)
	case q.Ordered():
		p.RewrittenQuery = q.rewriteOrdered()
	case q.offset != nil:
		p.RewrittenQuery = fmt.Sprintf("SELECT %s FROM %s%s OFFSET 0 LIMIT %d", q.written(), q.alias, q.whereClause(), *q.offset+*q.limit)
	}
	return p
}

// NeedsClient reports whether only a client that follows the plan can put the answers of several partitions together.
func (q *Query) NeedsClient() bool { return q.Aggregates() || q.Ordered() || q.offset != nil }

func (q *Query) written() string {
	switch {
	case q.all:
		return "*"
	default:
		return "VALUE " + q.selected
	}
}

func (q *Query) whereClause() string {
	if q.condition == "" {
		return ""
	}
	return " WHERE (" + q.condition + ")"
}

func (q *Query) rewriteOrdered() string {
	var items, order []string
	for _, o := range q.order {
		items = append(items, fmt.Sprintf(`{"item": %s}`, o.source))
		direction := "ASC"
		if o.descending {
			direction = "DESC"
		}
		order = append(order, o.source+" "+direction)
	}
	condition := "(" + filterPlaceholder + ")"
	if q.condition != "" {
		condition = "(" + q.condition + ") AND " + condition
	}
	return fmt.Sprintf("SELECT %s._rid, [%s] AS orderByItems, %s AS payload FROM %s WHERE %s ORDER BY %s",
		q.alias, strings.Join(items, ", "), q.selected, q.alias, condition, strings.Join(order, ", "))
}

// rewriteAggregate asks each partition for what the client can add up: an average as sum and count, an extreme with the
// count that tells whether there was any.
func (q *Query) rewriteAggregate(p *Plan) string {
	call, ok := q.selection.(aggregate)
	if !ok { // clients refuse aggregates without VALUE themselves, by this list
		p.Aggregates = q.functions
		return ""
	}
	name := call.function[:1] + strings.ToLower(call.function[1:])
	if call.function == "AVG" {
		name = "Average"
	}
	p.Aggregates = append(p.Aggregates, name)
	argument := q.selected[strings.Index(q.selected, "(")+1 : strings.LastIndex(q.selected, ")")]
	item := `"item": ` + q.selected
	switch call.function {
	case "AVG":
		item = fmt.Sprintf(`"item": {"sum": SUM(%s), "count": COUNT(%s)}`, argument, argument)
	case "MIN", "MAX": // item is for older clients, item2 for those that want to know whether there was any value
		item += fmt.Sprintf(`, "item2": {"%s": %s, "count": COUNT(%s)}`, strings.ToLower(call.function), q.selected, argument)
	}
	return fmt.Sprintf(`SELECT VALUE [{%s}] FROM %s%s`, item, q.alias, q.whereClause())
}
