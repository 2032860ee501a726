package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// reader reads the values of a document and collects the mistakes in them.
type reader struct {
	file     string
	mistakes *Mistakes
	// partial is set while defaults are validated on their own: nothing is required, and fields are
	// not compared with each other, since a processor may give the other one.
	partial bool
}

func (r *reader) mistake(at *node, text string) {
	r.mistakes.Add(Mistake{File: r.file, Line: at.line, Column: at.column, Field: at.path(), Text: text})
}

// object reads the fields of one object. A field that was not read before close is unknown.
type object struct {
	*reader
	node  *node // nil where the object is absent
	known []string
	bad   []string // fields with a mistake: they read as their default
}

// object begins to read an object. An absent or empty one has no fields.
func (r *reader) object(n *node) *object {
	o := &object{reader: r}
	switch {
	case n == nil || n.isNull():
	case n.isObject():
		o.node = n
	default:
		r.mistake(n, n.is()+"; allowed is an object (name: value)")
	}
	return o
}

// close reports the fields that were not read as unknown.
func (o *object) close() {
	if o.node == nil {
		return
	}
	for _, m := range o.node.members {
		if !slices.Contains(o.known, m.name) {
			o.mistakes.Add(Mistake{File: o.file, Line: m.line, Column: m.column, Field: m.value.path(), Text: unknownField(m.name, o.known)})
		}
	}
}

// get returns the value of a field, nil where it is absent or empty.
func (o *object) get(name string) *node {
	if !slices.Contains(o.known, name) {
		o.known = append(o.known, name)
	}
	if o.node == nil {
		return nil
	}
	if n := o.node.member(name); n != nil && !n.isNull() {
		return n
	}
	return nil
}

// wrong reports a mistake in a field.
func (o *object) wrong(name string, at *node, text string) {
	o.bad = append(o.bad, name)
	o.mistake(at, text)
}

// sound reports whether the fields can be compared with each other: the object is whole, and none
// of them has a mistake.
func (o *object) sound(names ...string) bool {
	return o.node != nil && !o.partial && !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(o.bad, name) })
}

// require reports a field as missing where it is absent.
func (o *object) require(name, allowed string) {
	if o.get(name) == nil && !o.partial && o.node != nil {
		o.bad = append(o.bad, name)
		missing := &node{parent: o.node, step: "." + name, line: o.node.line, column: o.node.column}
		o.mistake(missing, "is missing; allowed is "+allowed)
	}
}

// clash reports fields that contradict each other, at the position of the first of them that is not
// inherited from defaults.
func (o *object) clash(text string, names ...string) {
	var at *node
	for _, name := range names {
		if n := o.get(name); n != nil && (at == nil || at.inherited() && !n.inherited()) {
			at = n
		}
	}
	if at == nil {
		at = o.node
	}
	o.bad = append(o.bad, names...)
	o.mistake(at, text)
}

// inherited reports whether the node is in defaults.
func (n *node) inherited() bool { return strings.HasPrefix(n.path(), "defaults") }

// text reads a string, and checks it where check is not nil.
func (o *object) text(name, fallback string, check func(string) error) string {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	if n.tag() != "!!str" {
		allowed := "allowed is a text"
		if n.tag() != "" {
			allowed += ", in quotes where it looks like something else"
		}
		o.wrong(name, n, n.is()+"; "+allowed)
		return fallback
	}
	if check != nil {
		if err := check(n.source.Value); err != nil {
			o.wrong(name, n, err.Error())
			return fallback
		}
	}
	return n.source.Value
}

// choice reads a string that is one of those allowed.
func choice[T ~string](o *object, name string, fallback T, allowed ...T) T {
	return T(o.text(name, string(fallback), func(text string) error {
		if slices.Contains(allowed, T(text)) {
			return nil
		}
		names := make([]string, len(allowed))
		for i, a := range allowed {
			names[i] = string(a)
		}
		return fmt.Errorf("%s is unknown; allowed are %s", yamltree.Quote(text), oneOf(names))
	}))
}

// boolean reads true or false.
func (o *object) boolean(name string) bool { return o.booleanOr(name, false) }

