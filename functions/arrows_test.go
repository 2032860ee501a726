package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const module = "github.com/feedscale/feedscale/"

// listed is a package of the module, without its tests. Packages of the module are named relative
// to it.
type listed struct {
	imports []string // what it imports itself
	links   []string // imports, direct and indirect, and the package itself
}

// packages are all packages of the module.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	list := exec.Command("go", "list", "-f", `{{.ImportPath}}|{{join .Imports " "}}|{{join .Deps " "}}`, "./...")
	list.Dir = ".."
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := make(map[string]listed)
	for line := range strings.Lines(strings.ReplaceAll(string(output), module, "")) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		found[fields[0]] = listed{strings.Fields(fields[1]), append(strings.Fields(fields[2]), fields[0])}
	}
	return found, nil
})

// under reports whether a package is one of these, or below one of them.
func under(pkg string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return pkg == root || strings.HasPrefix(pkg, root+"/") })
}

// TestArrowsPointOneWay checks the arrows of docs/architecture.md.
func TestArrowsPointOneWay(t *testing.T) {
	t.Parallel()
	azure := []string{"github.com/Azure"}
	emulator := []string{"pkg/emulator", "pkg/demo", "pkg/benchmark"}
	clientGo := []string{"k8s.io", "sigs.k8s.io"}
	network := []string{"net", "os", "pkg/cosmos", "pkg/estimator"}
	for _, c := range []struct {
		rule string
		of   []string
		not  []string // packages that must not be linked
	}{
		{"the domain reaches neither network nor files", []string{"pkg/changefeed", "pkg/health", "pkg/scaling", "pkg/scaling/sizing"}, []string{"net/http", "net", "os/exec", "pkg/cosmos", "pkg/state/boltstore"}},
		{"what is measured knows no decision", []string{"pkg/health"}, []string{"pkg/scaling"}},
		{"the event is the standard library alone", []string{"pkg/events"}, append(azure, network[2:]...)},
		{"what is shown and what is replayed link no SDK", []string{"pkg/report", "pkg/shadow", "pkg/state", "pkg/simulate"}, append(azure, network[2:]...)},
		{"what answers HTTP from the state makes no call to Cosmos DB", []string{"functions/processors", "functions/dashboard", "functions/metrics"}, append(azure, network[2:]...)},
		{"the handler carries no stand-in, no demo and no client-go", []string{"functions"}, append(emulator, clientGo...)},
		{"the handler does not import what others wrote", []string{"functions", "functions/internal/cli"}, []string{"functions/internal/importer"}},
		{"what is imported is read without files and network", []string{"functions/internal/importer", "pkg/yamltree"}, append(azure, network[2:]...)},
		{"the handler and the commands of both programs answer nobody over gRPC", []string{"functions", "functions/internal/cli"}, []string{"pkg/scaler"}},
		{"what answers KEDA knows no service", []string{"pkg/scaler"}, append(azure, network[2:]...)},
		{"the commands are the same for both programs", []string{"functions/internal/cli"}, append(emulator, clientGo...)},
		{"connect is below the app", []string{"functions/internal/connect"}, []string{"functions/internal/app", "functions/internal/cli", "functions/internal/check", "functions/internal/discover", "functions/internal/console"}},
		{"values do not print", []string{"functions/internal/check", "functions/internal/discover", "functions/internal/app"}, []string{"functions/internal/console", "functions/internal/program", "functions/internal/cli"}},
		{"nothing below knows the commands", []string{"functions/internal/console", "functions/internal/program"}, []string{"functions/internal/cli", "functions/internal/app"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for _, of := range c.of {
				links := made(t, packages)[of].links
				if len(links) == 0 {
					t.Errorf("there is no %s", of)
				}
				for _, pkg := range links {
					if under(pkg, c.not...) {
						t.Errorf("%s links %s", of, pkg)
					}
				}
			}
		})
	}
}

