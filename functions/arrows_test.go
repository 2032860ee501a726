package main_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"os"
)

const module = "github.com/feedscale/feedscale/"

// dependencies lists what a package of the module links, itself included. Packages of the module come
// without the module's name.
func dependencies(t *testing.T, of string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", module+of)
	output, err := list.Output()
	must(t, err)
	var found []string
	for line := range strings.Lines(string(output)) {
		found = append(found, strings.TrimPrefix(strings.TrimSpace(line), module))
	}
	return found
}

// under reports whether a package is one of some, or below one.
func under(pkg string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") })
}

// TestArrowsPointOneWay holds the arrows of docs/architecture.md.
func TestArrowsPointOneWay(t *testing.T) {
	t.Parallel()
	azure := []string{"github.com/Azure"}
	emulator := []string{"pkg/emulator", "pkg/demo", "pkg/benchmark"}
	clientGo := []string{"k8s.io", "sigs.k8s.io"}
	network := []string{"net", "os", "pkg/cosmos", "pkg/estimator"}
	for _, c := range []struct {
		rule string
		of   []string
		not  []string // what must not be linked
	}{
		{"the domain reaches neither network nor files", []string{"pkg/changefeed", "pkg/scaling"}, []string{"net/http", "net", "os/exec", "pkg/cosmos", "pkg/state/boltstore"}},
		{"the event is the standard library alone", []string{"pkg/events"}, append(azure, network[2:]...)},
		{"what is shown links no SDK", []string{"pkg/report", "pkg/state"}, append(azure, network[2:]...)},
		{"what answers HTTP from the state makes no call to Cosmos DB", []string{"functions/processors", "functions/dashboard", "functions/metrics"}, append(azure, network[2:]...)},
		{"the handler carries no stand-in, no demo and no client-go", []string{"functions"}, append(emulator, clientGo...)},
		{"the commands are the same for both programs", []string{"functions/internal/cli"}, append(emulator, clientGo...)},
		{"connect is below the app", []string{"functions/internal/connect"}, []string{"functions/internal/app", "functions/internal/cli", "functions/internal/check", "functions/internal/discover", "functions/internal/console"}},
		{"values do not print", []string{"functions/internal/check", "functions/internal/discover", "functions/internal/app"}, []string{"functions/internal/console", "functions/internal/cli"}},
		{"nothing below knows the command line", []string{"functions/internal/console"}, []string{"functions/internal/cli", "functions/internal/app"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for _, of := range c.of {
				for _, pkg := range dependencies(t, of) {
					if under(pkg, c.not...) {
						t.Errorf("%s links %s", of, pkg)
					}
				}
			}
		})
	}
}

// imports lists the packages of the module with what each imports itself, tests aside.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	list.Dir = ".."
	output, err := list.Output()
	must(t, err)
	found := make(map[string][]string)
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		for i, field := range fields {
			fields[i] = strings.TrimPrefix(field, module)
		}
		found[fields[0]] = fields[1:]
	}
	return found
}

func TestOnlyWhoMayKnowsAPackage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pkg string
		by  []string // who may import it
	}{
		{"pkg/cosmos", []string{"pkg/cosmos", "pkg/estimator", "pkg/benchmark", "functions/internal/connect", "functions/internal/check", "functions/internal/discover", "functions/internal/cli", "pkg/emulator/interop"}},
		{"pkg/emulator", []string{"pkg/emulator", "pkg/demo", "pkg/benchmark", "functions/cmd/feedscale"}},
		{"pkg/demo", []string{"pkg/demo", "functions/cmd/feedscale"}},
		{"pkg/estimator", []string{"pkg/poller", "pkg/benchmark", "functions/internal/connect", "functions/internal/app", "pkg/emulator/interop"}},
	} {
		for importer, imported := range imports(t) {
			for _, pkg := range imported {
				if under(pkg, c.pkg) && !under(importer, c.by...) {
					t.Errorf("%s imports %s", importer, pkg)
				}
			}
		}
	}
}

// TestPurePackagesReadNoClock looks at the sources: time comes into them as a value.
func TestPurePackagesReadNoClock(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"changefeed", "scaling", "simulate", "report", "state", "events"} {
		files, err := filepath.Glob(filepath.Join("..", "pkg", pkg, "*.go"))
		must(t, err)
		if len(files) == 0 {
			t.Errorf("pkg/%s has no sources", pkg)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			must(t, err)
			for _, call := range []string{"time.Now(", "time.Since(", "time.Until(", "os.Getenv(", "os.Open(", "os.ReadFile("} {
				if strings.Contains(string(text), call) {
					t.Errorf("%s calls %s", file, strings.TrimSuffix(call, "("))
				}
			}
		}
	}
}

// maxHandler bounds the staged handler, in bytes: a cold start loads all of it.
const maxHandler = 25 << 20

func TestTheHandlerIsSmall(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(filepath.Join(made(t, stage), "handler"))
	must(t, err)
	if info.Size() > maxHandler {
		t.Errorf("the handler has %d bytes, more than %d", info.Size(), maxHandler)
	}
}

func TestTheHandlerSaysWhereTheOtherCommandsAre(t *testing.T) {
	t.Parallel()
	handler := exec.CommandContext(t.Context(), filepath.Join(made(t, stage), "handler"), "consume")
	handler.Env = []string{"HOME=" + t.TempDir()}
	output, err := handler.CombinedOutput()
	if err == nil || handler.ProcessState.ExitCode() != 2 || !strings.Contains(string(output), `no command "consume" in the handler of a function app; the command-line tool may have it: go build ./functions/cmd/feedscale`) {
		t.Errorf("%v: %s", err, output)
	}
}
