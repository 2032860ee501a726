package cli_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/containerapp"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
	"github.com/feedscale/feedscale/pkg/actions/webhook"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// update has the tests rewrite the golden files, which are what the terminal shows, instead of
// comparing with them: go test ./functions/internal/cli -update
var update = flag.Bool("update", false, "rewrite the golden files of this package")

// isProgram in the environment has this test binary be the program that it tests.
const isProgram = "CLI_TEST_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(isProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(program.Main(ctx, program.OS(version), commands(), ""))
	}
	os.Exit(m.Run())
}

const version = "v1.2.3"

// commands are those of this package, in the order of the tool.
func commands() []program.Command {
	kinds := actions.Kinds{actions.StdoutKind(), webhook.Kind(), kubernetes.Kind(), containerapp.Kind()}
	return []program.Command{
		cli.Serve, cli.Run(nil), cli.Poll, cli.Status, cli.History, cli.Inspect, cli.Explain, cli.Report, cli.Simulate,
		cli.Consume(kinds), cli.Check(kinds), cli.Leases, cli.Init(kinds), program.Completion, cli.Schema, program.Version,
	}
}

// program is feedscale in an environment that has nothing but settings.
type feedscale struct {
	settings map[string]string
	now      func() time.Time // nil is time.Now
	width    int              // of the terminal that it prints to; 0 = it prints to none
	person   bool             // who has a terminal for standard error, too
	folder   string           // that it runs in where it is a process of its own
}

// run runs a command in this process.
func (p feedscale) run(t *testing.T, args ...string) testworld.Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := program.Main(t.Context(), p.env(&stdout, &stderr, args...), commands(), "")
	return testworld.Result{Status: status, Stdout: stdout.String(), Stderr: stderr.String()}
}

// env is what a command of the program meets.
func (p feedscale) env(stdout, stderr io.Writer, args ...string) program.Env {
	env := program.Env{
		Args: args, Environ: testworld.Environ(p.settings), Stdout: stdout, Stderr: stderr, Now: p.now, Version: version,
		Terminal:    func() (width, height int, ok bool) { return p.width, 25, p.width > 0 },
		ErrTerminal: func() (width, height int, ok bool) { return p.width, 25, p.person },
	}
	if p.now == nil {
		env.Now = time.Now
	}
	return env
}

// apart runs a command as a process of its own: for what Go and the SDKs read once from the
// environment of a process, and for files that are looked for where it runs.
func (p feedscale) apart(t *testing.T, args ...string) testworld.Result {
	t.Helper()
	if p.folder == "" {
		p.folder = t.TempDir()
	}
	executable, err := os.Executable()
	testworld.Must(t, err)
	c := exec.CommandContext(t.Context(), executable, args...)
	c.Dir = p.folder
	c.Env = append(testworld.Environ(p.settings), isProgram+"=1", "HOME="+p.folder)
	return testworld.Run(t, c)
}

// stateFile is a state file in a folder of its own. It is not there yet.
func stateFile(t *testing.T) string {
	t.Helper()
	return "bolt:" + filepath.Join(t.TempDir(), "feedscale.db")
}

// watching returns a program that watches a shop, with its state in a file and its clock stopped at
// noon.
func watching(t *testing.T) (*testworld.Shop, *testworld.Clock, feedscale) {
	t.Helper()
	clock := testworld.NewClock(noon)
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	p := feedscale{settings: w.Settings(), now: clock.Now}
	p.settings["FEEDSCALE_STATE"] = stateFile(t)
	return w, clock, p
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
