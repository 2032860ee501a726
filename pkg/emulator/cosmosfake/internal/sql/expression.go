package sql

import (
	"math"
	"slices"
)

// Row is one document. Field and Value may decode it only when they are asked to.
type Row interface {
	// Field returns a property of the document's top level.
	Field(name string) (any, bool)
	// Value returns the whole document, decoded.
	Value() any
}

// scope is what an expression is evaluated in. The aggregate functions see rows, everything else
// sees row.
type scope struct {
	row  Row
	rows []Row
}

type expression interface {
	eval(s *scope) any
}

type literal struct{ value any }

func (e literal) eval(*scope) any { return e.value }

// path is a property of the document, reached through names (string) and positions (int). No steps:
// the document.
type path struct{ steps []any }

func (e path) eval(s *scope) any {
	if s.row == nil {
		return Undefined{}
	}
	if len(e.steps) == 0 {
		return s.row.Value()
	}
	var v any
	steps := e.steps
	if name, ok := steps[0].(string); ok {
		if v, ok = s.row.Field(name); !ok {
			return Undefined{}
		}
		steps = steps[1:]
	} else {
		v = s.row.Value()
	}
	return descend(v, steps)
}

func descend(v any, steps []any) any {
	for _, step := range steps {
		switch at := step.(type) {
		case string:
			object, ok := v.(map[string]any)
			if !ok {
				return Undefined{}
			}
			if v, ok = object[at]; !ok {
				return Undefined{}
			}
		case int:
			list, ok := v.([]any)
			if !ok || at < 0 || at >= len(list) {
				return Undefined{}
			}
			v = list[at]
		}
	}
	return v
}

// member is a step into the value of any other expression.
type member struct {
	of   expression
	step any
}

func (e member) eval(s *scope) any { return descend(e.of.eval(s), []any{e.step}) }

type not struct{ of expression }

func (e not) eval(s *scope) any {
	if b, ok := e.of.eval(s).(bool); ok {
		return !b
	}
	return Undefined{}
}

// and and or follow three-valued logic: one side alone decides where it can.
type and struct{ left, right expression }

func (e and) eval(s *scope) any { return logical(e.left, e.right, s, false) }

type or struct{ left, right expression }

func (e or) eval(s *scope) any { return logical(e.left, e.right, s, true) }

func logical(left, right expression, s *scope, decides bool) any {
	l, lok := left.eval(s).(bool)
	if lok && l == decides {
		return decides
	}
	r, rok := right.eval(s).(bool)
	if rok && r == decides {
		return decides
	}
	if lok && rok {
		return !decides
	}
	return Undefined{}
}

// comparison of values of two types is undefined, hence neither = nor != holds.
type comparison struct {
	operator    string
	left, right expression
}

func (e comparison) eval(s *scope) any {
	l, r := e.left.eval(s), e.right.eval(s)
	if isUndefined(l) || isUndefined(r) || rank(l) != rank(r) {
		return Undefined{}
	}
	switch e.operator {
	case "=":
		return equal(l, r)
	case "!=", "<>":
		return !equal(l, r)
	}
	order, ok := compareSame(l, r)
	if !ok {
		return Undefined{}
	}
	switch e.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default:
		return order >= 0
	}
}

type in struct {
	value  expression
	values []expression
}

func (e in) eval(s *scope) any {
	v := e.value.eval(s)
	if isUndefined(v) {
		return v
	}
	return slices.ContainsFunc(e.values, func(x expression) bool { return equal(v, x.eval(s)) })
}

type arithmetic struct {
	operator    string
	left, right expression
}

func (e arithmetic) eval(s *scope) any {
	l, r := e.left.eval(s), e.right.eval(s)
	if e.operator == "||" {
		a, aok := l.(string)
		b, bok := r.(string)
		if aok && bok {
			return a + b
		}
		return Undefined{}
	}
	a, aok := asNumber(l)
	b, bok := asNumber(r)
	if !aok || !bok {
		return Undefined{}
	}
	var v float64
	switch e.operator {
	case "+":
		v = a + b
	case "-":
		v = a - b
	case "*":
		v = a * b
	case "/":
		v = a / b
	default:
		v = math.Mod(a, b)
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Undefined{}
	}
	return v
}

type list struct{ values []expression }

func (e list) eval(s *scope) any {
	values := []any{}
	for _, x := range e.values {
		if v := x.eval(s); !isUndefined(v) {
			values = append(values, v)
		}
	}
	return values
}

type property struct {
	name  string
	value expression
}

type object struct{ properties []property }

func (e object) eval(s *scope) any {
	values := make(map[string]any, len(e.properties))
	for _, p := range e.properties {
		if v := p.value.eval(s); !isUndefined(v) {
			values[p.name] = v
		}
	}
	return values
}

// aggregate folds the rows into one value; undefined values do not take part.
type aggregate struct {
	function string
	of       expression
}

func (e aggregate) eval(s *scope) any {
	count, sum := 0, 0.0
	var lowest, highest any = Undefined{}, Undefined{}
	numeric := true
	for _, row := range s.rows {
		v := e.of.eval(&scope{row: row})
		if isUndefined(v) {
			continue
		}
		if count == 0 || compareAny(v, lowest) < 0 {
			lowest = v
		}
		if count == 0 || compareAny(v, highest) > 0 {
			highest = v
		}
		n, ok := asNumber(v)
		numeric = numeric && ok
		sum += n
		count++
	}
	switch {
	case e.function == "COUNT":
		return count
	case e.function == "MIN":
		return lowest
	case e.function == "MAX":
		return highest
	case !numeric:
		return Undefined{}
	case e.function == "SUM":
		return sum
	case count == 0:
		return Undefined{}
	default:
		return sum / float64(count)
	}
}
