package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// project is a copy of the files that `make dist` reads, for a test to change. Its `go` copies the
// handler that was built for all tests.
type project struct {
	t   *testing.T
	dir string
	bin string // folder of its `go`
}

func newProject(t *testing.T) project {
	t.Helper()
	p := project{t, t.TempDir(), t.TempDir()}
	for _, file := range []string{"Makefile", "host.json", "local.settings.sample.json", "infra/processors.yaml", "functions/poll/function.json", "functions/processors/function.json"} {
		p.write(file, contentOf(t, filepath.Join("..", file)))
	}
	p.program("go", fmt.Sprintf("while test \"$1\" != -o; do shift; done\nexec cp %s \"$2\"\n", filepath.Join(made(t, stage), "handler")))
	return p
}

// program writes a shell script where make finds it.
func (p project) program(name, script string) {
	p.t.Helper()
	testworld.Must(p.t, os.WriteFile(filepath.Join(p.bin, name), []byte("#!/bin/sh\n"+script), 0o755))
}

func (p project) path(file string) string { return filepath.Join(p.dir, filepath.FromSlash(file)) }

func (p project) write(file, text string) {
	p.t.Helper()
	testworld.Must(p.t, os.MkdirAll(filepath.Dir(p.path(file)), 0o755))
	testworld.Must(p.t, os.WriteFile(p.path(file), []byte(text), 0o600))
}

// stage runs `make dist`, and returns what it printed.
func (p project) stage(arguments ...string) (output string, err error) {
	p.t.Helper()
	return p.make("dist", arguments...)
}

func (p project) make(target string, arguments ...string) (output string, err error) {
	p.t.Helper()
	dist := exec.CommandContext(p.t.Context(), "make", append([]string{"-s", target, "VERSION=v1.2.3"}, arguments...)...)
	dist.Dir = p.dir
	dist.Env = append(os.Environ(), "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "MAKEFLAGS=")
	printed, err := dist.CombinedOutput()
	return string(printed), err
}

func (p project) mustStage() (output string) {
	p.t.Helper()
	output, err := p.stage()
	if err != nil {
		p.t.Fatalf("make dist: %v\n%s", err, output)
	}
	return output
}

func TestStagingLeavesALocalSettingsJSONThatIsThere(t *testing.T) {
	t.Parallel()
	const top, staged = "local.settings.json", "dist/local.settings.json"
	const mine, others = `{"Values": {"A": "mine"}}`, `{"Values": {"A": "of another kind"}}`
	sample := contentOf(t, "../local.settings.sample.json")
	for _, c := range []struct {
		rule    string
		prepare func(project)
		want    string
		says    string
	}{
		{"none: the sample", func(project) {}, sample, ""},
		{"one in the staged folder", func(p project) { p.write(staged, mine) }, mine, ""},
		{"one beside the Makefile goes before the sample", func(p project) { p.write(top, mine) }, mine, ""},
		{"one beside the Makefile, and the sample staged before it", func(p project) { p.mustStage(); p.write(top, mine) }, mine, ""},
		{"one beside the Makefile that changes after it was staged", func(p project) { p.write(top, others); p.mustStage(); p.write(top, mine) }, mine, ""},
		{"one beside the Makefile that is gone after it was staged: the sample", func(p project) {
			p.write(top, mine)
			p.mustStage()
			testworld.Must(p.t, os.Remove(p.path(top)))
		}, sample, ""},
		{"two that differ: the staged one stays, and this is said", func(p project) { p.write(top, others); p.write(staged, mine) }, mine, staged + " is yours and stays"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			c.prepare(p)
			_, err := os.Stat(p.path(top))
			topThere := err == nil
			for range 2 { // a second run must not change the result
				output := p.mustStage()
				if got := contentOf(t, p.path(staged)); got != c.want {
					t.Errorf("staged is %s, want %s", got, c.want)
				}
				if c.says == "" && output != "staged in dist\n" || !strings.Contains(output, c.says) {
					t.Errorf("make dist printed %q, want %q in it", output, c.says)
				}
			}
			if _, err := os.Stat(p.path(top)); (err == nil) != topThere {
				t.Errorf("%s was made or removed: %v", top, err)
			}
		})
	}
}

func TestStagingLeavesNothingElseOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("processors.yaml", "processors: []\n")
	p.mustStage()
	if got := contentOf(t, p.path("dist/processors.yaml")); got != "processors: []\n" {
		t.Errorf("staged is %q, want the project's own processors.yaml", got)
	}
	testworld.Must(t, os.RemoveAll(p.path("functions/processors"))) // a function that was removed
	testworld.Must(t, os.Remove(p.path("processors.yaml")))
	p.write("dist/feedscale", "a handler of another name")
	p.mustStage()
	for _, file := range []string{"dist/processors/function.json", "dist/feedscale"} {
		if _, err := os.Stat(p.path(file)); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", file, err)
		}
	}
	if got, want := contentOf(t, p.path("dist/processors.yaml")), contentOf(t, "../infra/processors.yaml"); got != want {
		t.Errorf("staged is %q, want the sample of infra/", got)
	}
}

