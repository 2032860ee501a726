package sql

import (
	"slices"
)

// Matches reports whether a row satisfies the query's condition.
func (q *Query) Matches(row Row) bool {
	return q.where == nil || q.where.eval(&scope{row: row}) == true
}

// SelectsAll reports whether a result is the document as it is.
func (q *Query) SelectsAll() bool { return q.all }

// Aggregates reports whether the query folds all rows into one result.
func (q *Query) Aggregates() bool { return len(q.functions) > 0 }

// Ordered reports whether the query has an ORDER BY.
func (q *Query) Ordered() bool { return len(q.order) > 0 }

// Window returns how many of the results are skipped and how many are wanted after that, -1 for all.
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

// Project returns the result for a row; ok is false where there is none, because SELECT VALUE yields undefined.
func (q *Query) Project(row Row) (result any, ok bool) {
	v := q.selection.eval(&scope{row: row})
	return v, !isUndefined(v)
}

// Fold returns the single result of a query that aggregates.
func (q *Query) Fold(rows []Row) (result any, ok bool) {
	v := q.selection.eval(&scope{rows: rows})
	return v, !isUndefined(v)
}

// Sort puts rows into the query's order. Rows that are equal in it keep their places.
func Sort[R Row](q *Query, rows []R) {
	type keyed struct {
		row  R
		keys []any
	}
	all := make([]keyed, len(rows))
	for i, row := range rows {
		all[i] = keyed{row: row}
		for _, o := range q.order {
			all[i].keys = append(all[i].keys, o.by.eval(&scope{row: row}))
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		for i, o := range q.order {
			order := compareAny(a.keys[i], b.keys[i])
			if o.descending {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	for i := range all {
		rows[i] = all[i].row
	}
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
