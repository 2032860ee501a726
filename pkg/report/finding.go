package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Finding is something that an operator should know about a processor or a group.
type Finding struct {
	Code     string   `json:"code"` // a status or another word; docs/status.md has a section on it
	Severity Severity `json:"severity"`
	Sentence string   `json:"sentence"` // what was found, on one line without a full stop
	Remedy   string   `json:"remedy"`   // what to do about it
}

// Page returns the address of the section in the documentation.
func (f Finding) Page() string {
	return "https://github.com/feedscale/feedscale/blob/main/docs/status.md#" + f.Code
}

// Severity is how urgent a status or a finding is.
type Severity string

// The severities, the most urgent first.
const (
	Critical Severity = "critical" // act now
	Warning  Severity = "warning"  // watch it
	Info     Severity = "info"     // nothing is wrong
	OK       Severity = "ok"       // nothing is pending; no finding has it
)

// SeverityOf returns how urgent a status is.
func SeverityOf(s changefeed.Status) Severity {
	switch s {
	case changefeed.StatusUnknown, changefeed.StatusStalled, changefeed.StatusExpiring, changefeed.StatusAhead, changefeed.StatusUncovered:
		return Critical
	case changefeed.StatusLagging:
		return Info
	case changefeed.StatusOK:
		return OK
	}
	return Warning
}

// Lookup is a State with what was found when it was read.
type Lookup struct {
	state.State
	Stale   bool          // its last poll is more than three poll intervals ago
	Problem string        // why the State cannot be read or is never polled; "" = neither
	Err     error         // why the State cannot be read; nil if it can
	Waiting []state.Event // its outbox, oldest first
	Overdue bool          // one of them has waited for more than two poll intervals
}

// Oldest returns when the oldest waiting event was decided; zero if none waits, or if it cannot be
// decoded.
func (l Lookup) Oldest() time.Time {
	if len(l.Waiting) == 0 {
		return time.Time{}
	}
	e, err := events.Decode(l.Waiting[0].Body)
	if err != nil {
		return time.Time{}
	}
	return e.Time
}

// causes returns the failures that other processors or groups may have as well.
func (l Lookup) causes() []changefeed.Cause {
	causes := append(changefeed.AddCause([]changefeed.Cause{}, l.Err), l.Lag.Causes...)
	if l.Overdue && l.Undelivered != nil {
		c := l.Undelivered.Cause
		c.Since = l.Oldest()
		causes = append(causes, c)
	}
	return causes
}

// Unpublished is the code of the finding that an event has waited too long to be published.
const Unpublished = "unpublished"

// Findings returns what an operator should know, in the order in which people read it; empty if there
// is nothing. A new code needs cases in finding_test.go, and a section in docs/status.md.
func Findings(l Lookup) []Finding {
	f := finder{Lookup: l, found: []Finding{}}
	f.poll()
	f.positions()
	f.coverage()
	f.owners()
	f.decision()
	f.group()
	return f.found
}

// finder collects the findings of a Lookup.
type finder struct {
	Lookup
	found []Finding
}

// add adds a finding, with its sentence on one line.
func (f *finder) add(code string, severity Severity, remedy, format string, args ...any) {
	sentence := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	f.found = append(f.found, Finding{code, severity, sentence, remedy})
}

// addIf adds a finding if a condition holds.
func (f *finder) addIf(holds bool, code string, severity Severity, remedy, format string, args ...any) {
	if holds {
		f.add(code, severity, remedy, format, args...)
	}
}

// alike says that the same is true of other partitions; "" if there are none.
func alike(others []changefeed.Partition) string {
	if len(others) == 0 {
		return ""
	}
	return "; the same is true of " + changefeed.ListPartitions(others)
}

const (
	readTheError = "read the error: it says what to correct"
	seeTheRunner = "check that the poller runs, and that it writes the state that you look at: its log has a line tick for each poll"
	seeTheMember = "see the findings of that member"
)

