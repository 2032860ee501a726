package check_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/npm"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// node is a node of a syntax tree, with the names of tree-sitter-bicep.
type node struct {
	Type     string  // type in the grammar
	Field    string  // role in the parent, if the grammar names it
	Line     int     // starts at 1
	Broken   bool    // does not fit the grammar, or is missing
	Text     string  // of a leaf
	Children []*node // named children only
}

// first returns the first child of a type, nil if there is none.
func (n *node) first(kind string) *node {
	for _, c := range n.Children {
		if c.Type == kind {
			return c
		}
	}
	return nil
}

// literal returns the text of a string without interpolation.
func (n *node) literal() string {
	if content := n.first("string_content"); content != nil && len(n.Children) == 1 {
		return content.Text
	}
	return ""
}

// property returns the value of a property of an object, nil if there is none.
func (n *node) property(name string) *node {
	for _, p := range n.Children {
		if p.Type == "object_property" && len(p.Children) > 1 && p.Children[0].Text == name {
			return p.Children[1]
		}
	}
	return nil
}

// parse returns the syntax trees of sources, by name.
func parse(t *testing.T, sources map[string]string) map[string]*node {
	t.Helper()
	return inNode[map[string]*node](t, "npm", "parse.mjs", sources)
}

// inNode runs a script of a folder, with the npm packages of that folder, on sources by name.
func inNode[T any](t *testing.T, from, name string, sources map[string]string) (result T) {
	t.Helper()
	input, err := json.Marshal(sources)
	testworld.Must(t, err)
	folder, err := npm.InstallFolder(t.Context(), "infra-"+from, from)
	testworld.Must(t, err)
	script := exec.CommandContext(t.Context(), "node", name)
	script.Dir = folder
	script.Stdin = bytes.NewReader(input)
	var failure bytes.Buffer
	script.Stderr = &failure
	output, err := script.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, &failure)
	}
	testworld.Must(t, json.Unmarshal(output, &result))
	return result
}
