package sql

import (
	"fmt"
	"strings"
)

// Plan tells a client how to run a query over several partitions: what to ask of each, and how to
// put the answers together. Its JSON form is the service's queryInfo.
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

// NeedsClient reports whether only a client that follows the plan can put the answers of several
// partitions together.
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

// rewriteAggregate asks each partition for what the client can add up: an average as sum and count,
// an extreme with the count that tells whether there was any. Aggregates without VALUE are a group
// of all rows: their names take the place of GROUP BY's (azure-cosmos-dotnet-v3,
// QueryPlanBaselineTests.Aggregates.xml and QueryPlanBaselineTests.NonValueAggregates.xml).
func (q *Query) rewriteAggregate(p *Plan) string {
	if call, ok := q.selection.(aggregate); ok {
		p.Aggregates = append(p.Aggregates, call.operator())
		return fmt.Sprintf(`SELECT VALUE [{%s}] FROM %s%s`, call.partial(q.selected), q.alias, q.whereClause())
	}
	var items []string
	for _, c := range q.columns {
		call, ok := c.value.(aggregate)
		if !ok {
			return "" // it is a rewritten query itself, which nobody rewrites again
		}
		p.GroupByAliases = append(p.GroupByAliases, c.name)
		p.GroupByAliasToAggregateType[c.name] = call.operator()
		items = append(items, fmt.Sprintf("%s: {%s}", quote(c.name), call.partial(c.source)))
	}
	if len(items) == 0 {
		return ""
	}
	return fmt.Sprintf(`SELECT {%s} AS payload FROM %s%s`, strings.Join(items, ", "), q.alias, q.whereClause())
}

// operator is the function's name in a plan.
func (e aggregate) operator() string {
	if e.function == "AVG" {
		return "Average"
	}
	return e.function[:1] + strings.ToLower(e.function[1:])
}

// partial is what one partition contributes; source is the call as it is written.
func (e aggregate) partial(source string) string {
	argument := source[strings.Index(source, "(")+1 : strings.LastIndex(source, ")")]
	switch e.function {
	case "AVG":
		return fmt.Sprintf(`"item": {"sum": SUM(%s), "count": COUNT(%s)}`, argument, argument)
	case "MIN", "MAX":
		// item is for older clients, item2 for those that want to know whether there was any value
		return fmt.Sprintf(`"item": %s, "item2": {"%s": %s, "count": COUNT(%s)}`, source, strings.ToLower(e.function), source, argument)
	}
	return `"item": ` + source
}

// Features are the names, in x-ms-cosmos-supported-query-features, of what a client must know to
// follow the plan.
func (q *Query) Features() []string {
	var needed []string
	if q.Ordered() {
		needed = append(needed, "OrderBy")
	}
	if len(q.order) > 1 {
		needed = append(needed, "MultipleOrderBy")
	}
	if q.Aggregates() {
		needed = append(needed, "Aggregate")
		if !q.value {
			needed = append(needed, "NonValueAggregate")
		}
		if len(q.columns) > 1 {
			needed = append(needed, "MultipleAggregates")
		}
	}
	if q.offset != nil {
		needed = append(needed, "OffsetAndLimit")
	}
	if q.top != nil {
		needed = append(needed, "Top")
	}
	return needed
}
