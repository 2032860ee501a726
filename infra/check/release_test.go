package check_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestAReleaseIsBuiltAsTheMakefileBuilds: the Makefile, goreleaser and the Dockerfile build the
// same binary from the same source.
func TestAReleaseIsBuiltAsTheMakefileBuilds(t *testing.T) {
	t.Parallel()
	flags := []string{"-trimpath", "-buildvcs=false"}
	const ldflags = "-s -w -X main.release="
	var release struct {
		Dist   string
		Builds []struct {
			ID, Main            string
			Env, Flags, Ldflags []string
		}
	}
	testworld.Must(t, yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &release))
	if len(release.Builds) != 2 {
		t.Fatalf("%d programs are built, want the tool and the handler", len(release.Builds))
	}
	for _, b := range release.Builds {
		if !slices.Equal(b.Flags, flags) || !slices.Equal(b.Ldflags, []string{ldflags + "v{{ .Version }}"}) || !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) {
			t.Errorf("%s is built with %q, %q and %q", b.ID, b.Flags, b.Ldflags, b.Env)
		}
		if main := read(t, filepath.FromSlash(b.Main), "main.go"); !strings.Contains(main, "var release = ") {
			t.Errorf("%s has no release for the linker to set", b.Main)
		}
	}
	makefile, dockerfile := read(t, "Makefile"), read(t, "Dockerfile")
	if !strings.Contains(makefile, "LDFLAGS := "+ldflags+"$(VERSION)\n") || !strings.Contains(dockerfile, `-ldflags "`+ldflags+`$VERSION"`) {
		t.Error("the Makefile or the Dockerfile links in another way")
	}
	for name, text := range map[string]string{"Makefile": makefile, "Dockerfile": dockerfile} {
		if !regexp.MustCompile(`CGO_ENABLED=0 GOOS=\S+ GOARCH=\S+ (\\\n\s+)?go build ` + strings.Join(flags, " ")).MatchString(text) {
			t.Errorf("the %s builds with other flags than %q", name, flags)
		}
	}
	// goreleaser empties its folder, so it must not be the one with a developer's
	// local.settings.json.
	if strings.Contains(makefile, "DIST ?= "+release.Dist+"\n") || release.Dist == "" {
		t.Errorf("goreleaser writes to %q, where make dist stages", release.Dist)
	}
}

func TestEveryFunctionIsInAReleasedFunctionApp(t *testing.T) {
	t.Parallel()
	var release struct {
		Archives []struct {
			ID    string
			Files []struct{ Src, Dst string }
		}
	}
	testworld.Must(t, yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &release))
	var sources []string
	for _, a := range release.Archives {
		for _, f := range a.Files {
			if a.ID == "functionapp" {
				sources = append(sources, f.Src)
			}
		}
	}
	if !slices.Contains(sources, "host.json") {
		t.Errorf("the function app has %q, and not host.json", sources)
	}
	folders, err := filepath.Glob(filepath.Join("..", "..", "functions", "*", "function.json"))
	testworld.Must(t, err)
	var want []string // what `make dist` stages
	for _, f := range folders {
		if name := filepath.Base(filepath.Dir(f)); name != "shard" {
			want = append(want, name)
		}
	}
	if src := "functions/{" + strings.Join(want, ",") + "}/function.json"; !slices.Contains(sources, src) {
		t.Errorf("the function app has %q, and not %s", sources, src)
	}
}

// pinned matches an action with a commit, or a workflow of this repository.
var pinned = regexp.MustCompile(`^(\./\.github/workflows/[a-z]+\.yml( # .*)?|[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)

func TestWorkflowsRunNothingThatSomebodyElseCanReplace(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", ".github", "workflows", "*.yml"))
	testworld.Must(t, err)
	used := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		testworld.Must(t, err)
		for _, uses := range regexp.MustCompile(`(?m)^\s*-? uses: (.*)$`).FindAllStringSubmatch(string(content), -1) {
			used++
			if !pinned.MatchString(uses[1]) {
				t.Errorf("%s uses %s, want a commit and its version", file, uses[1])
			}
		}
		var workflow struct{ Permissions map[string]string }
		testworld.Must(t, yaml.Unmarshal(content, &workflow))
		if workflow.Permissions == nil || slices.Contains(slices.Collect(maps.Values(workflow.Permissions)), "write") {
			t.Errorf("%s gives all its jobs %v, want nothing that writes", file, workflow.Permissions)
		}
	}
	if used < 2 {
		t.Errorf("found %d actions in %q", used, files)
	}
	dockerfile := read(t, "Dockerfile")
	for _, from := range regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`).FindAllStringSubmatch(dockerfile, -1) {
		if image := from[1]; strings.ContainsAny(image, ":/") && !regexp.MustCompile(`@sha256:[0-9a-f]{64}$`).MatchString(image) {
			t.Errorf("the Dockerfile starts from %s, want a digest", image)
		}
	} // The workflows take the version of Go from go.mod.
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	if toolchain == nil || !strings.Contains(dockerfile, " golang:"+toolchain[1]+"-") {
		t.Errorf("the Dockerfile has another version of Go than go.mod, %q", toolchain)
	}
}