// TestTheChangeFeedProcessorImportsLittle: an importer gets azcore, azcosmos, the domain and the
// standard library, and nothing else.
func TestTheChangeFeedProcessorImportsLittle(t *testing.T) {
	t.Parallel()
	const of = "pkg/changefeedprocessor"
	for name := range made(t, packages) {
		if name != of && under(name, of) {
			t.Errorf("%s is a package of its own", name)
		}
	}
	for _, pkg := range made(t, packages)[of].imports {
		standard := !strings.Contains(strings.Split(pkg, "/")[0], ".") && !strings.HasPrefix(pkg, "pkg/")
		sdk := under(pkg, "github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos")
		if !standard && !sdk && pkg != "pkg/changefeed" {
			t.Errorf("%s imports %s", of, pkg)
		}
	}
}

// TestWhatMakeRunBuildsIsLight: the first build compiles no client-go and no external scaler.
func TestWhatMakeRunBuildsIsLight(t *testing.T) {
	t.Parallel()
	recipe := exec.Command("make", "-n", "run")
	recipe.Dir = ".."
	text, err := recipe.Output()
	testworld.Must(t, err)
	const tags, built = "-tags demo", "./functions/cmd/feedscale"
	if !strings.Contains(string(text), tags) || !strings.Contains(string(text), built) {
		t.Fatalf("make run does: %s", text)
	}
	if says := strings.Index(string(text), "building feedscale"); says < 0 || says > strings.Index(string(text), "go build") {
		t.Error("it does not say that it builds, before it does")
	}
	list := exec.Command("go", "list", "-deps", "-tags", "demo", built)
	list.Dir = ".."
	output, err := list.Output()
	testworld.Must(t, err)
	linked := strings.Fields(string(output))
	for _, pkg := range linked {
		if under(pkg, "k8s.io", "sigs.k8s.io", module+"pkg/scaler") {
			t.Errorf("it links %s", pkg)
		}
	}
	if !slices.Contains(linked, module+"pkg/demo") {
		t.Error("it has no demo")
	}
}

func TestOnlyWhoMayKnowsAPackage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pkg string
		by  []string // the only allowed importers
	}{
		{"pkg/cosmos", []string{"pkg/cosmos", "pkg/estimator", "pkg/benchmark", "functions/internal/connect", "functions/internal/check", "functions/internal/discover", "functions/internal/cli", "pkg/actions/throughput", "pkg/emulator/interop", "pkg/emulator/testworld"}},
		{"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", []string{"pkg/cosmos", "pkg/changefeedprocessor", "pkg/benchmark", "pkg/demo", "pkg/emulator"}},
		{"pkg/emulator/testworld", nil}, // only tests
		{"pkg/emulator", []string{"pkg/emulator", "pkg/demo", "pkg/benchmark", "functions/cmd/feedscale"}},
		{"pkg/demo", []string{"pkg/demo", "functions/cmd/feedscale"}},
		{"pkg/estimator", []string{"pkg/poller", "pkg/benchmark", "functions/internal/connect", "functions/internal/app", "functions/internal/check", "pkg/emulator/interop", "pkg/emulator/testworld"}},
	} {
		for importer, listed := range made(t, packages) {
			for _, pkg := range listed.imports {
				if under(pkg, c.pkg) && !under(importer, c.by...) {
					t.Errorf("%s imports %s", importer, pkg)
				}
			}
		}
	}
}

// TestPurePackagesReadNoClock reads the sources: these packages get the time as a value.
func TestPurePackagesReadNoClock(t *testing.T) {
	t.Parallel()
	for _, pkg := range []string{"changefeed", "crontab", "connectionstring", "health", "scaling", "scaling/sizing", "simulate", "report", "state", "events", "yamltree", "../functions/internal/importer"} {
		files, err := filepath.Glob(filepath.Join("..", "pkg", pkg, "*.go"))
		testworld.Must(t, err)
		if len(files) == 0 {
			t.Errorf("pkg/%s has no sources", pkg)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			testworld.Must(t, err)
			for _, call := range []string{"time.Now(", "time.Since(", "time.Until(", "os.Getenv(", "os.Open(", "os.ReadFile("} {
				if strings.Contains(string(text), call) {
					t.Errorf("%s calls %s", file, strings.TrimSuffix(call, "("))
				}
			}
		}
	}
}
