package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// busy is a screen on which everything has something to say.
func busy() view {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	polled := func(name string, status changefeed.Status, lag int64, partitions, replicas int, step, why string) state.State {
		s := state.State{
			Processor: name, AttemptedAt: noon, PolledAt: noon, Lag: changefeed.ProcessorLag{Time: noon, Charge: 14},
			Decision: &scaling.Decision{Time: noon, Replicas: replicas, Direction: scaling.Out, Reasons: []scaling.Reason{{Step: step, Replicas: replicas, Why: why}}},
		}
		for i := range partitions {
			share := lag / int64(partitions)
			p := changefeed.Partition{Lease: fmt.Sprint(i), Lag: &share, Status: status}
			if share > 0 {
				p.Age = new(int64(63))
			}
			s.Lag.Partitions = append(s.Lag.Partitions, p)
		}
		return s
	}
	v := view{
		since: 64 * time.Second, url: "http://127.0.0.1:41234", walk: `eval "$(./bin/feedscale demo env 41234)"`, keys: true,
		polled: []state.State{
			polled("orders", changefeed.StatusUncheckpointed, 123456, 7, 12, "threshold", "lag 123456 at 20 per replica, capped to 7 partitions"),
			polled("payments", changefeed.StatusLagging, 680, 8, 5, "clamp", "maxReplicaCount is 5"),
			polled("audit", changefeed.StatusStalled, 189, 2, 1, "excludeStalled", "a lag of 189 in 2 stalled partitions is left out"),
		},
		services: []demo.Service{
			{Name: "orders", Replicas: 3, Written: 5742, Processed: 5703},
			{Name: "payments", Replicas: 5, Written: 1800, Processed: 1120},
			{Name: "audit", Replicas: 1, Written: 191},
		},
		faults:  []demo.Fault{{Name: "split", On: true}, {Name: "hang", On: true}, {Name: "throw", On: true}, {Name: "throttle", On: true}, {Name: "broker", On: true}, {Name: "gap", On: true}},
		watch:   "orders: stalled within 15 s. Its leases are renewed, but no position moves: LAG grows, and more replicas would not help.",
		trouble: `msg="a scale event cannot be published: it stays in the outbox" processor=payments error="the broker does not answer"`,
	}
	for i := range 40 {
		at := noon.Add(time.Duration(i) * time.Second).Format(time.TimeOnly)
		v.history = append(v.history, told{
			fmt.Sprintf("%s  payments   %d → %-2d  lagging     lag 390   threshold: lag 390 at 100 per replica", at, i, i+1),
			fmt.Sprintf("%s payments %d → %d  threshold: lag 390 at 100 per replica", at, i, i+1),
		})
	}
	return v
}

func TestTheScreenOfTheDemoAtFourSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []struct{ width, height int }{{60, 14}, {80, 24}, {120, 40}, {200, 50}} {
		name := fmt.Sprintf("demo-%dx%d", size.width, size.height)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testworld.Golden(t, *update, name, strings.Join(busy().lines(console.Style{Width: size.width}, size.height), "\n")+"\n")
		})
	}
}

// paint is what colors a text and takes no room.
var paint = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func TestNothingOfTheScreenIsWiderOrHigherThanTheTerminal(t *testing.T) {
	t.Parallel()
	for width := 60; width <= 220; width++ {
		for _, height := range []int{14, 20, 22, 24, 50} {
			lines := busy().lines(console.Style{Width: width, Colors: true}, height)
			if len(lines) > height {
				t.Errorf("%dx%d: %d lines", width, height, len(lines))
			}
			for _, line := range lines {
				if plain := paint.ReplaceAllString(line, ""); utf8.RuneCountInString(plain) > width {
					t.Errorf("%dx%d: %q is too wide", width, height, plain)
				}
			}
		}
	}
}

func TestWithoutKeysThereIsNoLegend(t *testing.T) {
	t.Parallel()
	v := busy()
	v.keys = false
	if text := strings.Join(v.lines(console.Style{Width: 80}, 24), "\n"); strings.Contains(text, "quit") {
		t.Errorf("got %s", text)
	}
}
