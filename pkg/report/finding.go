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

// finder returns the sentences of one kind of finding.
type finder struct {
	code      string
	severity  Severity
	sentences func(Lookup) []string
	remedy    string
}

const (
	readTheError = "read the error: it says what to correct"
	seeTheMember = "see the findings of that member"
)

// finders are all kinds of findings, in the order in which people read them. A new one needs a line
// and a function here, cases in finding_test.go, and a section in docs/status.md.
var finders = []finder{
	{"unknown", Critical, Lookup.unreadable, readTheError},
	{"stale", Critical, Lookup.stale,
		"check that the poller runs, and that it writes the state that you look at: its log has a line tick for each poll"},
	{"unknown", Critical, Lookup.unknown, readTheError},
	{Unpublished, Critical, Lookup.unpublished, "run feedscale check: it tries the queue or topic, and says what to do"},
	{"stalled", Critical, Lookup.stalled,
		"look at the change at that position: feedscale inspect NAME PARTITION names it. More replicas do not help. If a batch really takes so long, raise stalledAfter"},
	{"expiring", Critical, Lookup.expiring, "scale out by hand, or raise the container's time to live. The decision has asked for replicas " +
		"since half of the retention: check what limits them, maxReplicaCount or the number of partitions"},
	{"ahead", Critical, Lookup.ahead, "ask who restored or copied the leases. Stop all hosts, delete the leases of these partitions " +
		"with the .info marker, and start again with a start time before the last change that was processed"},
	{"uncovered", Critical, Lookup.uncovered, "Java: restart with setLeaseVerificationEnabledOnRestart(true). .NET: pause what acts, stop all hosts, " +
		"delete the .info marker from the lease container, and start again. A new lease reads from the processor's start option, by default from now, " +
		"which skips what is pending: set a start time before the leases were lost"},
	{"uncovered", Warning, Lookup.unchecked,
		"check that the account answers, and that the identity may read the metadata of the monitored container: feedscale check tries it"},
	{"bootstrap", Critical, Lookup.misnamed,
		"correct processorName, accountHost or leaseContainerId in the processors file; feedscale leases lists what the container holds"},
	{"bootstrap", Warning, Lookup.bootstrap,
		"start the processor once; one replica is asked for. If it has run, correct leaseContainerId"},
	{"splitting", Warning, Lookup.splitting,
		"nothing at first: the hosts create the new leases when they read the range again, as a rule within a minute. " +
			"If it lasts for more than 10 minutes, check that replicas run, and that they may write to the lease container"},
	{"unclaimed", Warning, Lookup.beside,
		"if the deployment renamed its processor, correct processorName in the processors file"},
	{"unclaimed", Warning, Lookup.unclaimed,
		"check that the decisions reach what scales, that the replicas start, and that they use this processorName and lease container"},
	{"uncheckpointed", Warning, Lookup.uncheckpointed,
		"nothing: one replica stays. It ends with a first change in each partition, or a start from the beginning"},
	{"lagging", Warning, Lookup.lagging,
		"check what limits it: maxReplicaCount, the number of partitions, the request units, the handler"},
	{"rewound", Warning, Lookup.rewound,
		"ask who reset or restored the leases. Handlers see changes again, and have to tolerate that"},
	{"leftover", Info, Lookup.leftover,
		"nothing: it is not counted. If it stays, delete it while no replica runs"},
	{"paused", Info, Lookup.paused, "remove paused from the processors file to scale again"},
	{"group", Critical, Lookup.undecided, seeTheMember},
	{"group", Warning, Lookup.members, seeTheMember},
}

// Findings returns what an operator should know, the most urgent first; empty if there is nothing.
func Findings(l Lookup) []Finding {
	all := []Finding{}
	for _, f := range finders {
		for _, text := range f.sentences(l) {
			all = append(all, Finding{f.code, f.severity, strings.Join(strings.Fields(text), " "), f.remedy})
		}
	}
	return all
}

// one returns a sentence if a condition holds, otherwise nothing.
func one(holds bool, format string, args ...any) []string {
	if !holds {
		return nil
	}
	return []string{fmt.Sprintf(format, args...)}
}

func (l Lookup) unreadable() []string {
	return one(l.AttemptedAt.IsZero() && l.Problem != "", "%s", l.Problem)
}

func (l Lookup) stale() []string {
	if l.AttemptedAt.IsZero() {
		return one(l.Problem == "", "it was never polled")
	}
	return one(l.Stale, "it was last polled at %s, more than three of its poll intervals ago: everything here is as of then, and HTTP answers 503",
		l.AttemptedAt.UTC().Format(dayAndMinute))
}

