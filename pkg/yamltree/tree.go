// Package yamltree reads YAML, which includes JSON, into trees whose values know their place: the
// file, the line and the path. Aliases and merge keys are resolved, and the size is bounded
// (docs/security.md has every limit). It validates such a tree by a JSON Schema, says in sentences
// what is wrong with it, and decodes it with the defaults of the schema.
//
// It knows no format of a file. Start with Parse, or with NewForm for a schema.
//
// The package is internal to the program: its API may change in any release.
package yamltree

import (
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Node is one value of a document, or the place of a value that is absent.
type Node struct {
	Name   string  // of a field of an object; "" for anything else
	Fields []*Node // of an object, in their order
	Items  []*Node // of a list
	File   string
	Line   int  // of the name of a field, else of the value, from 1; if it is absent, of the object that lacks it
	Bad    bool // whether the value has a mistake

	parent *Node
	step   string     // from the parent to this node: ".name" or "[2]"
	source *yaml.Node // never an alias; nil if the value is absent
}

// Path returns the place of the node in the document: "processors[2] (orders).name". An item of a
// list that is an object has its name.
func (n *Node) Path() string {
	if n.parent == nil {
		return ""
	}
	path := n.parent.Path() + n.step
	if name := n.Get("name").Text(); n.parent.IsList() && name != "" {
		path += " (" + QuoteName(name) + ")"
	}
	return strings.TrimPrefix(path, ".")
}

// Mistake returns a mistake in the node.
func (n *Node) Mistake(text string) Mistake {
	return Mistake{File: n.File, Line: n.Line, Field: n.Path(), Text: text}
}

// Present reports whether there is a value, and not null.
func (n *Node) Present() bool { return n.source != nil && n.tag() != "!!null" }

// IsObject reports whether the value is an object.
func (n *Node) IsObject() bool { return n.source != nil && n.source.Kind == yaml.MappingNode }

// IsList reports whether the value is a list.
func (n *Node) IsList() bool { return n.source != nil && n.source.Kind == yaml.SequenceNode }

// Get returns the value at a path of field names, never nil: an absent one has its place.
func (n *Node) Get(path ...string) *Node {
	for _, name := range path {
		if i := slices.IndexFunc(n.Fields, func(f *Node) bool { return f.Name == name }); i >= 0 {
			n = n.Fields[i]
			continue
		}
		n = &Node{Name: name, File: n.File, Line: n.Line, parent: n, step: "." + name}
	}
	return n
}

// Inherit adds the fields of defaults that an object does not have itself, at every depth. A field
// that is null takes a default away.
func (n *Node) Inherit(defaults *Node) {
	for _, f := range defaults.Fields {
		switch own := n.Get(f.Name); {
		case own.source == nil:
			n.Fields = append(n.Fields, f)
		case own.IsObject():
			own.Inherit(f)
		}
	}
}

// Text returns a scalar as it is written; "" for anything else and for null.
func (n *Node) Text() string {
	if n.Present() && n.tag() != "" {
		return n.source.Value
	}
	return ""
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

// Value returns the value in the types to which encoding/json decodes, and integers also as int,
// int64 or uint64. A time is its text. A scalar that JSON cannot express (.nan, !mine x) is
// notJSON{}. A field that is bad is null, and a bad item is left out.
func (n *Node) Value() any {
	switch tag := n.tag(); {
	case n.IsObject():
		fields := make(map[string]any, len(n.Fields))
		for _, f := range n.Fields {
			if fields[f.Name] = nil; !f.Bad {
				fields[f.Name] = f.Value()
			}
		}
		return fields
	case n.IsList():
		items := make([]any, 0, len(n.Items))
		for _, item := range n.Items {
			if !item.Bad {
				items = append(items, item.Value())
			}
		}
		return items
	case !n.Present():
		return nil
	case tag == "!!str", tag == "!!timestamp":
		return n.source.Value
	case tag == "!!bool", tag == "!!int", tag == "!!float":
		var value any
		err := n.source.Decode(&value)
		if f, _ := value.(float64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return value
		}
	}
	return notJSON{}
}

// Is describes the value for a mistake: `is the text "x"`.
func (n *Node) Is() string {
	switch tag := n.tag(); {
	case !n.Present(), n.IsList() && len(n.Items) == 0:
		return "is empty"
	case n.IsObject():
		return "is an object"
	case n.IsList():
		return "is a list"
	case tag == "!!str":
		return "is " + strings.Replace(Quote(n.source.Value), `"`, `the text "`, 1)
	case tag == "!!bool", tag == "!!int", tag == "!!float", tag == "!!timestamp":
		return "is " + QuoteName(n.source.Value)
	}
	return "has a type of its own"
}
