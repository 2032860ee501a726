package main_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// signalled are settings that keep so many messages in a signal queue.
func signalled(w *testworld.Shop, queue string, replicas int) map[string]string {
	settings := w.Settings()
	settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
	settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "changeFeedLagThreshold",
		fmt.Sprintf("signalQueue: %s, minReplicaCount: %d, cooldownPeriod: 0, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, changeFeedLagThreshold", queue, replicas), 1)
	return settings
}

func signals(w *testworld.Shop, queue string) (n int) {
	for _, m := range w.Namespace.Messages(queue) {
		if m.Subject == servicebus.SignalType && m.State == servicebusfake.Active {
			n++
		}
	}
	return n
}

// TestTwoTicksMakeEverySignalQueueRightWhereverAProcessWasKilled kills a tick at each of its
// operations on the namespace, while the tick changes the count of a queue or moves it to another
// queue.
func TestTwoTicksMakeEverySignalQueueRightWhereverAProcessWasKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule       string
		queue      string // after
		replicas   int
		first, new int // final counts of the queues first and new
	}{
		{"up", "first", 7, 7, 0},
		{"down", "first", 1, 1, 0},
		{"to another queue", "new", 2, 0, 2},
	} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the operation done %v", c.rule, done), func(t *testing.T) {
				t.Parallel()
				steps := 0
				for ended := false; !ended; steps += 3 {
					w, folder := testworld.NewShop(t, testworld.Options{}), t.TempDir()
					for _, queue := range []string{"first", "new"} {
						testworld.Must(t, w.Namespace.CreateQueue(servicebusfake.QueueSpec{Name: queue}))
					}
					if r := command(t, folder, signalled(w, "first", 4), "poll"); r.Status != 0 || signals(w, "first") != 4 {
						t.Fatalf("at first %d signals, %+v", signals(w, "first"), r)
					}
					after := signalled(w, c.queue, c.replicas)
					ended = !testworld.KillAt(t, w.Namespace, prepare(t, folder, after, "poll"), steps, done)
					for range 2 {
						if r := command(t, folder, after, "poll"); r.Status != 0 {
							t.Errorf("killed at step %d: %+v", steps, r)
						}
					}
					if first, renamed := signals(w, "first"), signals(w, "new"); first != c.first || renamed != c.new {
						t.Errorf("killed at step %d: %d and %d signals, want %d and %d", steps, first, renamed, c.first, c.new)
					}
				}
				if steps < 20 {
					t.Errorf("only %d steps", steps)
				}
			})
		}
	}
}
