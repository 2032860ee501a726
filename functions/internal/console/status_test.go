package console_test

import (
	"fmt"
	"io"
	"os"
	"slices"
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
		all.Processors = append(all.Processors, report.NewStored(s))
	}
	for _, s := range groups {
		s.AttemptedAt = noon.Add(-5 * time.Second)
		all.Groups = append(all.Groups, report.NewStoredGroup(s))
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

// stalled is a partition that has stood since 02:14.
func stalled(lease, owner string, kind changefeed.StallKind, seen ...string) changefeed.Partition {
	p := partition(lease, owner, 300, 35_000, changefeed.StatusStalled)
	p.CheckpointLSN, p.Stall = new(int64(4711)), &changefeed.Stall{Kind: kind, Since: time.Date(2026, 3, 1, 2, 14, 0, 0, time.UTC), Owners: seen}
	return p
}

func many(status changefeed.Status, n int) []changefeed.Partition {
	partitions := make([]changefeed.Partition, n)
	for i := range partitions {
		partitions[i] = partition(fmt.Sprint(i), "", 10, 130, status)
	}
	return partitions
}

// sentence is a state, and what is said of it.
type sentence struct {
	rule string
	s    state.State
	want []string // kind: sentence
}

func sentences() []sentence {
	yesterday := stalled("3", "orders-7", changefeed.StallHung)
	yesterday.Stall.Since = yesterday.Stall.Since.AddDate(0, 0, -1)
	expiring := leases(partition("1", "orders-1", 9, 72_000, changefeed.StatusExpiring))
	expiring.Retention = 24 * time.Hour
	rewound := partition("3", "orders-1", 0, 0, changefeed.StatusOK)
	rewound.Rewound = &changefeed.Rewound{From: 4711, To: 12, Time: time.Date(2026, 3, 1, 2, 14, 0, 0, time.UTC)}
	leftover := leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK))
	leftover.Leftover = []string{"7", "8"}
	failed := changefeed.ProcessorLag{Time: noon, Error: "account shop refuses the key"}
	never := func(s state.State) state.State {
		s.Decision = nil
		return s
	}
	failing := func(failures int, s state.State) state.State {
		s.Memory.Failures, s.PolledAt = failures, noon.Add(-time.Hour)
		return s
	}
	rated := func(arrival, drain float64, s state.State) state.State {
		s.Memory.Arrival, s.Memory.DrainPerReplica = &arrival, drain
		return s
	}
	paused := of(leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK)))
	paused.Paused = true
	return []sentence{
		{"nothing is wrong", of(leases(partition("0", "orders-1", 300, 9, changefeed.StatusLagging))), nil},
		{"a handler that hangs", of(leases(stalled("3", "orders-7", changefeed.StallHung, "orders-7"))), []string{
			"stalled: partition 3 has stood at 4711 since 02:14 UTC; its owner orders-7 holds the lease; more replicas do not help",
		}},
		{"since another day", of(leases(yesterday)), []string{
			"stalled: partition 3 has stood at 4711 since 2026-02-28 02:14 UTC; its owner orders-7 holds the lease; more replicas do not help",
		}},
		{"a handler that throws", of(leases(stalled("3", "", changefeed.StallFlapping, "orders-1", "orders-2"))), []string{
			"stalled: partition 3 has stood at 4711 since 02:14 UTC; its lease is given back and taken again, by orders-1, orders-2; more replicas do not help",
		}},
		{"whose owner was never seen", of(leases(stalled("3", "", changefeed.StallFlapping))), []string{
			"stalled: partition 3 has stood at 4711 since 02:14 UTC; its lease is given back and taken again; more replicas do not help",
		}},
		{"of many, three and the number of the others", of(leases(many(changefeed.StatusStalled, 9)...)), []string{
			"stalled: partition 0 has not moved; more replicas do not help",
			"stalled: partition 1 has not moved; more replicas do not help",
			"stalled: partition 2 has not moved; more replicas do not help",
			"stalled: partitions 3, 4, 5 and 3 more are stalled, too",
		}},
		{"changes about to expire", of(expiring), []string{
			"expiring: changes of partition 1 are about to be lost: the oldest is 20h old, and the container keeps a change for 24h",
		}},
		{"no lease", of(changefeed.ProcessorLag{Time: noon, Bootstrap: true}, scaling.Reason{Step: "bootstrap", Replicas: 1, Why: "no lease exists yet. Did you mean processorName audit?"}), []string{
			"bootstrap: it has no lease: no lease exists yet. Did you mean processorName audit?",
		}},
		{"a split", of(leases(many(changefeed.StatusSplitting, 1)...)), []string{
			"splitting: partition 0 was split or merged, and no replica has replaced the lease yet",
		}},
		{"leases that nobody takes", of(leases(many(changefeed.StatusUnclaimed, 4)...)), []string{
			"unclaimed: partitions 0, 1, 2 and 3 have 40 transactions pending, the oldest for 2m, and nobody takes the leases, though 3 replicas are asked for",
		}},
		{"positions in memory alone", of(leases(many(changefeed.StatusUncheckpointed, 2)...)), []string{
			"uncheckpointed: partitions 0 and 1 have no checkpoint: the position is in the memory of the owner alone, and what is written while no replica runs is skipped",
		}},
		{"a backlog at the limit", of(leases(partition("0", "orders-1", 900, 700, changefeed.StatusLagging)),
			scaling.Reason{Step: "threshold", Replicas: 9, Why: "lag 900"}, scaling.Reason{Step: "clamp", Replicas: 3, Why: "maxReplicaCount is 3"}), []string{
			"lagging: 900 transactions are pending, the oldest for 11m, and 9 replicas are asked for, of which it gets 3: maxReplicaCount is 3",
		}},
		{"a floor is no limit", of(leases(partition("0", "orders-1", 1, 1, changefeed.StatusLagging)),
			scaling.Reason{Step: "threshold", Replicas: 1, Why: "lag 1"}, scaling.Reason{Step: "clamp", Replicas: 3, Why: "minReplicaCount is 3"}), nil},
		{"beyond its objective", of(leases(partition("0", "orders-1", 1, 700, changefeed.StatusLagging)),
			scaling.Reason{Step: "maxChangeAge", Replicas: 3, Why: "the oldest change is 700 s old, the limit is 1m0s, and 1 owners are live"}), []string{
			"lagging: 1 transaction is pending, the oldest for 11m: the oldest change is 700 s old, the limit is 1m0s, and 1 owners are live",
		}},
		{"a backlog that only grows", rated(41, 8, of(leases(partition("0", "orders-1", 300, 700, changefeed.StatusLagging)))), []string{
			"lagging: 300 transactions are pending, the oldest for 11m, and by the measured rates the backlog only grows: 41 arrive a second, and one of 3 replicas was seen to do 8",
		}},
		{"one that seems to grow, but is young", rated(41, 8, of(leases(partition("0", "orders-1", 300, 59, changefeed.StatusLagging)))), nil},
		{"one that shrinks", rated(4, 8, of(leases(partition("0", "orders-1", 300, 700, changefeed.StatusLagging)))), nil},
		{"a position that went back", of(leases(rewound)), []string{
			"rewound: partition 3 went back from 4711 to 12, as was seen at 02:14 UTC: changes are delivered again",
		}},
		{"leases left over", of(leftover), []string{"leftover: leases 7 and 8 were replaced by others and not deleted"}},
		{"a pause", paused, []string{"paused: it is paused: nothing is published, and whoever asks is told 3 replicas, as was decided before"}},
		{"a failure that holds", failing(2, of(failed, scaling.Reason{Step: "failure", Replicas: 3, Why: "poll 2 of 3 that may fail: the last decision holds"})), []string{
			"unknown: it could not be measured 2 times in a row, since 11:00 UTC: account shop refuses the key; the last decision, 3 replicas, holds (poll 2 of 3 that may fail: the last decision holds)",
		}},
		{"a fallback", failing(9, of(failed, scaling.Reason{Step: "fallback", Replicas: 3, Why: "3 replicas after 3 failed polls"})), []string{
			"unknown: it could not be measured 9 times in a row, since 11:00 UTC: account shop refuses the key; the fallback asks for 3 replicas (3 replicas after 3 failed polls)",
		}},
		{"nothing decided", never(of(failed)), []string{
			"unknown: it could not be measured: account shop refuses the key; nothing is decided, and HTTP answers 503",
		}},
		{"known in part", of(leases(partition("0", "orders-1", 7, 3, changefeed.StatusLagging), unknown("1", "account shop throttles"))), []string{
			"unknown: it is known in part: 1 of 2 partitions are unknown: account shop throttles",
		}},
	}
}

