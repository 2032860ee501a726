package console_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestEachCauseOfANightIsTheFirstSentence: status names the cause first, with at most the rows of
// the processors above it, and then the command or remedy to use next.
func TestEachCauseOfANightIsTheFirstSentence(t *testing.T) {
	t.Parallel()
	stalled := func(kind changefeed.StallKind, owner string) changefeed.ProcessorLag {
		p := partition("3", owner, 300, 900, changefeed.StatusStalled)
		p.CheckpointLSN, p.Stall = new(int64(4711)), &changefeed.Stall{Kind: kind, Since: noon.Add(-time.Hour), Owners: []string{"orders-1"}}
		return leases(p)
	}
	caused := func(c changefeed.Cause, lag changefeed.ProcessorLag) changefeed.ProcessorLag {
		c.Since = noon.Add(-time.Hour)
		lag.Causes = []changefeed.Cause{c}
		return lag
	}
	throttled := caused(changefeed.Cause{Of: "account shop", Says: "refuses (429, throttled)", Effect: "could not be measured", Remedy: "raise its throughput"},
		changefeed.ProcessorLag{Time: noon, Error: "request 7 is throttled"})
	fine := leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK))
	uncovered := fine
	uncovered.Coverage.Holes = []changefeed.Range{{Min: "", Max: "1F"}}
	renamed := leases(partition("0", "", 40, 900, changefeed.StatusUnclaimed))
	body, err := events.ScaleEvent{Time: noon.Add(-time.Hour), Data: events.Data{Processor: "orders", Epoch: 1, Sequence: 1, Direction: "out", Status: "ok"}}.Encode()
	testworld.Must(t, err)
	for _, c := range []struct {
		cause      string
		processors int
		of         report.Lookup
		first, do  string // regular expressions
	}{
		{"the handler hangs", 1, report.Lookup{State: of(stalled(changefeed.StallHung, "orders-1"))}, "^orders: partition 3 .*the handler does not return", "at that position"},
		{"the handler throws", 1, report.Lookup{State: of(stalled(changefeed.StallFlapping, ""))}, "^orders: partition 3 .*the handler throws", "at that position"},
		{"the account throttles 3", 3, report.Lookup{State: of(throttled)}, "^account shop refuses .429, throttled. since 11:00 UTC: 3 processors", "raise its throughput"},
		{"the account throttles 500", 500, report.Lookup{State: of(throttled)}, "^account shop refuses .429, throttled. since 11:00 UTC: 500 processors", "raise its throughput"},
		{"a split", 1, report.Lookup{State: of(leases(partition("0", "", 9, 90, changefeed.StatusSplitting)))}, "^orders: .*split", "replica"},
		{"the broker is down", 1, report.Lookup{
			State:   state.State{Processor: "orders", Lag: fine, Undelivered: &state.DeliveryFailure{Cause: changefeed.Cause{Of: "queue shop/scale", Says: "does not answer", Effect: changefeed.Unpublished, Remedy: "run feedscale check"}}},
			Waiting: []state.Event{{Body: body}}, Overdue: true,
		}, "^queue shop/scale does not answer since 11:00 UTC: orders could not publish", "feedscale check"},
		{"the clock jumps", 1, report.Lookup{State: of(caused(changefeed.Cause{Of: "the clock of this machine", Says: "is more than a minute behind", Effect: "followed the corrected time", Remedy: "feedscale check", Beside: true}, fine))},
			"^the clock of this machine is more than a minute behind", "feedscale check"},
		{"a lease is lost", 1, report.Lookup{State: of(uncovered)}, "^orders: no lease covers key range", "leases"},
		{"a deployment was renamed", 1, report.Lookup{State: of(renamed)}, "^orders: no host owns partition 0", "use this processorName"},
	} {
		var all []report.StoredProcessor
		for i := range c.processors {
			if c.of.AttemptedAt = noon; i > 0 {
				c.of.Processor = fmt.Sprintf("orders-%d", i)
			}
			all = append(all, report.NewStored(c.of))
		}
		var b strings.Builder
		testworld.Must(t, console.WriteStatus(&b, report.NewList(noon, all, nil), console.Listing{}, console.Style{}))
		text := b.String()
		if table, rest, found := strings.Cut(text, "\n\n"); found && strings.HasPrefix(table, "PROCESSOR") {
			text = rest
		}
		first, rest, _ := strings.Cut(text, "\n")
		do, _, _ := strings.Cut(rest, "\n\n")
		if !regexp.MustCompile(c.first).MatchString(first) || !strings.Contains(do, "Do:") || !strings.Contains(do, c.do) {
			t.Errorf("%s: status says first\n%s\n%s", c.cause, first, do)
		}
	}
}
