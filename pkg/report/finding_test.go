package report_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// of is a State of a processor with 3 replicas, polled at noon.
func of(lag changefeed.ProcessorLag, reasons ...scaling.Reason) state.State {
	reasons = append(reasons, scaling.Reason{Step: "threshold", Replicas: 3, Why: "lag 300 at 100 per replica"})
	return state.State{Processor: "orders", AttemptedAt: noon, PolledAt: noon, Lag: lag, Decision: &scaling.Decision{Time: noon, Replicas: 3, Reasons: reasons}}
}

func leases(partitions ...changefeed.Partition) changefeed.ProcessorLag {
	return changefeed.ProcessorLag{Time: noon, Partitions: partitions}
}

func partition(lease, owner string, lag, age int64, status changefeed.Status) changefeed.Partition {
	p := changefeed.Partition{Lease: lease, Owner: owner, Lag: &lag, Status: status}
	if lag > 0 {
		p.Age = &age
	}
	return p
}

// stalled is a partition that has not moved since 02:14.
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

func member(name string, replicas *int, status changefeed.Status) state.Member {
	return state.Member{Processor: name, Replicas: replicas, Totals: changefeed.Totals{Status: status}}
}

// limitedThrice is a State whose backlog grows, whose oldest change is too old, and whose replicas
// are capped.
func limitedThrice() report.Lookup {
	s := of(leases(partition("0", "orders-1", 313, 700, changefeed.StatusLagging)))
	s.Memory.Arrival, s.Memory.DrainPerReplica = new(41.0), 8
	s.Decision.Reasons = []scaling.Reason{
		{Step: "threshold", Replicas: 4, Why: "lag 313 at 100 per replica"},
		{Step: "maxChangeAge", Replicas: 20, Why: "the oldest change is 700 s old, the limit is 1m0s, and 1 owner is live"},
		{Step: "clamp", Replicas: 4, Why: "more replicas than 4 partitions have nothing to do"},
		{Step: "clamp", Replicas: 3, Why: "maxReplicaCount is 3"},
	}
	return report.Lookup{State: s}
}

// findingCase is a State and its expected findings.
type findingCase struct {
	rule string
	of   report.Lookup
	want []string // CODE severity: sentence
}

