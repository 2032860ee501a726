package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// The limits of a document. They leave room for 5,000 processors with every field set, and stop
// documents that are made to exhaust the reader.
const (
	maxDocumentBytes  = 8 << 20
	maxDocumentValues = 500_000 // with aliases expanded
	maxDocumentDepth  = 16      // a valid document has at most 6 levels
	maxObjectFields   = 100     // a processor has fewer than 40, a target at most 64
)

// node is one value of a document, with its aliases and merge keys resolved.
type node struct {
	parent *node
	step   string // from the parent to this node: ".name" or "[2]"
	label  string // the name of an object in a list: "(orders)"
	source *yaml.Node
	line   int
	column int

	members []member // of an object, in their order
	items   []*node  // of a list
}

// member is one field of an object.
type member struct {
	name         string
	line, column int // of the name
	value        *node
}

// path returns the place of the node in the document: "processors[2] (orders).name".
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	path := n.parent.path() + n.step
	if n.label != "" {
		path += " " + n.label
	}
	return strings.TrimPrefix(path, ".")
}

// member returns the value of a field, nil where it is absent.
func (n *node) member(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (n *node) isObject() bool { return n.source.Kind == yaml.MappingNode }
func (n *node) isList() bool   { return n.source.Kind == yaml.SequenceNode }

// tag returns the YAML type of a scalar, "" for anything else.
func (n *node) tag() string {
	if n.source.Kind != yaml.ScalarNode {
		return ""
	}
	return n.source.ShortTag()
}

func (n *node) isNull() bool { return n.tag() == "!!null" }

// is describes the node for a mistake: `is the text "x"`.
func (n *node) is() string {
	switch {
	case n.isObject():
		return "is an object"
	case n.isList():
		return "is a list"
	}
	switch n.tag() {
	case "!!null":
		return "is empty"
	case "!!str":
		return "is " + strings.Replace(yamltree.Quote(n.source.Value), `"`, `the text "`, 1)
	case "!!bool":
		return "is " + yamltree.QuoteName(n.source.Value)
	case "!!int", "!!float":
		return "is the number " + yamltree.QuoteName(n.source.Value)
	case "!!timestamp":
		return "is the time " + yamltree.QuoteName(n.source.Value)
	}
	return "has a type of its own"
}

// overlay applies a processor's value on top of its default: objects field by field, at every
// depth; any other value replaces the default whole. An empty value (null) counts as given and
// restores what holds without defaults.
func overlay(base, over *node) *node {
	if base == nil || !base.isObject() || !over.isObject() {
		return over
	}
	merged := *over
	merged.members = append([]member(nil), over.members...)
	for i, m := range merged.members {
		if inherited := base.member(m.name); inherited != nil {
			merged.members[i].value = overlay(inherited, m.value)
		}
	}
	for _, m := range base.members {
		if over.member(m.name) == nil {
			merged.members = append(merged.members, m)
		}
	}
	return &merged
}

// parseTree reads a YAML document, or a JSON one, which YAML includes. It returns nil where the
// document cannot be read at all, after adding at least one mistake.
func parseTree(file string, text []byte, mistakes *Mistakes) *node {
	if mistake := checkText(text); mistake != nil {
		mistake.File = file
		mistakes.Add(*mistake)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(withoutJSONEscapes(text)))
	var document yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return &node{source: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, line: 1, column: 1}
		}
		mistakes.Add(syntaxMistake(file, text, err))
		return nil
	}
	b := treeBuilder{file: file, mistakes: mistakes}
	root := b.build(nil, "", document.Content[0])
	if b.refused {
		return nil
	}
	var second yaml.Node
	if err := decoder.Decode(&second); err == nil {
		mistakes.Add(Mistake{File: file, Line: second.Line, Column: second.Column, Text: "a second document begins here; allowed is one document, with all processors in its list"})
	} else if !errors.Is(err, io.EOF) {
		mistakes.Add(syntaxMistake(file, text, err))
	}
	return root
}

// checkText finds bytes that are no text, for which the YAML parser reports no line.
func checkText(text []byte) *Mistake {
	if len(text) > maxDocumentBytes {
		return &Mistake{Text: fmt.Sprintf("is larger than %d MiB; allowed is less", maxDocumentBytes>>20)}
	}
	line := 1
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &Mistake{Line: line, Column: 1, Text: "holds bytes that are no text; allowed is YAML or JSON in UTF-8"}
		}
		rest = rest[size:]
	}
	return nil
}

