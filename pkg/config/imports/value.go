package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/config"
)

// value is one value of a file, with its place. The zero value, and one that is null, is absent.
type value struct {
	file string
	path string // "spec.triggers[0].metadata"
	line int
	node *yaml.Node // nil where it is absent; never an alias
}

// documents reads the documents of a file, YAML or JSON, and leaves out empty ones.
func documents(f File) ([]value, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(withoutComments(f.Text)))
	var all []value
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, syntax(f.Name, err)
		}
		if root := (value{file: f.Name}).at("", document.Content[0]); root.present() {
			all = append(all, root)
		}
	}
}

// syntax is the mistake for an error of the YAML parser, which has its line in its text alone.
func syntax(file string, err error) error {
	problem, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(problem); m != nil {
		problem = problem[len(m[0]):]
		line, _ = strconv.Atoi(m[1])
	}
	return config.Mistakes{{File: file, Line: line, Text: "is not valid YAML or JSON (" + problem + ")"}}
}

// withoutComments blanks the comments of JSON, which the Functions host allows in host.json and
// local.settings.json. A text that is not JSON is returned as it is, and each line keeps its number.
func withoutComments(text []byte) []byte {
	start := bytes.TrimLeft(text, "\ufeff \t\r\n")
	if len(start) == 0 || start[0] != '{' && start[0] != '[' && !bytes.HasPrefix(start, []byte("//")) && !bytes.HasPrefix(start, []byte("/*")) {
		return text
	}
	out := slices.Clone(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	for i := 0; i < len(out); i++ {
		switch rest := text[i:]; {
		case rest[0] == '"':
			for i++; i < len(out) && text[i] != '"' && text[i] != '\n'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			end := i + len(rest)
			if n := bytes.IndexByte(rest, '\n'); n >= 0 {
				end = i + n
			}
			blank(i, end)
			i = end - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			end := i + len(rest)
			if n := bytes.Index(rest, []byte("*/")); n >= 0 {
				end = i + n + 2
			}
			blank(i, end)
			i = end - 1
		}
	}
	return out
}

// at is the value at a step below v.
func (v value) at(step string, node *yaml.Node) value {
	line := node.Line
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return value{file: v.file, path: strings.TrimPrefix(v.path+step, "."), line: line, node: node}
}

func (v value) present() bool {
	return v.node != nil && (v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!null")
}

func (v value) isObject() bool { return v.node != nil && v.node.Kind == yaml.MappingNode }
func (v value) isList() bool   { return v.node != nil && v.node.Kind == yaml.SequenceNode }

// member is one field of an object. Its value's line is that of the name.
type member struct {
	name  string
	value value
}

// maxMerges bounds how deep merge keys are followed: one may name the object that it is in.
const maxMerges = 3

// members are the fields of an object, then those of its merge keys that it does not have itself;
// none where v is no object.
func (v value) members() []member { return v.merged(maxMerges) }

func (v value) merged(depth int) []member {
	if !v.isObject() || depth == 0 {
		return nil
	}
	var all []member
	var inherited []value
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := v.node.Content[i]
		child := v.at("."+named(key.Value), v.node.Content[i+1])
		child.line = key.Line
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			child.path = v.path
			inherited = append(inherited, child)
			continue
		}
		all = append(all, member{key.Value, child})
	}
	for _, from := range inherited {
		sources := []value{from}
		if from.isList() {
			sources = nil
			for _, item := range from.node.Content {
				sources = append(sources, from.at("", item))
			}
		}
		for _, source := range sources {
			for _, m := range source.merged(depth - 1) {
				if !slices.ContainsFunc(all, func(own member) bool { return own.name == m.name }) {
					all = append(all, m)
				}
			}
		}
	}
	return all
}

// get is a field of an object, absent where it has none of that name or v is no object.
func (v value) get(path ...string) value {
	for _, name := range path {
		v = v.find(func(field string) bool { return field == name }, name)
	}
	return v
}

// getFold is get without regard to case, as the Functions host reads its files.
func (v value) getFold(path ...string) value {
	for _, name := range path {
		v = v.find(func(field string) bool { return strings.EqualFold(field, name) }, name)
	}
	return v
}

func (v value) find(is func(string) bool, name string) value {
	for _, m := range v.members() {
		if is(m.name) && m.value.present() {
			return m.value
		}
	}
	return value{file: v.file, line: v.line, path: strings.TrimPrefix(v.path+"."+name, ".")}
}

// items are those of a list; none where v is no list.
func (v value) items() []value {
	if !v.isList() {
		return nil
	}
	all := make([]value, len(v.node.Content))
	for i, node := range v.node.Content {
		all[i] = v.at(fmt.Sprintf("[%d]", i), node)
	}
	return all
}

// text is what a scalar says, "" for anything else.
func (v value) text() string {
	if !v.present() || v.node.Kind != yaml.ScalarNode {
		return ""
	}
	return v.node.Value
}

// integer is the whole number that a scalar says, also as a text.
func (v value) integer() (int, bool) {
	n, err := strconv.Atoi(strings.TrimSpace(v.text()))
	return n, err == nil
}

// isTrue reports whether a scalar says true, also as a text.
func (v value) isTrue() bool { return strings.EqualFold(v.text(), "true") }