func findingCases() []findingCase {
	lookup := func(s state.State) report.Lookup { return report.Lookup{State: s} }
	yesterday := stalled("3", "orders-7", changefeed.StallHung)
	yesterday.Stall.Since = yesterday.Stall.Since.AddDate(0, 0, -1)
	expiring := leases(partition("1", "orders-1", 9, 72_000, changefeed.StatusExpiring))
	expiring.Retention = 24 * time.Hour
	rewound := leases(many(changefeed.StatusOK, 5)...)
	for i := range rewound.Partitions {
		rewound.Partitions[i] = partition(fmt.Sprint(i), "orders-1", 0, 0, changefeed.StatusOK)
		rewound.Partitions[i].Rewound = &changefeed.Rewind{From: 4711, To: 12, Time: time.Date(2026, 3, 1, 2, 14, 0, 0, time.UTC)}
	}
	fine := leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK))
	leftover := fine
	leftover.Leftover = []string{"7", "8"}
	failed := changefeed.ProcessorLag{Time: noon, Error: "account shop refuses\nthe key"}
	part := leases(partition("0", "orders-1", 7, 3, changefeed.StatusLagging), changefeed.Partition{Lease: "1", Status: changefeed.StatusUnknown, Error: "account shop throttles"})
	undecided := func(s state.State) report.Lookup {
		s.Decision = nil
		return lookup(s)
	}
	failing := func(failures int, s state.State) report.Lookup {
		s.Memory.Failures, s.PolledAt = failures, noon.Add(-time.Hour)
		return lookup(s)
	}
	rated := func(arrival, drain float64, age int64) report.Lookup {
		s := of(leases(partition("0", "orders-1", 300, age, changefeed.StatusLagging)))
		s.Memory.Arrival, s.Memory.DrainPerReplica = &arrival, drain
		return lookup(s)
	}
	paused := of(fine)
	paused.Paused, paused.Memory.Replicas = true, new(2)
	never := paused
	never.Memory.Replicas = nil
	group := state.State{Processor: "workers", AttemptedAt: noon, Decision: &scaling.Decision{Replicas: 2}, Members: []state.Member{
		member("orders", new(2), changefeed.StatusUnknown), member("new", nil, changefeed.StatusUnknown), member("audit", new(1), changefeed.StatusOK),
	}}
	dark := group
	dark.Decision, dark.Members = nil, group.Members[1:2]
	ahead := changefeed.Partition{Lease: "0", Status: changefeed.StatusAhead, Ahead: &changefeed.AheadPosition{Position: 4711, Feed: 120}, Error: "4711 and 120"}
	unreadable := partition("0", "", 1, 130, changefeed.StatusSplitting)
	unreadable.Error = "range 0 is being split"
	uncovered := leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK))
	uncovered.Coverage.Holes = []changefeed.Range{{Min: "40", Max: "80"}}
	unchecked := func(d time.Duration) changefeed.ProcessorLag {
		l := leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK))
		l.Coverage.Failing = noon.Add(-d)
		return l
	}
	return []findingCase{
		{"nothing is wrong", lookup(of(leases(partition("0", "orders-1", 300, 9, changefeed.StatusLagging)))), nil},
		{"it was never polled", lookup(state.State{Processor: "orders"}), []string{"stale critical: it was never polled"}},
		{"it cannot be read", report.Lookup{Problem: "the state cannot be read: the table is gone"}, []string{"unknown critical: the state cannot be read: the table is gone"}},
		{"an event that nobody takes", report.Lookup{
			State: func() state.State {
				s := of(fine)
				s.Undelivered = &state.DeliveryFailure{Error: "the queue is gone"}
				return s
			}(),
			Waiting: []state.Event{waiting(noon.Add(-time.Minute))}, Overdue: true,
		}, []string{"unpublished critical: 1 scale event could not be published since 11:59 UTC, so that nothing acts by the decision: the queue is gone"}},
		{"nobody polls it any more", report.Lookup{State: of(fine), Stale: true}, []string{
			"stale critical: it was last polled at 2026-03-01 12:00 UTC, more than three of its poll intervals ago: everything here is as of then, and HTTP answers 503",
		}},
		{"a failure that holds", failing(2, of(failed, scaling.Reason{Step: "failure", Replicas: 3, Why: "poll 2 of 3 that may fail: the last decision holds"})), []string{
			"unknown critical: it could not be measured 2 times in a row, since 11:00 UTC: account shop refuses the key; the last decision, 3 replicas, holds (poll 2 of 3 that may fail: the last decision holds)",
		}},
		{"a fallback", failing(9, of(failed, scaling.Reason{Step: "fallback", Replicas: 3, Why: "3 replicas after 3 failed polls"})), []string{
			"unknown critical: it could not be measured 9 times in a row, since 11:00 UTC: account shop refuses the key; the fallback asks for 3 replicas (3 replicas after 3 failed polls)",
		}},
		{"nothing decided", undecided(of(failed)), []string{"unknown critical: it could not be measured: account shop refuses the key; nothing is decided, and HTTP answers 503"}},
		{"known in part", lookup(of(part)), []string{"unknown critical: it could be measured only in part: 1 of 2 partitions are unknown: account shop throttles"}},
		{"a handler that hangs", lookup(of(leases(stalled("3", "orders-7", changefeed.StallHung, "orders-7")))), []string{
			"stalled critical: partition 3 has stood at 4711 since 02:14 UTC; the handler does not return, and the lease stays with host orders-7",
		}},
		{"since another day", lookup(of(leases(yesterday))), []string{
			"stalled critical: partition 3 has stood at 4711 since 2026-02-28 02:14 UTC; the handler does not return, and the lease stays with host orders-7",
		}},
		{"a handler that throws", lookup(of(leases(stalled("3", "", changefeed.StallFlapping, "orders-1", "orders-2")))), []string{
			"stalled critical: partition 3 has stood at 4711 since 02:14 UTC; the handler throws or its process dies, since the lease is released and taken again by hosts orders-1 and orders-2",
		}},
		{"whose owner was never seen", lookup(of(leases(stalled("3", "", changefeed.StallFlapping)))), []string{
			"stalled critical: partition 3 has stood at 4711 since 02:14 UTC; the handler throws or its process dies, since the lease is released and taken again by hosts that no poll saw",
		}},
		{"handlers that hang and handlers that throw", lookup(of(leases(stalled("0", "orders-1", changefeed.StallHung), stalled("1", "", changefeed.StallFlapping, "orders-3"),
			stalled("2", "orders-2", changefeed.StallHung), stalled("3", "", changefeed.StallFlapping)))), []string{
			"stalled critical: partitions 0 and 2 have not moved since 02:14 UTC; the handler does not return, and the lease stays with hosts orders-1 and orders-2",
			"stalled critical: partitions 1 and 3 have not moved since 02:14 UTC; the handler throws or its process dies, since the lease is released and taken again by host orders-3",
		}},
		{"of many, three and the number of the others", lookup(of(leases(slices.Repeat([]changefeed.Partition{stalled("3", "orders-7", changefeed.StallHung)}, 9)...))), []string{
			"stalled critical: partitions 3, 3, 3 and 6 more have not moved since 02:14 UTC; the handler does not return, and the lease stays with host orders-7",
		}},
		{"changes about to expire", lookup(of(expiring)), []string{
			"expiring critical: changes of partition 1 are about to be lost: the oldest is 20h old, and the container keeps a change for 24h",
		}},
		{"positions ahead of the feed", lookup(of(leases(ahead, ahead, ahead, ahead))), []string{
			"ahead critical: partition 0 stands at 4711, and its feed has come to 120: the lease is from another account, region or container, and changes up to its position are skipped; the same is true of partitions 0, 0 and 0",
		}},
		{"a position ahead of the feed", lookup(of(leases(ahead))), []string{
			"ahead critical: partition 0 stands at 4711, and its feed has come to 120: the lease is from another account, region or container, and changes up to its position are skipped",
		}},
		{"keys that no lease covers", lookup(of(uncovered)), []string{
			"uncovered critical: no lease covers key range \"40\" to \"80\": no replica reads their changes",
		}},
		{"ranges that cannot be read", lookup(of(unchecked(20 * time.Minute))), []string{
			"uncovered warning: its partition key ranges could not be read since 11:40 UTC: whether leases cover all keys was not checked since then",
		}},
		{"ranges that could not be read for a few minutes", lookup(of(unchecked(14 * time.Minute))), nil},
		{"no lease", lookup(of(changefeed.ProcessorLag{Time: noon, Bootstrap: true})), []string{
			"bootstrap warning: it has no lease: it never ran, or its leases are in another container",
		}},
		{"no lease, but others like it", lookup(of(changefeed.ProcessorLag{Time: noon, Bootstrap: true, Nearest: "lease container shop/leases holds no lease of this processor: did you mean processorName audit?"})), []string{
			"bootstrap critical: it has no lease: lease container shop/leases holds no lease of this processor: did you mean processorName audit?",
		}},
		{"a split", lookup(of(leases(many(changefeed.StatusSplitting, 1)...))), []string{
			"splitting warning: partition 0: the range was split or merged, and the hosts have not created the new leases yet",
		}},
		{"a split whose new ranges cannot be read yet", lookup(of(leases(unreadable))), []string{
			"splitting warning: partition 0: the range was split or merged, and the hosts have not created the new leases yet",
		}},
		{"leases that nobody takes", lookup(of(leases(many(changefeed.StatusUnclaimed, 4)...))), []string{
			"unclaimed warning: no host owns partitions 0, 1, 2 and 3, though the decision asks for 3 replicas: 40 transactions pending, the oldest for 2m",
		}},
		{"positions in memory alone", lookup(of(leases(many(changefeed.StatusUncheckpointed, 2)...))), []string{
			"uncheckpointed warning: no checkpoint exists for partitions 0 and 1: what is written while no replica runs is skipped, since the position is in the owner's memory alone",
		}},
		{"a backlog that grows", rated(41, 8, 700), []string{
			"lagging warning: 300 transactions pending, the oldest for 11m: the backlog grows, since 41 arrive a second, and each of 3 replicas does 8",
		}},
		{"one that seems to grow, but is young", rated(41, 8, 59), nil},
		{"one that shrinks", rated(4, 8, 700), nil},
		{"a backlog at the limit", lookup(of(leases(partition("0", "orders-1", 900, 700, changefeed.StatusLagging)),
			scaling.Reason{Step: "threshold", Replicas: 9, Why: "lag 900"}, scaling.Reason{Step: "clamp", Replicas: 3, Why: "maxReplicaCount is 3"})), []string{
			"lagging warning: 900 transactions pending, the oldest for 11m: it needs 9 replicas and gets 3, since maxReplicaCount is 3",
		}},
		{"a floor is no limit", lookup(of(leases(partition("0", "orders-1", 1, 1, changefeed.StatusLagging)),
			scaling.Reason{Step: "threshold", Replicas: 1, Why: "lag 1"}, scaling.Reason{Step: "clamp", Replicas: 3, Why: "minReplicaCount is 3"})), nil},
		{"beyond its objective", lookup(of(leases(partition("0", "orders-1", 1, 700, changefeed.StatusLagging)),
			scaling.Reason{Step: "maxChangeAge", Replicas: 3, Why: "the oldest change is 700 s old, the limit is 1m0s, and 1 owner is live"})), []string{
			"lagging warning: 1 transaction pending, the oldest for 11m: the oldest change is 700 s old, the limit is 1m0s, and 1 owner is live",
		}},
		{"beyond its objective, at the cap and growing", limitedThrice(), []string{
			"lagging warning: 313 transactions pending, the oldest for 11m: it needs 20 replicas and gets 3, since maxReplicaCount is 3",
		}},
		{"beyond its objective and growing", func() report.Lookup {
			l := limitedThrice()
			l.Decision.Reasons = l.Decision.Reasons[:2]
			return l
		}(), []string{
			"lagging warning: 313 transactions pending, the oldest for 11m: the backlog grows, since 41 arrive a second, and each of 3 replicas does 8",
		}},
		{"positions that went back", lookup(of(rewound)), []string{
			"rewound warning: partition 0 went back from 4711 to 12, as was seen at 02:14 UTC: changes are delivered again; the same is true of partitions 1, 2, 3 and 4",
		}},
		{"a position that went back", lookup(of(leases(rewound.Partitions[0]))), []string{
			"rewound warning: partition 0 went back from 4711 to 12, as was seen at 02:14 UTC: changes are delivered again",
		}},
		{"leases left over", lookup(of(leftover)), []string{"leftover info: other leases replaced leases 7 and 8, and nobody deleted what they replaced"}},
		{"a pause", lookup(paused), []string{"paused info: it is paused: nothing is published, and scalers are told 2 replicas, as decided before"}},
		{"a pause before the first decision", lookup(never), []string{"paused info: it is paused: nothing is published, and nothing was decided before, so HTTP answers 503"}},
		{"members that are unknown", lookup(group), []string{
			"group warning: its member orders is unknown, and holds its last decision, 2 replicas",
			"group warning: its member new is unknown, and was never decided: the group does not go below its own last decision",
		}},
		{"a group that cannot be decided", lookup(dark), []string{
			"group critical: nothing is decided for the group, and HTTP answers 503: a member that was never decided may need any number",
			"group warning: its member new is unknown, and was never decided: the group does not go below its own last decision",
		}},
	}
}

