package yamltree

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The limits of a file. They leave room for 5,000 processors with every field set, and stop files
// that would exhaust the reader.
const (
	maxBytes  = 8 << 20
	maxValues = 500_000 // with aliases expanded
	maxDepth  = 32      // a processors file has at most 6 levels, a pod 14
	maxFields = 1_000   // of one object
)

// Parse reads the documents of a file, without empty ones. It returns documents also if there are
// mistakes. file is the name of the file in mistakes.
func Parse(file string, text []byte) (documents []*Node, mistakes Mistakes) {
	if len(text) > maxBytes {
		return nil, Mistakes{{File: file, Text: fmt.Sprintf("is larger than %d MiB; allowed is less", maxBytes>>20)}}
	}
	if at := bytes.IndexFunc(text, noText); at >= 0 { // the YAML parser reports no line for it
		return nil, Mistakes{{File: file, Line: lineAt(text, at), Text: "holds bytes that are no text; allowed is YAML or JSON in UTF-8"}}
	}
	if json.Valid(text) { // the YAML parser does not know every escape of JSON, and knows those of Go
		text = jsonString.ReplaceAllFunc(text, func(quoted []byte) []byte {
			var value string
			_ = json.Unmarshal(quoted, &value)
			return []byte(strconv.QuoteToASCII(value))
		})
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	b := builder{file: file}
	for !b.refused {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			if !errors.Is(err, io.EOF) {
				b.mistakes.Add(syntaxMistake(file, text, err))
			}
			break
		}
		root := b.build(new(Node), document.Content[0])
		if !b.refused && root.Present() {
			documents = append(documents, root)
		}
	}
	return documents, b.mistakes
}

func noText(r rune) bool {
	return r == utf8.RuneError || r < ' ' && !strings.ContainsRune("\t\r\n", r) || r == 0x7f
}

func lineAt(text []byte, offset int) int { return 1 + bytes.Count(text[:offset], []byte("\n")) }

var (
	jsonString    = regexp.MustCompile(`"([^"\\]|\\.)*"`)
	lineOfError   = regexp.MustCompile(`^line (\d+): `)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	indentingTab  = regexp.MustCompile(`(?m)^ *\t`)
)

// syntaxMistake finds the line of an error of the YAML parser, which has it only in its text, and
// not at all for the first line and for an alias.
func syntaxMistake(file string, text []byte, err error) Mistake {
	m := Mistake{File: file, Line: 1}
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	if found := lineOfError.FindStringSubmatch(problem); found != nil {
		problem = problem[len(found[0]):]
		m.Line, _ = strconv.Atoi(found[1])
	}
	if found := unknownAnchor.FindStringSubmatch(problem); found != nil {
		m.Line = lineAt(text, max(0, bytes.Index(text, []byte("*"+found[1]))))
	}
	m.Text = "is not valid YAML or JSON (" + problem + "); look at the indentation, the colons and the quotes around this line"
	if tab := indentingTab.FindIndex(text); tab != nil && (strings.Contains(problem, "tab character") || strings.Contains(problem, "cannot start any token")) {
		m.Line, m.Text = lineAt(text, tab[0]), "is indented by a tab, which YAML does not allow; allowed are spaces"
	}
	return m
}

// builder makes nodes from those of the YAML parser.
type builder struct {
	file     string
	mistakes Mistakes
	values   int
	depth    int
	refused  bool // whether the file exceeds a limit
}

// build completes a node, which knows its parent and its step from there, and a field also its name.
func (b *builder) build(n *Node, source *yaml.Node) *Node {
	n.File, n.Line, n.source = b.file, cmp.Or(n.Line, source.Line), source
	if source.Kind == yaml.AliasNode {
		n.source = source.Alias // its mistakes are reported at the place of the alias
	}
	b.values++
	b.depth++
	defer func() { b.depth-- }()
	limit := ""
	switch {
	case b.refused:
		return n
	case b.values > maxValues:
		limit = fmt.Sprintf("the file holds more than %d values once its aliases are expanded", maxValues)
	case len(n.source.Content) > 2*maxFields && n.IsObject():
		limit = fmt.Sprintf("has more than %d fields", maxFields)
	case b.depth > maxDepth:
		limit = fmt.Sprintf("is nested deeper than %d levels, or an alias holds itself", maxDepth)
	case n.IsList():
		for i, item := range n.source.Content {
			n.Items = append(n.Items, b.build(&Node{parent: n, step: fmt.Sprintf("[%d]", i)}, item))
		}
	case n.IsObject():
		b.buildFields(n)
	}
	if limit != "" {
		b.refused = true
		b.mistakes.Add(n.Mistake(limit + "; allowed is less"))
	}
	return n
}

// buildFields adds the fields of an object, then those of its merge keys that it does not have
// itself.
func (b *builder) buildFields(n *Node) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.source.Content) && !b.refused; i += 2 {
		key, value := n.source.Content[i], n.source.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		first := n.Get(key.Value)
		child := b.build(&Node{Name: key.Value, Line: key.Line, parent: n, step: "." + QuoteName(key.Value)}, value)
		switch {
		case key.Kind != yaml.ScalarNode:
			b.mistakes.Add(Mistake{File: n.File, Line: key.Line, Field: n.Path(), Text: "has a field whose name is no plain text; allowed are names such as processors"})
		case first.source != nil && !b.refused:
			b.mistakes.Add(child.Mistake(fmt.Sprintf("stands twice, first on line %d; allowed is once", first.Line)))
		default:
			n.Fields = append(n.Fields, child)
		}
	}
	for _, source := range merges {
		b.merge(n, source)
	}
}

// merge adds the fields of a merge key's value: of an object, or of a list of objects, of which the
// first that has a field counts.
func (b *builder) merge(n *Node, source *yaml.Node) {
	merged := b.build(&Node{parent: n, step: ".<<"}, source)
	from := merged.Items
	if !merged.IsList() {
		from = []*Node{merged}
	}
	for _, object := range from {
		if !object.IsObject() && !b.refused {
			b.mistakes.Add(object.Mistake(object.Is() + "; allowed after << is an alias of an object, or a list of such"))
		}
		for _, f := range object.Fields {
			if n.Get(f.Name).source == nil {
				f.parent = n // so that its path does not contain <<
				n.Fields = append(n.Fields, f)
			}
		}
	}
}
