package check_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// node is a node of a syntax tree, with the names of tree-sitter-bicep.
type node struct {
	Type     string  // of the grammar
	Field    string  // what it is to its parent, where the grammar says so
	Line     int     // from 1
	Broken   bool    // does not fit the grammar, or is missing there
	Text     string  // of a leaf
	Children []*node // named ones
}

// first returns the first child of a type, nil where there is none.
func (n *node) first(kind string) *node {
	for _, c := range n.Children {
		if c.Type == kind {
			return c
		}
	}
	return nil
}

// literal is the text of a string without interpolation.
func (n *node) literal() string {
	if content := n.first("string_content"); content != nil && len(n.Children) == 1 {
		return content.Text
	}
	return ""
}

// property returns the value of a property of an object, nil where there is none.
func (n *node) property(name string) *node {
	for _, p := range n.Children {
		if p.Type == "object_property" && len(p.Children) > 1 && p.Children[0].Text == name {
			return p.Children[1]
		}
	}
	return nil
}

// parse returns the trees of sources, by their names.
func parse(t *testing.T, sources map[string]string) map[string]*node {
	t.Helper()
	input, err := json.Marshal(sources)
	must(t, err)
	parser := exec.CommandContext(t.Context(), "node", "parse.mjs")
	parser.Dir = installed(t)
	parser.Stdin = bytes.NewReader(input)
	var failure bytes.Buffer
	parser.Stderr = &failure
	output, err := parser.Output()
	if err != nil {
		t.Fatalf("parse with tree-sitter-bicep: %v\n%s", err, &failure)
	}
	trees := make(map[string]*node)
	must(t, json.Unmarshal(output, &trees))
	return trees
}

// installed is a folder outside the tree that holds parse.mjs and the packages
// of its lock file. Its name tells its content, so that what is there need not
// be looked at.
func installed(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must(t, err)
	names := []string{"parse.mjs", "package.json", "package-lock.json"}
	files := make([][]byte, len(names))
	hash := sha256.New()
	for i, name := range names {
		files[i], err = os.ReadFile(filepath.Join("npm", name))
		must(t, err)
		hash.Write(files[i])
	}
	folder := filepath.Join(cache, "feedscale", "bicep-"+hex.EncodeToString(hash.Sum(nil)[:8]))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	must(t, os.MkdirAll(filepath.Dir(folder), 0o750))
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), "installing-")
	must(t, err)
	defer func() { _ = os.RemoveAll(unfinished) }() // gone already, unless something failed
	for i, name := range names {
		must(t, os.WriteFile(filepath.Join(unfinished, name), files[i], 0o600))
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = unfinished
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci needs Node.js and a package registry: %v\n%s", err, output)
	}
	// Another test may have been faster.
	if err := os.Rename(unfinished, folder); err != nil {
		_, missing := os.Stat(folder)
		must(t, missing)
	}
	return folder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