func TestEachFindingIsOneSentence(t *testing.T) {
	t.Parallel()
	for _, c := range findingCases() {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range report.Findings(c.of) {
				got = append(got, fmt.Sprintf("%s %s: %s", f.Code, f.Severity, f.Sentence))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestAnEventHasTheFindings(t *testing.T) {
	t.Parallel()
	s := of(leases(stalled("3", "orders-7", changefeed.StallHung)))
	want := report.Findings(report.Lookup{State: s})[0]
	if got := report.NewEvent(s, nil).Findings; len(got) != 1 || got[0].Code != want.Code || got[0].Severity != string(want.Severity) || got[0].Sentence != want.Sentence || got[0].Remedy != want.Remedy {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// section is the text of docs/status.md on a code.
type section struct{ code, text string }

// plain returns Markdown as a reader sees it.
func plain(text string) string {
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	return strings.Join(strings.Fields(strings.NewReplacer("`", "", "*", "").Replace(text)), " ")
}

func documented(t *testing.T) (all []section) {
	t.Helper()
	page, err := os.ReadFile("../../docs/status.md")
	testworld.Must(t, err)
	for _, text := range strings.Split(string(page), "\n## ")[1:] {
		code, rest, _ := strings.Cut(text, "\n")
		all = append(all, section{code, rest})
	}
	return all
}

// TestEachCodeIsOnThePage holds that docs/status.md has each status, worst first, and of each code what to
// do about it and sentences that are printed.
func TestEachCodeIsOnThePage(t *testing.T) {
	t.Parallel()
	sections := documented(t)
	for i, status := range changefeed.Statuses() {
		if sections[i].code != string(status) {
			t.Errorf("docs/status.md has %s where %s belongs: worst first", sections[i].code, status)
		}
	}
	printed := make(map[string]bool) // CODE: sentence
	for _, c := range findingCases() {
		for _, f := range report.Findings(c.of) {
			printed[f.Code+": "+f.Sentence] = true
			i := slices.IndexFunc(sections, func(s section) bool { return s.code == f.Code })
			if i < 0 || !strings.HasSuffix(f.Page(), "docs/status.md#"+f.Code) {
				t.Errorf("docs/status.md has no section on %s", f.Code)
			} else if !strings.Contains(plain(sections[i].text), f.Remedy) {
				t.Errorf("the section on %s does not say: %s", f.Code, f.Remedy)
			}
		}
	}
	for _, s := range sections {
		_, rest, shown := strings.Cut(s.text, "```\n")
		if silent := strings.Contains(s.text, "It has no sentence."); shown == silent {
			t.Errorf("%s has neither an example nor the remark that there is none, or both", s.code)
		}
		block, _, _ := strings.Cut(rest, "```")
		for line := range strings.Lines(block) {
			_, text, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), "."), ": ")
			if shown && !printed[s.code+": "+text] {
				t.Errorf("of %s, status does not print %q", s.code, text)
			}
		}
	}
}

func TestTheSchemaOfAnEventNamesEachStatus(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("../events/scale-event.schema.json")
	testworld.Must(t, err)
	var names []string
	for _, status := range changefeed.Statuses() {
		names = append(names, string(status))
	}
	last := len(names) - 1
	if want := strings.Join(names[:last], ", ") + " or " + names[last]; !strings.Contains(string(schema), want) {
		t.Errorf("scale-event.schema.json does not say: %s", want)
	}
}

func TestHowLongALagTakesIsNotToldWhereNothingTellsThat(t *testing.T) {
	t.Parallel()
	backlog := func(age int64) changefeed.Partition {
		return partition("0", "orders-1", 300, age, changefeed.StatusLagging)
	}
	unknown := changefeed.Partition{Lease: "1", Status: changefeed.StatusUnknown, Error: "account shop throttles"}
	for _, c := range []struct {
		rule    string
		lag     changefeed.ProcessorLag
		arrival float64 // transactions a second; three replicas do 24
		want    string
	}{
		{"a backlog that shrinks", leases(backlog(700)), 9, "20"},
		{"one that grows", leases(backlog(700)), 30, "+Inf"},
		{"one that is too young to tell: a replica may do more", leases(backlog(59)), 30, ""},
		{"nothing is pending", leases(partition("0", "orders-1", 0, 0, changefeed.StatusOK)), 30, ""},
		{"nothing moves", leases(stalled("0", "orders-1", changefeed.StallHung)), 9, ""},
		{"nothing moves, and a partition is unknown", leases(stalled("0", "orders-1", changefeed.StallHung), unknown), 9, ""},
		{"nobody is there", leases(many(changefeed.StatusUnclaimed, 1)...), 30, ""},
	} {
		s := of(c.lag)
		s.Memory.Arrival, s.Memory.DrainPerReplica = &c.arrival, 8
		got := ""
		if seconds := report.CatchUpSeconds(s); seconds != nil {
			got = fmt.Sprint(*seconds)
		}
		if got != c.want {
			t.Errorf("%s: %q seconds, want %q", c.rule, got, c.want)
		}
	}
}

func TestAnAgeIsAsPeopleSayIt(t *testing.T) {
	t.Parallel()
	if got := report.Age(nil); got != "-" {
		t.Errorf("nothing pending: %s", got)
	}
	for seconds, want := range map[int64]string{0: "0s", 119: "119s", 120: "2m", 7199: "119m", 7200: "2h", 360_000: "100h"} {
		if got := report.Age(&seconds); got != want {
			t.Errorf("%d seconds: %s, want %s", seconds, got, want)
		}
	}
}