// poll finds what keeps the subject from being polled, measured or published.
func (f *finder) poll() {
	switch {
	case f.AttemptedAt.IsZero() && f.Problem != "":
		f.add("unknown", Critical, readTheError, "%s", f.Problem)
	case f.AttemptedAt.IsZero():
		f.add("stale", Critical, seeTheRunner, "it was never polled")
	case f.Stale:
		f.add("stale", Critical, seeTheRunner,
			"it was last polled at %s, more than three of its poll intervals ago: everything here is as of then, and HTTP answers 503",
			f.AttemptedAt.UTC().Format(dayAndMinute))
	}
	onlySplits := len(f.Lag.Partitions) > 0 && !slices.ContainsFunc(f.Lag.Partitions, func(p changefeed.Partition) bool {
		return !p.Known() && p.Status != changefeed.StatusSplitting
	})
	f.addIf(!f.AttemptedAt.IsZero() && len(f.Members) == 0 && !f.Lag.Complete() && !f.Lag.Ahead() && !onlySplits,
		"unknown", Critical, readTheError, "%s%s", f.unmeasured(), f.meanwhile())
	why := ""
	if f.Undelivered != nil {
		why = ": " + f.Undelivered.Error
	}
	f.addIf(f.Overdue, Unpublished, Critical, "run feedscale check: it tries the queue or topic, and says what to do",
		"%s could not be published since %s, so that nothing acts by the decision%s", Count(len(f.Waiting), "scale event"), clock(f.Oldest(), f.AttemptedAt), why)
}

// unmeasured says what could not be measured, how often, and why.
func (l Lookup) unmeasured() string {
	text := "it could not be measured"
	if l.Lag.Known() {
		text = "it could be measured only in part"
	} else if failed := l.Memory.Failures; failed > 1 {
		text += fmt.Sprintf(" %d times in a row", failed)
		if !l.PolledAt.IsZero() {
			text += ", since " + clock(l.PolledAt, l.AttemptedAt)
		}
	}
	if problem := l.Lag.Problem(); problem != "" {
		text += ": " + strings.TrimSuffix(problem, ".")
	}
	return text
}

// meanwhile says which decision holds while something is unknown; "" if the decision is one as usual.
func (l Lookup) meanwhile() string {
	if l.Decision == nil {
		return "; nothing is decided, and HTTP answers 503"
	}
	replicas := Count(l.Decision.Replicas, "replica")
	if why := l.reason("fallback"); why != "" {
		return fmt.Sprintf("; the fallback asks for %s (%s)", replicas, why)
	}
	if why := l.reason("failure"); why != "" {
		return fmt.Sprintf("; the last decision, %s, holds (%s)", replicas, why)
	}
	return ""
}

// positions finds what is wrong with the positions of the leases.
func (f *finder) positions() {
	f.stood(changefeed.StallHung, "and the lease stays with")
	f.stood(changefeed.StallFlapping, "since the lease is released and taken again by")
	if expiring := with(f.Lag, changefeed.StatusExpiring); len(expiring.Partitions) > 0 {
		kept := ""
		if f.Lag.Retention > 0 {
			kept = ", and the container keeps a change for " + Age(new(int64(f.Lag.Retention/time.Second)))
		}
		f.add("expiring", Critical, "scale out by hand, or raise the container's time to live. The decision has asked for replicas "+
			"since half of the retention: check what limits them, maxReplicaCount or the number of partitions",
			"changes of %s are about to be lost: the oldest is %s old%s", changefeed.ListPartitions(expiring.Partitions), Age(expiring.Age()), kept)
	}
	if ahead := with(f.Lag, changefeed.StatusAhead).Partitions; len(ahead) > 0 {
		f.add("ahead", Critical, "ask who restored or copied the leases. Stop all hosts, delete the leases of these partitions "+
			"with the .info marker, and start again with a start time before the last change that was processed",
			"partition %s stands at %d, and its feed has come to %d: the lease is from another account, region or container, "+
				"and changes up to its position are skipped%s",
			ahead[0].Lease, ahead[0].Ahead.Position, ahead[0].Ahead.Feed, alike(ahead[1:]))
	}
}

