package main_test

import (
	"bytes"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestTheDemoClosesTheLoop holds that events bring workers, which take the lag away, and that the end
// is clean.
func TestTheDemoClosesTheLoop(t *testing.T) {
	c := prepare(t, t.TempDir(), map[string]string{"FEEDSCALE_LISTEN": "127.0.0.1:0"}, "demo")
	stdout, err := c.StdoutPipe()
	testworld.Must(t, err)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	testworld.Must(t, c.Start())
	t.Parallel() // only now: the loop takes its time, in which other tests run
	demo := running{c, newLines(stdout)}
	demo.stdout.await(t, "payments   - → 1   bootstrap")
	demo.stdout.await(t, "RU/s of shop/ledger  demand: payments needs ")
	demo.stdout.await(t, "payments   1 → ")
	demo.stdout.await(t, "audit      stalled")
	demo.stdout.await(t, " → 0   ok")
	demo.interrupt(t)
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", stderr.String())
	}
}