// unknown says what could not be measured, and which decision holds meanwhile.
func (l Lookup) unknown() []string {
	if l.AttemptedAt.IsZero() || len(l.Members) > 0 || l.Lag.Complete() || l.Lag.Ahead() || onlySplits(l.Lag) {
		return nil
	}
	text := "it could not be measured"
	if l.Lag.Known() {
		text = "it could be measured only in part"
	} else if failed := l.Memory.Failures; failed > 1 {
		text += fmt.Sprintf(" %d times in a row", failed)
		if !l.PolledAt.IsZero() {
			text += ", since " + l.at(l.PolledAt)
		}
	}
	if problem := l.Lag.Problem(); problem != "" {
		text += ": " + strings.TrimSuffix(problem, ".")
	}
	if l.Decision == nil {
		text += "; nothing is decided, and HTTP answers 503"
	} else if why := l.reason("fallback"); why != "" {
		text += fmt.Sprintf("; the fallback asks for %s (%s)", Count(l.Decision.Replicas, "replica"), why)
	} else if why := l.reason("failure"); why != "" {
		text += fmt.Sprintf("; the last decision, %s, holds (%s)", Count(l.Decision.Replicas, "replica"), why)
	}
	return []string{text}
}

// onlySplits reports whether the only unknown ranges are being split or merged.
func onlySplits(lag changefeed.ProcessorLag) bool {
	return len(lag.Partitions) > 0 && !slices.ContainsFunc(lag.Partitions, func(p changefeed.Partition) bool {
		return !p.Known() && p.Status != changefeed.StatusSplitting
	})
}

func (l Lookup) unpublished() []string {
	why := ""
	if l.Undelivered != nil {
		why = ": " + l.Undelivered.Error
	}
	return one(l.Overdue, "%s could not be published since %s, so that nothing acts by the decision%s",
		Count(len(l.Waiting), "scale event"), l.at(l.Oldest()), why)
}

// stalled has one sentence for handlers that hang, and one for those that throw.
func (l Lookup) stalled() []string {
	return append(
		stood(l, changefeed.StallHung, "and the lease stays with"),
		stood(l, changefeed.StallFlapping, "since the lease is released and taken again by")...)
}

// stood says since when partitions with one kind of stall have not moved, why, and what hosts do with
// the lease.
func stood(l Lookup, kind changefeed.StallKind, lease string) []string {
	stalled := with(l.Lag, changefeed.StatusStalled)
	stalled.Partitions = slices.DeleteFunc(stalled.Partitions, func(p changefeed.Partition) bool { return p.Stall == nil || p.Stall.Kind != kind })
	if len(stalled.Partitions) == 0 {
		return nil
	}
	moved, since := "have not moved", stalled.Partitions[0].Stall.Since
	if first := stalled.Partitions[0]; len(stalled.Partitions) == 1 {
		moved = "has not moved"
		if first.CheckpointLSN != nil {
			moved = fmt.Sprintf("has stood at %d", *first.CheckpointLSN)
		}
	}
	var hosts []string
	for _, p := range stalled.Partitions {
		hosts = append(append(hosts, p.Stall.Owners...), p.Owner)
		if p.Stall.Since.Before(since) {
			since = p.Stall.Since
		}
	}
	slices.Sort(hosts)
	hosts = slices.DeleteFunc(slices.Compact(hosts), func(host string) bool { return host == "" })
	return []string{fmt.Sprintf("%s %s since %s; %s, %s %s", partitions(stalled), moved, l.at(since), kind.Why(), lease,
		cmp.Or(changefeed.List("host", hosts), "hosts that no poll saw"))}
}

func (l Lookup) expiring() []string {
	expiring, kept := with(l.Lag, changefeed.StatusExpiring), ""
	if l.Lag.Retention > 0 {
		seconds := int64(l.Lag.Retention / time.Second)
		kept = ", and the container keeps a change for " + Age(&seconds)
	}
	return one(len(expiring.Partitions) > 0, "changes of %s are about to be lost: the oldest is %s old%s",
		partitions(expiring), Age(expiring.Age()), kept)
}

func (l Lookup) ahead() (all []string) {
	for _, p := range with(l.Lag, changefeed.StatusAhead).Partitions {
		all = append(all, fmt.Sprintf("partition %s stands at %d, and its feed has come to %d: the lease is from another account, region or container, and changes up to its position are skipped",
			p.Lease, p.Ahead.Position, p.Ahead.Feed))
	}
	return some(all)
}

// some returns the first sentences of many about one partition each, and counts the others.
func some(all []string) []string {
	if more := len(all) - changefeed.Shown; more > 0 {
		return append(all[:changefeed.Shown], "the same is true of "+Count(more, "more partition"))
	}
	return all
}

func (l Lookup) uncovered() []string {
	var holes []string
	for _, r := range l.Lag.Coverage.Holes {
		holes = append(holes, fmt.Sprintf("%q to %q", r.Min, r.Max))
	}
	return one(l.Lag.Uncovered(), "no lease covers %s: no replica reads their changes", changefeed.List("key range", holes))
}

// uncheckedAfter is how long reads of the key ranges may fail before that is a finding.
const uncheckedAfter = 15 * time.Minute

func (l Lookup) unchecked() []string {
	failing := l.Lag.Coverage.Failing
	return one(!failing.IsZero() && l.Lag.Time.Sub(failing) >= uncheckedAfter,
		"its partition key ranges could not be read since %s: whether leases cover all keys was not checked since then", l.at(failing))
}