// stood finds partitions with one kind of stall: since when they have not moved, why, and what hosts
// do with the lease.
func (f *finder) stood(kind changefeed.StallKind, lease string) {
	stalled := with(f.Lag, changefeed.StatusStalled)
	stalled.Partitions = slices.DeleteFunc(stalled.Partitions, func(p changefeed.Partition) bool { return p.Stall == nil || p.Stall.Kind != kind })
	if len(stalled.Partitions) == 0 {
		return
	}
	first, moved := stalled.Partitions[0], "have not moved"
	if len(stalled.Partitions) == 1 {
		moved = "has not moved"
		if first.CheckpointLSN != nil {
			moved = fmt.Sprintf("has stood at %d", *first.CheckpointLSN)
		}
	}
	var hosts []string
	since := first.Stall.Since
	for _, p := range stalled.Partitions {
		hosts = append(append(hosts, p.Stall.Owners...), p.Owner)
		if p.Stall.Since.Before(since) {
			since = p.Stall.Since
		}
	}
	slices.Sort(hosts)
	hosts = slices.DeleteFunc(slices.Compact(hosts), func(host string) bool { return host == "" })
	f.add("stalled", Critical, "look at the change at that position: feedscale inspect NAME PARTITION names it. "+
		"More replicas do not help. If a batch really takes so long, raise stalledAfter",
		"%s %s since %s; %s, %s %s", changefeed.ListPartitions(stalled.Partitions), moved, clock(since, f.AttemptedAt), kind.Why(), lease,
		cmp.Or(changefeed.List("host", hosts), "hosts that no poll saw"))
}

// uncheckedAfter is how long reads of the key ranges may fail before that is a finding.
const uncheckedAfter = 15 * time.Minute

// coverage finds keys without a lease, and leases that hosts have not created yet.
func (f *finder) coverage() {
	if f.Lag.Uncovered() {
		var holes []string
		for _, r := range f.Lag.Coverage.Holes {
			holes = append(holes, fmt.Sprintf("%q to %q", r.Min, r.Max))
		}
		f.add("uncovered", Critical, "Java: restart with setLeaseVerificationEnabledOnRestart(true). .NET: pause what acts, stop all hosts, "+
			"delete the .info marker from the lease container, and start again. A new lease reads from the processor's start option, by default from now, "+
			"which skips what is pending: set a start time before the leases were lost",
			"no lease covers %s: no replica reads their changes", changefeed.List("key range", holes))
	}
	failing := f.Lag.Coverage.Failing
	f.addIf(!failing.IsZero() && f.Lag.Time.Sub(failing) >= uncheckedAfter, "uncovered", Warning,
		"check that the account answers, and that the identity may read the metadata of the monitored container: feedscale check tries it",
		"its partition key ranges could not be read since %s: whether leases cover all keys was not checked since then", clock(failing, f.AttemptedAt))
	f.addIf(f.Lag.Bootstrap && f.Lag.Nearest != "", "bootstrap", Critical,
		"correct processorName, accountHost or leaseContainerId in the processors file; feedscale leases lists what the container holds",
		"it has no lease: %s", f.Lag.Nearest)
	f.addIf(f.Lag.Bootstrap && f.Lag.Nearest == "", "bootstrap", Warning,
		"start the processor once; one replica is asked for. If it has run, correct leaseContainerId",
		"it has no lease: it never ran, or its leases are in another container")
	splitting := with(f.Lag, changefeed.StatusSplitting)
	f.addIf(len(splitting.Partitions) > 0, "splitting", Warning,
		"nothing at first: the hosts create the new leases when they read the range again, as a rule within a minute. "+
			"If it lasts for more than 10 minutes, check that replicas run, and that they may write to the lease container",
		"%s: the range was split or merged, and the hosts have not created the new leases yet", changefeed.ListPartitions(splitting.Partitions))
}

// owners finds leases without an owner, and partitions without a checkpoint.
func (f *finder) owners() {
	unclaimed, asked := with(f.Lag, changefeed.StatusUnclaimed), "replicas"
	if f.Decision != nil {
		asked = Count(f.Decision.Replicas, "replica")
	}
	f.addIf(len(unclaimed.Partitions) > 0, "unclaimed", Warning,
		"check that the decisions reach what scales, that the replicas start, and that they use this processorName and lease container",
		"no host owns %s, though the decision asks for %s: %s", changefeed.ListPartitions(unclaimed.Partitions), asked, backlog(unclaimed))
	uncheckpointed := with(f.Lag, changefeed.StatusUncheckpointed)
	f.addIf(len(uncheckpointed.Partitions) > 0, "uncheckpointed", Warning,
		"nothing: one replica stays. It ends with a first change in each partition, or a start from the beginning",
		"no checkpoint exists for %s: what is written while no replica runs is skipped, since the position is in the owner's memory alone",
		changefeed.ListPartitions(uncheckpointed.Partitions))
}

