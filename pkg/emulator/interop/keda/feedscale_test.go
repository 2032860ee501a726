package keda_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// tool is the command-line tool, which TestMain builds.
var tool string

func TestMain(m *testing.M) {
	status := 1
	defer func() { os.Exit(status) }()
	folder, err := os.MkdirTemp("", "feedscale-keda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer os.RemoveAll(folder)
	tool = filepath.Join(folder, "feedscale")
	build := exec.Command("go", "build", "-o", tool, "./functions/cmd/feedscale")
	build.Dir = filepath.Join("..", "..", "..", "..")
	if output, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, output)
		return
	}
	status = m.Run()
}

// watched is a shop that `feedscale run` watches, each second.
type watched struct {
	*testworld.Shop
	settings map[string]string
	folder   string // of its state
	scaler   string // address of the external scaler
	run      *exec.Cmd
	events   chan string // lines of standard output
}

// watch starts it. fields are more of the processor orders.
func watch(t *testing.T, fields string, settings map[string]string) *watched {
	t.Helper()
	w := &watched{Shop: testworld.NewShop(t, testworld.Options{}), folder: t.TempDir(), scaler: testworld.FreeAddress(t)}
	w.settings = w.Settings()
	w.settings["FEEDSCALE_LISTEN"], w.settings["FEEDSCALE_SCALER_LISTEN"] = "127.0.0.1:0", w.scaler
	w.settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
	w.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(w.settings["FEEDSCALE_PROCESSORS"], "}]}", fields+"}]}", 1)
	for name, value := range settings {
		w.settings[name] = value
	}
	w.start(t)
	t.Cleanup(func() { w.kill(t) })
	return w
}

func (w *watched) start(t *testing.T) {
	t.Helper()
	w.run = exec.Command(tool, "run")
	w.run.Dir, w.run.Env = w.folder, append(testworld.Environ(w.settings), "HOME="+w.folder)
	stdout, err := w.run.StdoutPipe()
	testworld.Must(t, err)
	testworld.Must(t, w.run.Start())
	w.events = make(chan string, 1000)
	go lines(stdout, w.events)
}

func lines(r io.Reader, to chan<- string) {
	defer close(to)
	for scanner := bufio.NewScanner(r); scanner.Scan(); {
		to <- scanner.Text()
	}
}

// kill kills it without warning, once.
func (w *watched) kill(t *testing.T) {
	t.Helper()
	if w.run.ProcessState == nil {
		testworld.Must(t, w.run.Process.Kill())
		_ = w.run.Wait() // which says that it was killed
	}
}

// published waits until a count is published, and returns when that was.
func (w *watched) published(t *testing.T, replicas int) time.Time {
	t.Helper()
	late := time.After(testworld.Deadline)
	for {
		select {
		case line, ok := <-w.events:
			if !ok {
				t.Fatal("feedscale ended")
			}
			if strings.Contains(line, fmt.Sprintf(`"desiredReplicas":%d,`, replicas)) {
				return time.Now()
			}
		case <-late:
			t.Fatalf("%d replicas were not published", replicas)
		}
	}
}
