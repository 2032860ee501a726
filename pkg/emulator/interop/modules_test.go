package interop_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const own = "github.com/feedscale/feedscale/"

// numbers are the parts of a version to compare: of a release, and the time of a commit.
var numbers = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(?:-(?:0\.)?(\d{14}))?`)

// older reports whether one version of a module comes before another one. A pre-release that is not
// made of a commit counts as its release.
func older(t *testing.T, a, b string) bool {
	parse := func(version string) []int {
		found := numbers.FindStringSubmatch(version)
		if found == nil {
			t.Fatalf("%q is not the version of a module", version)
		}
		var parts []int
		for _, digits := range found[1:] {
			n, _ := strconv.Atoi(digits) // nothing is 0
			parts = append(parts, n)
		}
		return parts
	}
	return slices.Compare(parse(a), parse(b)) < 0
}

// requirements are the versions that a module requires, by path.
func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
	testworld.Must(t, err)
	versions := map[string]string{}
	for _, r := range testworld.Decode[struct {
		Require []struct{ Path, Version string }
	}](t, text).Require {
		versions[r.Path] = r.Version
	}
	return versions
}

// needed are the paths of the modules that own packages need which the files of a folder import.
func needed(t *testing.T, folder string) []string {
	t.Helper()
	list := []string{"list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}"}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	testworld.Must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		testworld.Must(t, err)
		for _, i := range file.Imports {
			if path := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(path, own) {
				list = append(list, path)
			}
		}
	}
	paths, err := exec.CommandContext(t.Context(), "go", list...).Output()
	testworld.Must(t, err)
	modules := strings.Fields(string(paths))
	return slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(modules))), func(path string) bool { return path+"/" == own })
}

// TestNestedModulesUseWhatTheyImport prevents a failure of make interop: no build of the root module compiles these files. It looks at
// imports of the standard library and of own packages, since the last part of their path is their name.
func TestNestedModulesUseWhatTheyImport(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.go")
	testworld.Must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		testworld.Must(t, err)
		used := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if of, ok := s.X.(*ast.Ident); ok {
					used[of.Name] = true
				}
			}
			return true
		})
		for _, i := range file.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			known := !strings.Contains(path, ".") || strings.HasPrefix(path, own)
			if i.Name == nil && known && !used[filepath.Base(strings.TrimSuffix(path, "/v2"))] {
				t.Errorf("%s imports %s, and does not use it", name, path)
			}
		}
	}
	if len(files) < 10 {
		t.Errorf("%d files were read, want 10 at least", len(files))
	}
}

// TestNoNestedModuleIsBehindTheRoots prevents a failure of make interop: go refuses to build a
// module that requires an older version than the modules that it imports, or does not require one.
func TestNoNestedModuleIsBehindTheRoots(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	wanted := requirements(t, filepath.Join(root, "go.mod"))
	compared := map[string]int{}
	testworld.Must(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(file) != "go.mod" || filepath.Dir(file) == root {
			return err
		}
		required := requirements(t, file)
		for _, path := range needed(t, filepath.Dir(file)) {
			if required[path] == "" {
				t.Errorf("%s does not require %s, which own packages import: run \"go mod tidy\" in its folder", file, path)
			}
		}
		for path, version := range required {
			if wanted[path] == "" {
				continue
			}
			compared[file]++
			if older(t, version, wanted[path]) {
				t.Errorf("%s has %s %s, and the root's go.mod %s: run \"go get %s@%s\" in its folder", file, path, version, wanted[path], path, wanted[path])
			}
		}
		return nil
	}))
	if len(compared) < 3 {
		t.Errorf("%v modules share requirements with the root's, want three at least", compared)
	}
}