// decision finds why a backlog does not go away, and what else is noteworthy about the leases and the
// decision.
func (f *finder) decision() {
	why := f.lasts()
	f.addIf(why != "", "lagging", Warning, "check what limits it: maxReplicaCount, the number of partitions, the request units, the handler",
		"%s: %s", backlog(f.Lag), why)
	rewound := slices.DeleteFunc(slices.Clone(f.Lag.Partitions), func(p changefeed.Partition) bool { return p.Rewound == nil })
	if len(rewound) > 0 {
		back := rewound[0].Rewound
		f.add("rewound", Warning, "ask who reset or restored the leases. Handlers see changes again, and have to tolerate that",
			"partition %s went back from %d to %d, as was seen at %s: changes are delivered again%s",
			rewound[0].Lease, back.From, back.To, clock(back.Time, f.AttemptedAt), alike(rewound[1:]))
	}
	f.addIf(len(f.Lag.Leftover) > 0, "leftover", Info, "nothing: it is not counted. If it stays, delete it while no replica runs",
		"other leases replaced %s, and nobody deleted what they replaced", changefeed.List("lease", f.Lag.Leftover))
	told := "nothing was decided before, so HTTP answers 503"
	if d := f.Standing(); d != nil {
		told = "scalers are told " + Count(d.Replicas, "replica") + ", as decided before"
	}
	f.addIf(f.Paused, "paused", Info, "remove paused from the processors file to scale again", "it is paused: nothing is published, and %s", told)
}

// lasts says why a backlog does not go away, unless another finding describes it. It names only the
// most useful cause, since all have the same remedy.
func (l Lookup) lasts() string {
	status := l.Lag.Status()
	if l.Decision == nil || status != changefeed.StatusLagging && status != changefeed.StatusExpiring {
		return ""
	}
	return cmp.Or(capped(*l.Decision), l.reason("throughput", "hotPartition", "notEffective"), growing(l.State), l.reason("retention", "maxChangeAge"))
}

// capped says that the decision has fewer replicas than its steps asked for; "" if it has not.
func capped(d scaling.Decision) (text string) {
	needed, before := 0, 0
	for _, r := range d.Reasons {
		if r.Step == "clamp" && r.Replicas < before {
			needed = max(needed, before)
			text = fmt.Sprintf("it needs %s and gets %d, since %s", Count(needed, "replica"), r.Replicas, r.Why)
		}
		before = r.Replicas
	}
	return text
}

func growing(s state.State) string {
	if seconds := CatchUpSeconds(s); seconds == nil || !math.IsInf(*seconds, 1) {
		return ""
	}
	return fmt.Sprintf("the backlog grows, since %.3g arrive a second, and each of %s does %.3g",
		*s.Memory.Arrival, Count(s.Decision.Replicas, "replica"), s.Memory.DrainPerReplica)
}

// group finds members for which nothing is decided, or an old decision holds.
func (f *finder) group() {
	f.addIf(len(f.Members) > 0 && f.Decision == nil, "group", Critical, seeTheMember,
		"nothing is decided for the group, and HTTP answers 503: a member that was never decided may need any number")
	for _, m := range f.Members {
		holds := "was never decided: the group does not go below its own last decision"
		if m.Replicas != nil {
			holds = "holds its last decision, " + Count(*m.Replicas, "replica")
		}
		f.addIf(m.Status == changefeed.StatusUnknown, "group", Warning, seeTheMember, "its member %s is unknown, and %s", m.Processor, holds)
	}
}

// reason returns the sentence of the first of some steps that acted on the decision; "" if none did.
func (l Lookup) reason(steps ...string) string {
	for _, step := range steps {
		for _, r := range l.Decision.Reasons {
			if r.Step == step {
				return r.Why
			}
		}
	}
	return ""
}
