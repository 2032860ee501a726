package console_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// held is what is held of states, all polled some seconds before noon.
func held(processors, groups []state.State) report.List {
	all := report.List{Time: noon}
	for _, s := range processors {
		s.AttemptedAt = noon.Add(-5 * time.Second)
		all.Processors = append(all.Processors, report.NewStored(report.Lookup{State: s}))
	}
	for _, s := range groups {
		s.AttemptedAt = noon.Add(-5 * time.Second)
		all.Groups = append(all.Groups, report.NewStoredGroup(report.Lookup{State: s}))
	}
	return all
}

// of is a state of orders with 3 replicas, decided for a reason.
func of(lag changefeed.ProcessorLag, reasons ...scaling.Reason) state.State {
	reasons = append(reasons, scaling.Reason{Step: "threshold", Replicas: 3, Why: "lag 300 at 100 per replica"})
	return state.State{Processor: "orders", Lag: lag, PolledAt: noon, Decision: decision(new(3), scaling.None, 300, reasons...)}
}

// leases are partitions that were measured.
func leases(partitions ...changefeed.Partition) changefeed.ProcessorLag {
	return changefeed.ProcessorLag{Time: noon, Partitions: partitions}
}

func TestTheWorstIsPrintedFirst(t *testing.T) {
	t.Parallel()
	all := func() report.List {
		states := append(polled()[1:], follows()...)
		list := held(states, groups())
		states[2].AttemptedAt = noon.Add(-5 * time.Second)
		list.Processors[2] = report.NewStored(report.Lookup{State: states[2], Stale: true})
		return list
	}
	golden(t, "status", func(w io.Writer, style console.Style) error {
		return console.WriteStatus(w, all(), console.Listing{All: true}, style)
	})
	golden(t, "status-json", func(w io.Writer, _ console.Style) error { return console.WriteStatusJSON(w, all(), console.Listing{}) })
}

func TestTheDocumentationShowsWhatStatusPrints(t *testing.T) {
	t.Parallel()
	stalled := partition("3", "audit-7", 300, 35_000, changefeed.StatusStalled)
	stalled.CheckpointLSN, stalled.Stall = new(int64(4711)), &changefeed.Stall{Kind: changefeed.StallHung, Since: time.Date(2026, 3, 1, 2, 14, 0, 0, time.UTC)}
	audit := of(leases(stalled, partition("0", "audit-7", 0, 0, changefeed.StatusOK)))
	audit.Processor = "audit"
	orders := of(leases(partition("0", "orders-1", 900, 700, changefeed.StatusLagging)),
		scaling.Reason{Step: "threshold", Replicas: 9, Why: "lag 900 at 100 per replica"}, scaling.Reason{Step: "clamp", Replicas: 3, Why: "maxReplicaCount is 3"})
	quiet := of(leases(partition("0", "mails-1", 0, 0, changefeed.StatusOK)))
	quiet.Processor = "mails"
	quiet.Containers = follows()[0].Containers[:1]
	all := held([]state.State{quiet, orders, audit}, nil)

	page, err := os.ReadFile("../../../docs/operate.md")
	testworld.Must(t, err)
	_, rest, _ := strings.Cut(string(page), "$ feedscale status\n")
	shown, _, _ := strings.Cut(rest, "```")
	var b strings.Builder
	testworld.Must(t, console.WriteStatus(&b, all, console.Listing{All: true}, console.Style{}))
	if b.String() != shown {
		t.Errorf("docs/operate.md shows\n%s\nand status prints\n%s", shown, b.String())
	}
}

// TestACauseIsSaidOnceAndThenWhatDiffers has 30 processors that fail by one cause, and 25 that do not.
func TestACauseIsSaidOnceAndThenWhatDiffers(t *testing.T) {
	t.Parallel()
	cause := changefeed.Cause{Of: "account shop", Says: "refuses (429, throttled)", Effect: "could not be measured", Remedy: "raise its throughput", Since: noon.Add(-9 * time.Hour)}
	var states []state.State
	for i := range 55 {
		s := of(leases(changefeed.Partition{Lease: "0", Lag: new(int64(7)), Status: changefeed.StatusLagging}))
		if s.Processor = fmt.Sprintf("orders-%02d", i); i < 30 {
			s.Lag = changefeed.ProcessorLag{Time: noon, Error: fmt.Sprintf("request %d is throttled", i), Causes: []changefeed.Cause{cause}}
		}
		if i == 3 { // and something else is wrong with it
			s.Lag.Error = ""
			s.Lag.Partitions = []changefeed.Partition{
				{Lease: "0", Status: changefeed.StatusUnknown, Error: "request 3 is throttled"},
				{Lease: "1", Lag: new(int64(7)), Status: changefeed.StatusStalled, Owner: "worker-1", Stall: &changefeed.Stall{Kind: changefeed.StallHung}},
			}
		}
		clock := changefeed.Cause{Of: "the clock of this machine", Says: "is wrong", Effect: "followed the corrected time", Beside: true}
		s.Lag.Causes = append(s.Lag.Causes, clock)
		states = append(states, s)
	}
	list := held(states, nil)
	list = report.NewList(list.Time, list.Processors, list.Groups)
	for _, c := range []struct {
		all             bool
		rows, throttles int
		more            string
	}{{false, 20, 0, "35 more: --all"}, {true, 55, 0, ""}} {
		var b strings.Builder
		testworld.Must(t, console.WriteStatus(&b, list, console.Listing{All: c.all}, console.Style{}))
		text := b.String()
		if !strings.Contains(text, "\norders-03  ") || !strings.Contains(text, "partition 1 has not moved") {
			t.Errorf("what else is wrong is hidden:\n%s", text)
		}
		_, text, _ = strings.Cut(text, "account")
		first, rest, _ := strings.Cut("account"+text, "\n")
		if first != "account shop refuses (429, throttled) since 03:00 UTC: 30 processors could not be measured." {
			t.Errorf("it begins with %q", first)
		}
		if got := strings.Count(rest, " 5s ago"); got != c.rows {
			t.Errorf("%d rows, want %d:\n%s", got, c.rows, rest)
		}
		if got := strings.Count(rest, "is throttled"); got != c.throttles || !strings.Contains(rest, c.more) {
			t.Errorf("%d findings repeat the cause, or %q is missing:\n%s", got, c.more, rest)
		}
	}
}
