package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestTheDemoClosesTheLoop_Long: events start workers, which remove the lag, and the demo ends
// cleanly.
func TestTheDemoClosesTheLoop_Long(t *testing.T) {
	c := prepare(t, t.TempDir(), map[string]string{"FEEDSCALE_LISTEN": "127.0.0.1:0"}, "demo")
	stdout, err := c.StdoutPipe()
	testworld.Must(t, err)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	testworld.Must(t, c.Start())
	t.Parallel() // now, since the loop takes time in which other tests can run
	demo := running{c, newLines(stdout)}
	demo.stdout.await(t, "payments   - → 1   bootstrap")
	demo.stdout.await(t, "RU/s of shop/ledger  demand: payments needs ")
	demo.stdout.await(t, "payments   1 → ")
	demo.stdout.await(t, "audit          stalled")
	demo.stdout.await(t, " → 0   ok")
	demo.interrupt(t)
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", stderr.String())
	}
}

// prints has the expected output of the commands in docs/demo.md, by a word of the command.
var prints = map[string]string{
	"status":   "POLLED",
	"poll":     "threshold",
	"check":    "orders",
	"leases":   "order-projection",
	"inspect":  "position",
	"history":  "lag, transactions",
	"simulate": "orders, recorded from",
	"consume":  `"type":"feedscale.scale.v1"`,
}

// TestEveryCommandOfTheWalkWorksOnTheDemoThatRuns runs the lines of docs/demo.md in a shell,
// unchanged.
func TestEveryCommandOfTheWalkWorksOnTheDemoThatRuns(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "demo.md"))
	testworld.Must(t, err)
	block := regexp.MustCompile("(?s)```sh\n(.*?)```").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("docs/demo.md has no commands")
	}
	lines := strings.Split(strings.TrimSpace(block[1]), "\n")

	folder := t.TempDir()
	testworld.Must(t, os.Mkdir(filepath.Join(folder, "bin"), 0o750))
	testworld.Must(t, os.Symlink(made(t, buildTool), filepath.Join(folder, "bin", "feedscale")))
	demo := start(t, folder, map[string]string{"FEEDSCALE_LISTEN": "127.0.0.1:0"}, "demo")
	t.Parallel()
	port := regexp.MustCompile(`demo env (\d+)`).FindStringSubmatch(demo.stdout.await(t, "another terminal"))
	if port == nil {
		t.Fatal("the demo does not say its port")
	}
	shell := func(line string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "sh", "-c", lines[0]+"\n"+line)
		c.Dir, c.Env = folder, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "FEEDSCALE_LISTEN=127.0.0.1:" + port[1]}
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return c
	}
	demo.stdout.await(t, " → 0   ok") // now leases and events exist
	testworld.Eventually(t, "a history of two samples", func() bool {
		return strings.Count(testworld.Run(t, shell("./bin/feedscale history orders --output csv")).Stdout, "\n") > 2
	})

	if got := testworld.Run(t, shell("./bin/feedscale poll")); got.Status != 2 || !strings.Contains(got.Stderr, "another process has the state file open") || !strings.Contains(got.Stderr, "--dry-run") {
		t.Errorf("poll, which writes: %+v", got)
	}
	words := regexp.MustCompile(`feedscale (\w+)`)
	var walked []string
	for _, line := range lines[1:] {
		word := words.FindStringSubmatch(line)[1]
		walked = append(walked, word)
		if prints[word] == "" {
			t.Fatalf("nobody says what %q prints", line)
		}
		if word != "consume" {
			testworld.Eventually(t, line, func() bool { // while the demo splits a partition, a poll is not complete
				got := testworld.Run(t, shell(line))
				return got.Status == 0 && strings.Contains(got.Stdout, prints[word])
			})
			continue
		}
		c := shell(line)
		stdout, err := c.StdoutPipe()
		testworld.Must(t, err)
		testworld.Must(t, c.Start())
		newLines(stdout).await(t, prints[word])
		testworld.Must(t, syscall.Kill(-c.Process.Pid, syscall.SIGINT))
		_ = c.Wait() // the signal ends the shell
	}
	slices.Sort(walked)
	if len(slices.Compact(walked)) != len(prints) {
		t.Errorf("%q were walked, of %d", walked, len(prints))
	}
	demo.interrupt(t)
}
