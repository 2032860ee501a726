package sql

import (
	"encoding/json"
	"strings"
)

// Undefined is what a path yields that a document does not have. It differs from null: a row whose
// condition is undefined is left out, and a property that is undefined is not written.
type Undefined struct{}

func isUndefined(v any) bool { _, ok := v.(Undefined); return ok }

func asNumber(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// rank is the order of the types under ORDER BY.
func rank(v any) int {
	switch v.(type) {
	case Undefined:
		return 0
	case nil:
		return 1
	case bool:
		return 2
	case float64, json.Number:
		return 3
	case string:
		return 4
	case []any:
		return 5
	default:
		return 6
	}
}

// compareSame orders two values of one scalar type; ok is false for values that have no order
// between them.
func compareSame(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case nil:
		return 0, b == nil
	case bool:
		y, ok := b.(bool)
		switch {
		case !ok || x == y:
			return 0, ok
		case y:
			return -1, true
		}
		return 1, true
	case string:
		y, ok := b.(string)
		return strings.Compare(x, y), ok
	}
	x, xok := asNumber(a)
	y, yok := asNumber(b)
	switch {
	case !xok || !yok:
		return 0, false
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}

// compareAny orders values of any type, by type first.
func compareAny(a, b any) int {
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra - rb
	}
	order, _ := compareSame(a, b)
	return order
}

// equal is the language's = on defined values of one type.
func equal(a, b any) bool {
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name, v := range x {
			other, ok := y[name]
			if !ok || !equal(v, other) {
				return false
			}
		}
		return true
	}
	order, ok := compareSame(a, b)
	return ok && order == 0
}
