package check_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

var update = flag.Bool("update", false, "write testdata/names.txt")

// TestEverythingKeepsItsName compares the expressions that name resources, role assignments and
// deployments, and their inputs, with testdata/names.txt. After a change of a name, an update
// creates a second resource without the state of the first, or fails: a role assignment can exist
// only once.
func TestEverythingKeepsItsName(t *testing.T) {
	t.Parallel()
	sources := templates(t)
	got, file := names(sources, parse(t, sources)), filepath.Join("testdata", "names.txt")
	if *update {
		testworld.Must(t, os.MkdirAll("testdata", 0o755))
		testworld.Must(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	testworld.Must(t, err)
	was := strings.Split(string(want), "\n")
	for line := range strings.SplitSeq(got, "\n") {
		if i := slices.Index(was, line); i >= 0 {
			was = slices.Delete(was, i, i+1)
			continue
		}
		t.Errorf("new: %s", line)
	}
	for _, line := range was {
		t.Errorf("gone: %s", line)
	}
	if t.Failed() {
		t.Log("where the values are the same for equal parameters, or a resource is new: go test ./infra/check -run Name -update")
	}
}

func TestAChangedNameIsSeen(t *testing.T) {
	t.Parallel()
	sources := templates(t)
	for name, change := range map[string]struct{ file, old, new, want string }{
		"of a role assignment":             {"modules/roles/queue.bicep", "guid(namespace::queue.id, principalId, role)", "guid(namespace::queue.id, role)", "guid(namespace::queue.id, role)"},
		"in a variable":                    {"main.bicep", "var suffix = '${name}-${token}'", "var suffix = '${token}-${name}'", "'${token}-${name}'"},
		"in what a module's name is given": {"main.bicep", "name: 'id-${suffix}'", "name: 'uami-${suffix}'", "identity.name: name: 'uami-${suffix}'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := map[string]string{}
			for file, source := range sources {
				changed[file] = source
			}
			changed[change.file] = strings.Replace(sources[change.file], change.old, change.new, 1)
			if got := names(changed, parse(t, changed)); !strings.Contains(got, change.want) {
				t.Errorf("no %s in\n%s", change.want, got)
			}
		})
	}
}

// naming is the parts of the names in one file.
type naming struct {
	file  string
	lines []string
	root  *node
	used  map[string]bool // parameters and variables that names use
	found map[string]bool // lines to print
}

// names prints each expression that names something, and each variable and module parameter that it
// uses.
func names(sources map[string]string, trees map[string]*node) string {
	files := make(map[string]*naming)
	for file, root := range trees {
		if strings.HasSuffix(file, ".bicep") {
			files[file] = &naming{file, strings.Split(sources[file], "\n"), root, map[string]bool{}, map[string]bool{}}
		}
	}
	// Module parameters are found while modules are read, so repeat until nothing is added.
	for before, count := -1, 0; count != before; {
		before, count = count, 0
		for _, n := range files {
			n.collect(n.root, files)
			count += len(n.found)
		}
	}
	var all []string
	for _, n := range files {
		for line := range n.found {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n") + "\n"
}

func (n *naming) collect(at *node, files map[string]*naming) {
	for _, d := range at.Children {
		switch d.Type {
		case "resource_declaration", "module_declaration":
			id, object := d.first("identifier").Text, body(d)
			n.property(object, "name", id)
			if module := files[filepath.Join(filepath.Dir(n.file), d.first("string").literal())]; module != nil && d.Type == "module_declaration" {
				for name := range module.used {
					if params := object.property("params"); params != nil {
						n.property(params, name, id+"."+name)
					}
				}
			}
			for _, p := range object.Children {
				n.collect(p, files)
			}
		case "variable_declaration":
			if id := d.first("identifier").Text; n.used[id] {
				n.print(d, id)
				n.use(d.Children[1])
			}
		}
	}
}

// property prints a property of an object, if it exists.
func (n *naming) property(object *node, name, of string) {
	if value := object.property(name); value != nil {
		n.print(value, of)
		n.use(value)
	}
}

// print adds the lines of a node.
func (n *naming) print(d *node, of string) {
	var text []string
	for _, line := range n.lines[d.Line-1 : last(d)] {
		text = append(text, strings.TrimSpace(line))
	}
	n.found[fmt.Sprintf("%s %s: %s", n.file, of, strings.Join(text, " "))] = true
}

// last is the last line of a node that is not a bracket.
func last(d *node) int {
	line := d.Line
	for _, c := range d.Children {
		line = max(line, last(c))
	}
	return line
}

func (n *naming) use(d *node) {
	if d.Type == "identifier" {
		n.used[d.Text] = true
	}
	for _, c := range d.Children {
		n.use(c)
	}
}
