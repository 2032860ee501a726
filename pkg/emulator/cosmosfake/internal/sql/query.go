package sql

import "slices"

// Matches reports whether a row satisfies the query's condition.
func (q *Query) Matches(row Row) bool {
	return q.where == nil || q.where.eval(&scope{row: row}) == true
}

// SelectsAll reports whether a result is the document as it is.
func (q *Query) SelectsAll() bool { return q.all }

// Aggregates reports whether the query folds all rows into one result.
func (q *Query) Aggregates() bool { return len(q.functions) > 0 }

// Ordered reports whether the query has an ORDER BY.
func (q *Query) Ordered() bool { return q.Orders() > 0 }

// Orders is how many expressions the query orders by.
func (q *Query) Orders() int { return len(q.order) }

// Window returns how many of the results are skipped and how many are wanted after that, -1 for
// all.
func (q *Query) Window() (skip, take int) {
	take = -1
	if q.offset != nil {
		skip, take = *q.offset, *q.limit
	}
	if q.top != nil && (take < 0 || *q.top < take) {
		take = *q.top
	}
	return skip, take
}

// Project returns the result for a row; ok is false if there is none, because SELECT VALUE yields
// undefined.
func (q *Query) Project(row Row) (result any, ok bool) {
	v := q.selection.eval(&scope{row: row})
	return v, !isUndefined(v)
}

// Fold returns the single result of a query that aggregates.
func (q *Query) Fold(rows []Row) (result any, ok bool) {
	v := q.selection.eval(&scope{rows: rows})
	return v, !isUndefined(v)
}

// Descending reports whether the first order is a descending one. Rows that are equal in all orders
// then come in the reverse of their RIDs' order (azure-cosmos-dotnet-v3,
// OrderByCrossPartitionQueryPipelineStage.FilterNextAsync).
func (q *Query) Descending() bool { return len(q.order) > 0 && q.order[0].descending }

// OrderKeys returns the values by which ORDER BY places a row.
func (q *Query) OrderKeys(row Row) []any {
	keys := make([]any, len(q.order))
	for i, o := range q.order {
		keys[i] = o.by.eval(&scope{row: row})
	}
	return keys
}

// CompareKeys compares two rows by their OrderKeys: below 0 if a comes first.
func (q *Query) CompareKeys(a, b []any) int {
	for i, o := range q.order {
		order := compareAny(a[i], b[i])
		if o.descending {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// EqualTo returns the value that the condition requires of a property, where it requires one.
func (q *Query) EqualTo(steps []string) (value any, ok bool) {
	return requiredValue(q.where, steps)
}

func requiredValue(e expression, steps []string) (any, bool) {
	switch x := e.(type) {
	case and:
		if v, ok := requiredValue(x.left, steps); ok {
			return v, true
		}
		return requiredValue(x.right, steps)
	case comparison:
		if x.operator != "=" {
			return nil, false
		}
		for _, sides := range [...][2]expression{{x.left, x.right}, {x.right, x.left}} {
			p, isPath := sides[0].(path)
			l, isLiteral := sides[1].(literal)
			if isPath && isLiteral && slices.EqualFunc(p.steps, steps, func(a any, b string) bool { return a == b }) {
				return l.value, true
			}
		}
	}
	return nil, false
}
