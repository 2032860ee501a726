package sql

import (
	"strings"
	"unicode/utf8"
)

// function is a call of one of the language's scalar functions.
type function struct {
	of        func(args []any) any
	arguments []expression
}

func (e function) eval(s *scope) any {
	args := make([]any, len(e.arguments))
	for i, a := range e.arguments {
		args[i] = a.eval(s)
	}
	return e.of(args)
}

type signature struct {
	atLeast, atMost int
	of              func(args []any) any
}

// scalarFunction finds a function by its upper-case name.
func scalarFunction(name string) (signature, bool) {
	switch name {
	case "STARTSWITH":
		return signature{2, 3, onTexts(strings.HasPrefix)}, true
	case "ENDSWITH":
		return signature{2, 3, onTexts(strings.HasSuffix)}, true
	case "CONTAINS":
		return signature{2, 3, onTexts(strings.Contains)}, true
	case "STRINGEQUALS":
		return signature{2, 3, onTexts(func(a, b string) bool { return a == b })}, true
	case "LOWER":
		return signature{1, 1, onText(func(s string) any { return strings.ToLower(s) })}, true
	case "UPPER":
		return signature{1, 1, onText(func(s string) any { return strings.ToUpper(s) })}, true
	case "LENGTH":
		return signature{1, 1, onText(func(s string) any { return float64(utf8.RuneCountInString(s)) })}, true
	case "CONCAT":
		return signature{2, 1 << 10, concat}, true
	case "IS_DEFINED":
		return signature{1, 1, func(args []any) any { return !isUndefined(args[0]) }}, true
	case "IS_NULL":
		return hasType[any](func(v any) bool { return v == nil }), true
	case "IS_BOOL", "IS_BOOLEAN": // the second in filters of SDKs that resume an order
		return hasType[bool](nil), true
	case "IS_STRING":
		return hasType[string](nil), true
	case "IS_NUMBER":
		return signature{1, 1, func(args []any) any { _, ok := asNumber(args[0]); return ok }}, true
	case "IS_ARRAY":
		return hasType[[]any](nil), true
	case "IS_OBJECT":
		return hasType[map[string]any](nil), true
	case "IS_PRIMITIVE":
		return signature{1, 1, func(args []any) any { r := rank(args[0]); return r >= rank(nil) && r <= rank("") }}, true
	case "ARRAY_CONTAINS":
		return signature{2, 3, arrayContains}, true
	case "ARRAY_LENGTH":
		return signature{1, 1, arrayLength}, true
	}
	return signature{}, false
}

func hasType[T any](also func(any) bool) signature {
	return signature{1, 1, func(args []any) any {
		if also != nil {
			return also(args[0])
		}
		_, ok := args[0].(T)
		return ok
	}}
}

func onText(f func(string) any) func([]any) any {
	return func(args []any) any {
		if s, ok := args[0].(string); ok {
			return f(s)
		}
		return Undefined{}
	}
}

// onTexts compares two texts; a third argument of true ignores case.
func onTexts(f func(a, b string) bool) func([]any) any {
	return func(args []any) any {
		a, aok := args[0].(string)
		b, bok := args[1].(string)
		if !aok || !bok {
			return Undefined{}
		}
		if len(args) == 3 && args[2] == true {
			a, b = strings.ToLower(a), strings.ToLower(b)
		}
		return f(a, b)
	}
}

func concat(args []any) any {
	var b strings.Builder
	for _, a := range args {
		s, ok := a.(string)
		if !ok {
			return Undefined{}
		}
		b.WriteString(s)
	}
	return b.String()
}

// arrayContains looks for a value; with a third argument of true an object may have more properties
// than the one looked for.
func arrayContains(args []any) any {
	values, ok := args[0].([]any)
	if !ok || isUndefined(args[1]) {
		return Undefined{}
	}
	wanted, partial := args[1].(map[string]any)
	partial = partial && len(args) == 3 && args[2] == true
	for _, v := range values {
		if equal(v, args[1]) || partial && includes(v, wanted) {
			return true
		}
	}
	return false
}

func includes(v any, wanted map[string]any) bool {
	candidate, ok := v.(map[string]any)
	for name, w := range wanted {
		has, found := candidate[name]
		ok = ok && found && equal(has, w)
	}
	return ok
}

func arrayLength(args []any) any {
	if values, ok := args[0].([]any); ok {
		return float64(len(values))
	}
	return Undefined{}
}
