// Package yamltree reads YAML, which includes JSON, into trees whose values know their place: the
// file, the line and the path. Aliases and merge keys are resolved, and the size is bounded
// (docs/security.md has every limit).
//
// It knows no format of a file. Start with Parse.
//
// The package is internal to the program: its API may change in any release.
package yamltree

import (
	"math"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Node is one value of a document, or the place of a value that is absent.
type Node struct {
	Name   string  // of a field of an object; "" for anything else
	Fields []*Node // of an object, in their order
	Items  []*Node // of a list

	File                 string
	Line, Column         int // of the value, from 1; if it is absent, of the object that lacks it
	NameLine, NameColumn int // of the field's name; for anything else as Line and Column

	parent *Node
	step   string     // from the parent to this node: ".name" or "[2]"
	source *yaml.Node // never an alias; nil if the value is absent
}

// Path returns the place of the node in the document: "processors[2] (orders).name". An item of a list that
// is an object has its name.
func (n *Node) Path() string {
	if n.parent == nil {
		return ""
	}
	path := n.parent.Path() + n.step
	if name := n.field("name").Text(); n.parent.IsList() && name != "" {
		path += " (" + QuoteName(name) + ")"
	}
	return strings.TrimPrefix(path, ".")
}

// Mistake returns a mistake in the node.
func (n *Node) Mistake(text string) Mistake {
	return Mistake{File: n.File, Line: n.Line, Column: n.Column, Field: n.Path(), Text: text}
}

// NameMistake returns a mistake in the name of a field.
func (n *Node) NameMistake(text string) Mistake {
	return Mistake{File: n.File, Line: n.NameLine, Column: n.NameColumn, Field: n.Path(), Text: text}
}

// Present reports whether there is a value, and not null.
func (n *Node) Present() bool { return n.source != nil && n.tag() != "!!null" }

// IsObject reports whether the value is an object.
func (n *Node) IsObject() bool { return n.source != nil && n.source.Kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (n *Node) IsList() bool { return n.source != nil && n.source.Kind == yaml.SequenceNode }

// Get returns the value at a path of field names. It is never nil: an absent value has the place where it
// belongs.
func (n *Node) Get(path ...string) *Node {
	for _, name := range path {
		n = n.field(name)
	}
	return n
}

func (n *Node) field(name string) *Node {
	for _, f := range n.Fields {
		if f.Name == name {
			return f
		}
	}
	return &Node{
		Name: name, File: n.File, parent: n, step: "." + name,
		Line: n.Line, Column: n.Column, NameLine: n.NameLine, NameColumn: n.NameColumn,
	}
}

// Text returns a scalar as it is written; "" for anything else and for null.
func (n *Node) Text() string {
	if !n.Present() || n.source.Kind != yaml.ScalarNode {
		return ""
	}
	return n.source.Value
}

// tag returns the YAML type of a scalar, "" for anything else.
func (n *Node) tag() string {
	if n.source == nil || n.source.Kind != yaml.ScalarNode {
		return ""
	}
	return n.source.ShortTag()
}

// notJSON is the Value of a scalar that has no type of JSON.
type notJSON struct{}

// Value returns the value in the types to which encoding/json decodes, and integers also as int, int64 or
// uint64. A time is its text. A scalar that JSON cannot express (.nan, !mine x) is notJSON{}. If skip
// reports true, a field is null, and an item is left out; nil skips none.
func (n *Node) Value(skip func(*Node) bool) any {
	switch {
	case n.IsObject():
		fields := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			if fields[f.Name] = nil; skip == nil || !skip(f) {
				fields[f.Name] = f.Value(skip)
			}
		}
		return fields
	case n.IsList():
		items := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			if skip == nil || !skip(item) {
				items = append(items, item.Value(skip))
			}
		}
		return items
	case !n.Present():
		return nil
	}
	switch n.tag() {
	case "!!str", "!!timestamp":
		return n.source.Value
	case "!!bool", "!!int", "!!float":
		var value any
		if n.source.Decode(&value) != nil {
			return notJSON{}
		}
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return notJSON{}
		}
		return value
	}
	return notJSON{}
}

// Is describes the value for a mistake: `is the text "x"`.
func (n *Node) Is() string {
	switch {
	case n.IsObject():
		return "is an object"
	case n.IsList():
		return "is a list"
	case !n.Present():
		return "is empty"
	}
	switch n.tag() {
	case "!!str":
		return "is " + strings.Replace(Quote(n.source.Value), `"`, `the text "`, 1)
	case "!!bool":
		return "is " + QuoteName(n.source.Value)
	case "!!int", "!!float":
		return "is the number " + QuoteName(n.source.Value)
	case "!!timestamp":
		return "is the time " + QuoteName(n.source.Value)
	}
	return "has a type of its own"
}