// syntaxMistake finds the line of an error of the YAML parser, which has it only in its text, and
// neither for the first line nor for an alias.
func syntaxMistake(file string, text []byte, err error) Mistake {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(problem); m != nil {
		problem = problem[len(m[0]):]
		line, _ = strconv.Atoi(m[1])
	} else if m := regexp.MustCompile(`^unknown anchor '(.*)' referenced$`).FindStringSubmatch(problem); m != nil {
		problem = "the anchor " + yamltree.Quote(m[1]) + " is not defined above"
		if before, _, ok := strings.Cut(string(text), "*"+m[1]); ok {
			line += strings.Count(before, "\n")
		}
	}
	if tab := regexp.MustCompile(`(?m)^ *\t`).FindIndex(text); tab != nil && (strings.Contains(problem, "tab character") || strings.Contains(problem, "cannot start any token")) {
		return Mistake{File: file, Line: 1 + bytes.Count(text[:tab[0]], []byte("\n")), Column: 1, Text: "is indented by a tab, which YAML does not allow; allowed are spaces"}
	}
	return Mistake{File: file, Line: line, Column: 1, Text: "is not valid YAML (" + problem + "); look at the indentation, the colons and the quotes around this line"}
}

// treeBuilder makes nodes from those of the YAML parser.
type treeBuilder struct {
	file     string
	mistakes *Mistakes
	values   int
	depth    int
	refused  bool // whether the document exceeds a limit
}

func (b *treeBuilder) mistake(at *node, text string) {
	b.mistakes.Add(Mistake{File: b.file, Line: at.line, Column: at.column, Field: at.path(), Text: text})
}

func (b *treeBuilder) refuse(at *node, text string) {
	if !b.refused {
		b.refused = true
		b.mistake(at, text)
	}
}

func (b *treeBuilder) build(parent *node, step string, source *yaml.Node) *node {
	n := &node{parent: parent, step: step, source: source, line: source.Line, column: source.Column}
	if source.Kind == yaml.AliasNode {
		n.source = source.Alias // a mistake in it is reported where it is used
	}
	b.values++
	b.depth++
	defer func() { b.depth-- }()
	switch {
	case b.values > maxDocumentValues:
		b.refuse(n, fmt.Sprintf("the document holds more than %d values once its aliases are expanded; allowed is less", maxDocumentValues))
	case n.source.Kind == yaml.MappingNode && len(n.source.Content) > 2*maxObjectFields:
		b.refuse(n, fmt.Sprintf("has more than %d fields; allowed are the fields of a processors file", maxObjectFields))
	case b.depth > maxDocumentDepth:
		b.refuse(n, fmt.Sprintf("is nested deeper than %d levels, or an alias holds itself; allowed are the fields of a processors file", maxDocumentDepth))
	}
	if b.refused {
		return n
	}
	switch n.source.Kind {
	case yaml.SequenceNode:
		for i, item := range n.source.Content {
			n.items = append(n.items, b.build(n, fmt.Sprintf("[%d]", i), item))
		}
	case yaml.MappingNode:
		if parent != nil && parent.isList() {
			n.label = label(n.source)
		}
		b.buildMembers(n)
	}
	return n
}

// label returns the label of an object in a list, "" where it has no name.
func label(source *yaml.Node) string {
	for i := 0; i+1 < len(source.Content); i += 2 {
		key, value := source.Content[i], source.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if key.Value == "name" && value.Kind == yaml.ScalarNode && value.Value != "" {
			return "(" + yamltree.QuoteName(value.Value) + ")"
		}
	}
	return ""
}

// buildMembers adds the fields of an object, then those of its merge keys that it does not have
// itself.
func (b *treeBuilder) buildMembers(n *node) {
	var merges []*yaml.Node
	lines := map[string]int{} // of each name
	for i := 0; i+1 < len(n.source.Content); i += 2 {
		key, value := n.source.Content[i], n.source.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		child := b.build(n, "."+yamltree.QuoteName(key.Value), value)
		switch first, twice := lines[key.Value]; {
		case b.refused:
			return
		case key.Kind != yaml.ScalarNode:
			b.mistakes.Add(Mistake{File: b.file, Line: key.Line, Column: key.Column, Field: n.path(), Text: "has a field whose name is no plain text; allowed are names such as processors"})
		case twice:
			b.mistakes.Add(Mistake{File: b.file, Line: key.Line, Column: key.Column, Field: child.path(), Text: fmt.Sprintf("stands twice, first on line %d; allowed is once", first)})
		default:
			lines[key.Value] = key.Line
			n.members = append(n.members, member{name: key.Value, line: key.Line, column: key.Column, value: child})
		}
	}
	for _, source := range merges {
		b.merge(n, source)
	}
}

// merge adds the fields of a merge key's value: of an object, or of a list of objects, of which the
// first that has a field counts.
func (b *treeBuilder) merge(n *node, source *yaml.Node) {
	merged := b.build(n, ".<<", source)
	from := merged.items
	if merged.isObject() {
		from = []*node{merged}
	} else if !merged.isList() {
		b.mistake(merged, merged.is()+"; allowed behind << is an alias of an object, or a list of such")
	}
	for _, object := range from {
		if !object.isObject() && !b.refused {
			b.mistake(object, object.is()+"; allowed behind << is an alias of an object, or a list of such")
		}
		for _, m := range object.members {
			if n.member(m.name) == nil {
				m.value.parent = n // so that its path does not contain <<
				n.members = append(n.members, m)
			}
		}
	}
}