func (o *object) booleanOr(name string, fallback bool) bool {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	var value bool
	if n.tag() != "!!bool" || n.source.Decode(&value) != nil {
		o.wrong(name, n, n.is()+"; allowed are true and false")
	}
	return value
}

// integer reads a whole number from low to high, both included.
func integer[T int | int64](o *object, name string, fallback, low, high T) T {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	value, ok := n.integer()
	if !ok {
		o.wrong(name, n, n.is()+"; allowed are "+between(int64(low), int64(high)))
		return fallback
	}
	switch {
	case value < int64(low):
		o.wrong(name, n, yamltree.QuoteName(n.source.Value)+" is out of range; allowed are "+between(int64(low), int64(high)))
		return fallback
	case value > int64(high):
		o.wrong(name, n, fmt.Sprintf("%s is out of range; allowed are whole numbers from %d to %d", yamltree.QuoteName(n.source.Value), low, high))
		return fallback
	}
	return T(value)
}

// maxReplicas is the greatest replica count, which Kubernetes keeps in 32 bits.
const maxReplicas = math.MaxInt32

// between describes a range. A bound that is only that of the type is left out.
func between(low, high int64) string {
	if high >= maxReplicas {
		return fmt.Sprintf("whole numbers, %d or more", low)
	}
	return fmt.Sprintf("whole numbers from %d to %d", low, high)
}

// integer returns the value of a whole number, also of one with a fraction of zero, as JSON writers
// may write it. A number too great for an int64 is math.MaxInt64.
func (n *node) integer() (int64, bool) {
	switch n.tag() {
	case "!!int":
		var value int64
		if err := n.source.Decode(&value); err == nil {
			return value, true
		}
		var big uint64 // the widest integer of the YAML parser; a longer number is a float
		if err := n.source.Decode(&big); err == nil {
			return math.MaxInt64, true
		}
	case "!!float":
		var value float64
		if err := n.source.Decode(&value); err == nil && value == math.Trunc(value) && math.Abs(value) < 1<<62 {
			return int64(value), true
		}
	}
	return 0, false
}

// fraction reads a number of 0 or more.
func (o *object) fraction(name string) float64 {
	n := o.get(name)
	if n == nil {
		return 0
	}
	var value float64
	if tag := n.tag(); tag != "!!int" && tag != "!!float" || n.source.Decode(&value) != nil || math.IsInf(value, 0) || !(value >= 0) {
		o.wrong(name, n, n.is()+"; allowed are numbers, 0 or more (0.1 = 10 %)")
		return 0
	}
	return value
}

// duration reads a duration from low to maxDuration: in Go's form, or in whole seconds as KEDA's
// fields are.
func (o *object) duration(name string, fallback, low time.Duration) time.Duration {
	n := o.get(name)
	if n == nil {
		return fallback
	}
	const allowed = "allowed is " + durationForm + ", or a whole number of seconds"
	var value time.Duration
	if seconds, ok := n.integer(); ok {
		// Limited to an hour more than allowed: out of range, and no overflow.
		limit := int64((maxDuration + time.Hour) / time.Second)
		value = time.Duration(min(max(seconds, -limit), limit)) * time.Second
	} else if n.tag() == "!!str" {
		var err error
		if value, err = parseDuration(n.source.Value); err != nil {
			o.wrong(name, n, err.Error()+", or a whole number of seconds")
			return fallback
		}
	} else {
		o.wrong(name, n, n.is()+"; "+allowed)
		return fallback
	}
	if value < low || value > maxDuration {
		o.wrong(name, n, fmt.Sprintf("%s is out of range; allowed are durations from %s to 8760h", yamltree.QuoteName(n.source.Value), brief(low)))
		return fallback
	}
	return value
}

// brief returns a duration as a user would write it.
func brief(d time.Duration) string {
	return cmp.Or(strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m"), "0")
}

// list reads the items of a list; none where it is absent.
func (o *object) list(name string) []*node {
	n := o.get(name)
	if n == nil {
		return nil
	}
	if !n.isList() {
		o.wrong(name, n, n.is()+"; allowed is a list")
	}
	return n.items
}