// TestTheHostFindsTheHandlerOnWindows: the host runs the file that host.json names, and adds no
// .exe.
func TestTheHostFindsTheHandlerOnWindows(t *testing.T) {
	t.Parallel()
	for _, machine := range []string{"GOOS=windows", "GOOS= OS=Windows_NT"} {
		p := newProject(t)
		if output, err := p.stage(strings.Split(machine, " ")...); err != nil {
			t.Fatalf("make dist %s: %v\n%s", machine, err, output)
		}
		if got := contentOf(t, p.path("dist/host.json")); !strings.Contains(got, `"defaultExecutablePath": "handler.exe"`) {
			t.Errorf("%s: host.json is\n%s", machine, got)
		}
		if _, err := os.Stat(p.path("dist/handler.exe")); err != nil {
			t.Errorf("%s: %v", machine, err)
		}
	}
}

// TestMakeStartBringsWhatTheSampleOfTheSettingsNames: Azurite and the stand-ins run until func
// ends.
func TestMakeStartBringsWhatTheSampleOfTheSettingsNames(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	handler := filepath.Join(made(t, stage), "handler")
	waits := "trap 'echo \"$0 $*\" >>ended; exit' TERM\necho >>started\nwhile :; do sleep 0.05; done\n"
	p.program("go", fmt.Sprintf("while test \"$1\" != -o; do shift; done\ncase $2 in bin/) cp %s/azurite bin/feedscale;; *) cp %s \"$2\";; esac\n", p.bin, handler))
	p.program("azurite", waits)
	p.program("func", "until test \"$(cat ../started 2>/dev/null | wc -l)\" -ge 2; do sleep 0.05; done; ls; echo \"func $*\"\n")
	output, err := p.make("start")
	if err != nil || !strings.Contains(output, "host.json") || !strings.HasSuffix(output, "func start\n") {
		t.Errorf("make start: %v\n%s", err, output)
	}
	want := []string{"azurite --silent --location bin/azurite", "./bin/feedscale emulate --container shop/orders:4 --container shop/leases --queue scale-events"}
	testworld.Eventually(t, "both end", func() bool {
		ended, _ := os.ReadFile(p.path("ended"))
		return strings.Contains(string(ended), want[0]) && strings.Contains(string(ended), want[1])
	})
}

func TestWithoutTheToolsMakeStartSaysHowToGetThem(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.program("func", "exit 1\n")
	for _, tool := range []string{"azurite", "func"} {
		testworld.Must(t, os.RemoveAll(filepath.Join(p.bin, tool)))
		if _, err := exec.LookPath(tool); err == nil {
			continue // this machine has it
		}
		if output, err := p.make("start"); err == nil || !strings.Contains(output, tool+" is missing: npm install --global") {
			t.Errorf("without %s: %v\n%s", tool, err, output)
		}
	}
}

func TestNothingIsStagedOverSources(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.write("go.mod", "module example\n")
	for _, folder := range []string{".", p.dir} {
		if output, err := p.stage("DIST=" + folder); err == nil || !strings.Contains(output, "name another folder") {
			t.Errorf("DIST=%s: %v, %q", folder, err, output)
		}
	}
	if got := contentOf(t, p.path("go.mod")); got != "module example\n" {
		t.Errorf("go.mod is %q", got)
	}
}

// TestTheStagedFolderStartsAgainAndAgain: `make start` works repeatedly. func reads
// local.settings.json in the staged folder, and the handler reads the processors.yaml beside it.
func TestTheStagedFolderStartsAgainAndAgain(t *testing.T) {
	t.Parallel()
	w, p := newWorld(t), newProject(t)
	settings := w.settings()
	processors := settings["FEEDSCALE_PROCESSORS"]
	delete(settings, "FEEDSCALE_PROCESSORS")
	p.mustStage() // the sample has no processors, which would replace the file
	mine, err := json.Marshal(map[string]any{"IsEncrypted": false, "Values": settings})
	testworld.Must(t, err)
	p.write("local.settings.json", string(mine))
	p.write("processors.yaml", processors)
	w.Write(testworld.Orders, 25)
	start := func() {
		t.Helper()
		p.mustStage()
		staged := testworld.Decode[struct{ Values map[string]string }](t, []byte(contentOf(t, p.path("dist/local.settings.json"))))
		h := startHost(t, functionshost.Options{Root: p.path("dist"), Settings: staged.Values})
		tick(t, h)
		h.Close()
	}
	start()
	w.wantEvents("orders-000000000001 null->1 true")
	start()
	w.wantEvents("orders-000000000001 null->1 true")
	p.write("processors.yaml", strings.Replace(processors, "changeFeedLagThreshold", "minReplicaCount: 2, changeFeedLagThreshold", 1))
	start()
	w.wantEvents("orders-000000000001 null->1 true", "orders-000000000002 1->2 true")
}
