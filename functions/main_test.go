package main_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/azurite"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// The tests of this package start programs: the tool and the staged function app. The flags of each
// command are tested in functions/internal/cli, in process.

// scratch is a folder that several tests share.
var scratch string

func TestMain(m *testing.M) {
	if clock := os.Getenv(clockSetting); clock != "" {
		os.Exit(beHandler(clock))
	}
	status := 1
	defer func() { os.Exit(status) }()
	folder, err := os.MkdirTemp("", "feedscale-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(folder)
	scratch = folder
	if err := waitTogether(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	status = m.Run()
	if tables != nil {
		if err := tables.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// waitTogether raises the number of parallel tests above the number of CPUs, unless a flag sets it:
// the tests mostly wait for programs that they started.
func waitTogether() error {
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		return parallel.Value.Set(fmt.Sprint(2 * runtime.GOMAXPROCS(0)))
	}
	return nil
}

// tables is Azurite, started by the first test that needs it.
var tables *azurite.Server

// startTables starts Azurite.
var startTables = sync.OnceValues(func() (*azurite.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testworld.Deadline)
	defer cancel()
	server, err := azurite.Start(ctx)
	tables = server
	return server, err
})

// stage stages the function app.
var stage = sync.OnceValues(func() (folder string, err error) {
	folder = filepath.Join(scratch, "app")
	return folder, makeDist(context.Background(), folder)
})

func makeDist(ctx context.Context, folder string, options ...string) error {
	dist := exec.CommandContext(ctx, "make", append([]string{"dist", "DIST=" + folder, "GOOS=", "GOARCH=", "VERSION=v1.2.3"}, options...)...)
	dist.Dir = ".."
	if output, err := dist.CombinedOutput(); err != nil {
		return fmt.Errorf("make dist: %w\n%s", err, output)
	}
	return nil
}

// buildTool builds the command-line tool.
var buildTool = sync.OnceValues(func() (file string, err error) {
	file = filepath.Join(scratch, "feedscale")
	if output, err := exec.Command("go", "build", "-o", file, "./cmd/feedscale").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return file, nil
})

// made is the result of one of the functions above, computed once for all tests.
func made[T any](t *testing.T, make func() (T, error)) T {
	t.Helper()
	value, err := make()
	testworld.Must(t, err)
	return value
}

// prepare prepares the tool to run in a folder, with only the settings in its environment.
func prepare(t *testing.T, folder string, settings map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), made(t, buildTool), args...)
	c.Dir = folder
	c.Env = append(testworld.Environ(settings), "HOME="+folder)
	return c
}

// command runs the tool and waits for its end.
func command(t *testing.T, folder string, settings map[string]string, args ...string) testworld.Result {
	t.Helper()
	return testworld.Run(t, prepare(t, folder, settings, args...))
}

// running is a command that was started.
type running struct {
	*exec.Cmd
	stdout *lines
}

// start starts the tool.
func start(t *testing.T, folder string, settings map[string]string, args ...string) running {
	t.Helper()
	c := prepare(t, folder, settings, args...)
	stdout, err := c.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, c.Start())
	return running{c, newLines(stdout)}
}

// startLogged is start, and also returns the lines of the log.
func startLogged(t *testing.T, folder string, settings map[string]string, args ...string) (running, *lines) {
	t.Helper()
	c := prepare(t, folder, settings, args...)
	stdout, err := c.StdoutPipe()
	testworld.Must(t, err)
	stderr, err := c.StderrPipe()
	testworld.Must(t, err)
	testworld.Must(t, c.Start())
	return running{c, newLines(stdout)}, newLines(stderr)
}

// interrupt ends the command as Ctrl-C does, and checks its exit.
func (r running) interrupt(t *testing.T) {
	t.Helper()
	testworld.Must(t, r.Process.Signal(os.Interrupt))
	if err := r.Wait(); err != nil {
		t.Errorf("%s, interrupted: %v", r.Args[1], err)
	}
}

// lines returns the output lines of a running command.
type lines struct{ next chan string }

func newLines(r io.Reader) *lines {
	l := &lines{next: make(chan string, 1000)}
	go func() {
		defer close(l.next)
		for scanner := bufio.NewScanner(r); scanner.Scan(); {
			l.next <- scanner.Text()
		}
	}()
	return l
}

// await returns the next line that contains a text.
func (l *lines) await(t *testing.T, text string) string {
	t.Helper()
	timeout := time.After(testworld.Deadline)
	for {
		select {
		case line, ok := <-l.next:
			if !ok {
				t.Fatalf("the command ended before it printed %s", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-timeout:
			t.Fatalf("%s was not printed in time", text)
		}
	}
}
