package imports

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
)

// schemaLine is for yaml-language-server (docs/configure.md, Completion in an editor).
const schemaLine = "# yaml-language-server: $schema=pkg/config/processors.schema.json\n"

// entry is a processor or a group of the processors file, in the making.
type entry struct {
	at     value // where it comes from
	name   string
	fields []field
}

type field struct {
	name string
	node *yaml.Node
	at   value // where it comes from
}

// set adds a field; nil adds none.
func (e *entry) set(name string, node *yaml.Node, at value) {
	if node != nil {
		e.fields = append(e.fields, field{name, node, at})
	}
}

// get returns the text of a field, "" where it has none.
func (e *entry) get(name string) string {
	for _, f := range e.fields {
		if f.name == name {
			return f.node.Value
		}
	}
	return ""
}

func (e *entry) object(fields []field) *yaml.Node {
	all := object("name", text(e.name))
	for _, f := range fields {
		all.Content = append(all.Content, text(f.name), f.node)
	}
	return all
}

// keepAllowed leaves out the fields that config refuses, each beside those before it, and says so.
// It reports whether the entry can be read without them. within makes a whole document of the entry.
func (c *converter) keepAllowed(e *entry, within func(*yaml.Node) *yaml.Node) bool {
	kept := e.fields[:0:0]
	for _, f := range e.fields {
		mistakes := refused(marshal(within(e.object(append(kept, f)))))
		i := slices.IndexFunc(mistakes, func(m config.Mistake) bool {
			return !strings.HasPrefix(m.Text, "is missing") // it comes with a later field
		})
		if i < 0 {
			kept = append(kept, f)
			continue
		}
		why := mistakes[i].Text
		if _, inner, ok := strings.Cut(mistakes[i].Field, "."+f.name+"."); ok {
			why = inner + ": " + why
		}
		if f.name == "connection" || f.name == "databaseId" || f.name == "containerId" {
			c.remark(f.at, "%s; without it nothing is measured, and no entry is made", why)
			return false
		}
		c.remark(f.at, "%s; it is left out", why)
	}
	e.fields = kept
	mistakes := refused(marshal(within(e.object(kept))))
	for _, m := range mistakes {
		c.remark(e.at, "%s: %s; no entry is made", m.Field, m.Text)
	}
	return len(mistakes) == 0
}

// alone is a document with one processor, and the group that it is in.
func alone(processor *yaml.Node) *yaml.Node {
	document := object()
	for i := 0; i+1 < len(processor.Content); i += 2 {
		if processor.Content[i].Value == "group" {
			document = object("groups", list(object("name", processor.Content[i+1])))
		}
	}
	document.Content = append(document.Content, text("processors"), list(processor))
	return document
}

// aloneInGroup is a document with one group.
func aloneInGroup(group *yaml.Node) *yaml.Node {
	member := object("name", text("a-member"), "connection", text("COSMOS"), "databaseId", text("shop"), "containerId", text("orders"))
	return object("groups", list(group), "processors", list(member))
}

// render writes the processors file.
func (c *converter) render() ([]byte, error) {
	document := object()
	for _, part := range []struct {
		name    string
		entries []*entry
	}{{"groups", c.groups}, {"processors", c.processors}} {
		if len(part.entries) == 0 {
			continue
		}
		items := list()
		for _, e := range part.entries {
			items.Content = append(items.Content, e.object(e.fields))
		}
		document.Content = append(document.Content, text(part.name), items)
	}
	return append([]byte(schemaLine), marshal(document)...), nil
}

// marshal writes a document in the style of docs/configure.md. The nodes are made in this file, and
// have only kinds that can be written.
func marshal(document *yaml.Node) []byte {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(document); err != nil {
		panic(fmt.Sprintf("a processors file cannot be written: %v", err))
	}
	return out.Bytes()
}

// text is a string, in quotes where it looks like something else.
func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// plain is a scalar of the type that it looks like: the values in the metadata of a trigger are
// texts, also the numbers.
func plain(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strings.TrimSpace(s)}
}

// object has names and values in turn.
func object(members ...any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i+1 < len(members); i += 2 {
		n.Content = append(n.Content, text(members[i].(string)), members[i+1].(*yaml.Node))
	}
	return n
}

func list(items ...*yaml.Node) *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Content: items} }

// onOneLine writes an object or list in braces or brackets.
func onOneLine(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// maxCopied is how many values are copied at most: an alias may hold itself, or many others.
const maxCopied = 500

// copied is a value as it stands in its file, without comments and quotes that are not needed; nil
// where it is absent or too large.
func copied(v value) *yaml.Node {
	left := maxCopied
	made := copiedNode(v.node, &left)
	if left < 0 {
		return nil
	}
	return made
}

func copiedNode(n *yaml.Node, left *int) *yaml.Node {
	if *left--; n == nil || *left < 0 {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	made := &yaml.Node{Kind: n.Kind, Value: n.Value}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		made.Tag = "!!str"
	}
	for _, child := range n.Content {
		made.Content = append(made.Content, copiedNode(child, left))
	}
	return made
}