func (l Lookup) misnamed() []string {
	return one(l.Lag.Bootstrap && l.Lag.Nearest != "", "it has no lease: %s", l.Lag.Nearest)
}

func (l Lookup) bootstrap() []string {
	return one(l.Lag.Bootstrap && l.Lag.Nearest == "", "it has no lease: it never ran, or its leases are in another container")
}

func (l Lookup) splitting() []string {
	splitting := with(l.Lag, changefeed.StatusSplitting)
	unreadable := ""
	if !splitting.Complete() {
		unreadable = "; the new ranges cannot be read yet, so at least 1 counts"
	}
	return one(len(splitting.Partitions) > 0, "%s: the range was split or merged, and the hosts have not created the new leases yet%s",
		partitions(splitting), unreadable)
}

func (l Lookup) beside() (all []string) {
	if l.Decision != nil && l.Decision.Replicas == 0 {
		return nil // with no replica wanted, leases without an owner are right
	}
	for _, name := range l.Lag.Beside {
		all = append(all, "nobody owns its leases, and processor "+name+" reads the same container, is live, and is in no entry")
	}
	return all
}

func (l Lookup) unclaimed() []string {
	unclaimed, asked := with(l.Lag, changefeed.StatusUnclaimed), "replicas"
	if l.Decision != nil {
		asked = Count(l.Decision.Replicas, "replica")
	}
	return one(len(unclaimed.Partitions) > 0, "no host owns %s, though the decision asks for %s: %s",
		partitions(unclaimed), asked, backlog(unclaimed))
}

func (l Lookup) uncheckpointed() []string {
	uncheckpointed := with(l.Lag, changefeed.StatusUncheckpointed)
	return one(len(uncheckpointed.Partitions) > 0, "no checkpoint exists for %s: what is written while no replica runs is skipped, since the position is in the owner's memory alone",
		partitions(uncheckpointed))
}

// lagging says why a backlog does not go away, unless another finding describes it. It names only
// the most useful cause, since all have the same remedy.
func (l Lookup) lagging() []string {
	status := l.Lag.Status()
	if l.Decision == nil || status != changefeed.StatusLagging && status != changefeed.StatusExpiring {
		return nil
	}
	why := cmp.Or(capped(*l.Decision), l.reason("throughput", "hotPartition", "notEffective"), growing(l.State), l.reason("retention", "maxChangeAge"))
	return one(why != "", "%s: %s", backlog(l.Lag), why)
}

// capped says that the decision has fewer replicas than its steps asked for; "" if it has not.
func capped(d scaling.Decision) (text string) {
	needed, before := 0, 0
	for i, r := range d.Reasons {
		if r.Step == "clamp" && i > 0 && r.Replicas < before {
			needed = max(needed, before)
			text = fmt.Sprintf("it needs %s and gets %d, since %s", Count(needed, "replica"), r.Replicas, r.Why)
		}
		before = r.Replicas
	}
	return text
}

func growing(s state.State) string {
	if seconds, known := CatchUpSeconds(s); !known || !math.IsInf(seconds, 1) {
		return ""
	}
	return fmt.Sprintf("the backlog grows, since %.3g arrive a second, and each of %s does %.3g",
		*s.Memory.Arrival, Count(s.Decision.Replicas, "replica"), s.Memory.DrainPerReplica)
}

func (l Lookup) rewound() (all []string) {
	for i := range l.Lag.Partitions {
		if p := &l.Lag.Partitions[i]; p.Rewound != nil {
			all = append(all, fmt.Sprintf("partition %s went back from %d to %d, as was seen at %s: changes are delivered again",
				p.Lease, p.Rewound.From, p.Rewound.To, l.at(p.Rewound.Time)))
		}
	}
	return some(all)
}

func (l Lookup) leftover() []string {
	return one(len(l.Lag.Leftover) > 0, "other leases replaced %s, and nobody deleted what they replaced", changefeed.List("lease", l.Lag.Leftover))
}

func (l Lookup) paused() []string {
	told := "nothing was decided before, so HTTP answers 503"
	if d := l.Standing(); d != nil {
		told = "scalers are told " + Count(d.Replicas, "replica") + ", as decided before"
	}
	return one(l.Paused, "it is paused: nothing is published, and %s", told)
}

func (l Lookup) undecided() []string {
	return one(len(l.Members) > 0 && l.Decision == nil, "nothing is decided for the group, and HTTP answers 503: a member that was never decided may need any number")
}

func (l Lookup) members() (all []string) {
	for _, m := range l.Members {
		if m.Status != changefeed.StatusUnknown {
			continue
		}
		holds := " was never decided: the group does not go below its own last decision"
		if m.Replicas != nil {
			holds = " holds its last decision, " + Count(*m.Replicas, "replica")
		}
		all = append(all, "its member "+m.Processor+" is unknown, and"+holds)
	}
	return all
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