func TestEachProblemIsOneSentence(t *testing.T) {
	t.Parallel()
	for _, c := range sentences() {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range console.Problems(held([]state.State{c.s}, nil)) {
				got = append(got, p.Kind+": "+p.Says)
				if p.Name != "orders" || p.Do == "" || p.Page == "" {
					t.Errorf("%+v", p)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestWhatIsNotPolledIsSaidBeforeAllElse(t *testing.T) {
	t.Parallel()
	all := held([]state.State{of(leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK)))}, nil)
	all.Processors[0].Stale = true
	all.Processors = append(all.Processors, report.NewStored(state.State{Processor: "never"}), report.NewStored(state.State{Processor: "unreadable"}))
	all.Processors[2].Error = new("the state cannot be read: the table is gone")
	all.Groups = []report.StoredGroup{report.NewStoredGroup(state.State{Processor: "workers"})}
	want := []string{
		"orders: it was last polled at 11:59 UTC, more than three of its poll intervals ago: all of this is of then, and HTTP answers 503",
		"never: this processor was never polled",
		"unreadable: the state cannot be read: the table is gone",
		"workers: this group was never polled",
	}
	var got []string
	for _, p := range console.Problems(all) {
		got = append(got, p.Name+": "+p.Says)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMemberThatIsUnknownHoldsItsGroup(t *testing.T) {
	t.Parallel()
	group := state.State{Processor: "workers", Decision: decision(new(2), scaling.None, 2, scaling.Reason{Step: "group", Replicas: 2, Why: "orders holds its last decision"}), Members: []state.Member{
		{Processor: "orders", Replicas: new(2), Totals: changefeed.Totals{Status: changefeed.StatusUnknown}},
		{Processor: "new", Totals: changefeed.Totals{Status: changefeed.StatusUnknown}},
		{Processor: "audit", Replicas: new(1), Totals: changefeed.Totals{Status: changefeed.StatusOK}},
	}}
	dark := group
	dark.Processor, dark.Decision, dark.Members = "dark", nil, group.Members[1:2]
	want := []string{
		"workers: its member orders is unknown, and holds its last decision, 2 replicas",
		"workers: its member new is unknown and was never decided: the group does not go below its own last decision",
		"dark: nothing is decided for the group, and HTTP answers 503: a member that was never decided may ask for any number",
		"dark: its member new is unknown and was never decided: the group does not go below its own last decision",
	}
	var got []string
	for _, p := range console.Problems(held(nil, []state.State{group, dark})) {
		got = append(got, p.Name+": "+p.Says)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheWorstIsPrintedFirst(t *testing.T) {
	t.Parallel()
	all := func() report.List {
		list := held(append(polled()[1:], follows()...), groups())
		list.Processors[2].Stale = true
		return list
	}
	golden(t, "status", func(w io.Writer, style console.Style) error { return console.WriteStatus(w, all(), style) })
	golden(t, "status-json", func(w io.Writer, _ console.Style) error { return console.WriteStatusJSON(w, all()) })
}

func TestAScreenCountsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		height int
		want   string
	}{
		{"all fits", 7, "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\nd\x1b[K\ne\x1b[K\n\x1b[J"},
		{"some does not", 5, "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\n… 2 more lines\x1b[K\n\x1b[J"},
		{"the terminal does not say", 0, "\x1b[Ha\x1b[K\nb\x1b[K\nc\x1b[K\nd\x1b[K\ne\x1b[K\n\x1b[J"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := console.WriteScreen(&b, "a\nb\nc\nd\ne\n", c.height); err != nil || b.String() != c.want {
				t.Errorf("%q, %v", b.String(), err)
			}
		})
	}
}

func TestTheDocumentationShowsWhatStatusPrints(t *testing.T) {
	t.Parallel()
	audit := of(leases(stalled("3", "audit-7", changefeed.StallHung, "audit-7"), partition("0", "audit-7", 0, 0, changefeed.StatusOK)))
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
	testworld.Must(t, console.WriteStatus(&b, all, console.Style{}))
	if b.String() != shown {
		t.Errorf("docs/operate.md shows\n%s\nand status prints\n%s", shown, b.String())
	}
}

// TestEachStatusHasItsSentenceOnItsPage holds the examples of docs/status.md to what is printed.
func TestEachStatusHasItsSentenceOnItsPage(t *testing.T) {
	t.Parallel()
	stale := held([]state.State{of(leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK)))}, nil)
	stale.Processors[0].Stale = true
	printed := make(map[string]bool) // kind: sentence
	said := console.Problems(stale)
	for _, c := range sentences() {
		said = append(said, console.Problems(held([]state.State{c.s}, nil))...)
	}
	page, err := os.ReadFile("../../../docs/status.md")
	testworld.Must(t, err)
	for _, p := range said {
		printed[p.Kind+": "+p.Says] = true
		if !strings.Contains(string(page), "\n## "+p.Kind+"\n") {
			t.Errorf("docs/status.md has no section on %s", p.Kind)
		}
	}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		kind, rest, _ := strings.Cut(section, "\n")
		_, rest, shown := strings.Cut(rest, "```\n")
		if silent := strings.Contains(section, "It has no sentence."); shown == silent {
			t.Errorf("%s has neither an example nor the remark that there is none, or both", kind)
		}
		block, _, _ := strings.Cut(rest, "```")
		for line := range strings.Lines(block) {
			text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "orders: "), ".")
			if shown && !printed[kind+": "+text] {
				t.Errorf("of %s, status does not print %q", kind, text)
			}
		}
	}
}
