package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

// Finding is something that an operator should know about a processor or a group.
type Finding struct {
	Code     string   `json:"code"` // a status or another word, with a section in docs/status.md
	Severity Severity `json:"severity"`
	Sentence string   `json:"sentence"` // what was found, on one line and without a full stop
	Remedy   string   `json:"remedy"`   // what to do about it
}

// Page returns where the documentation says more.
func (f Finding) Page() string { return "docs/status.md#" + f.Code }

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
	case changefeed.StatusUnknown, changefeed.StatusStalled, changefeed.StatusExpiring:
		return Critical
	case changefeed.StatusLagging:
		return Info
	case changefeed.StatusOK:
		return OK
	}
	return Warning
}

// Lookup is a State, with what looking it up showed beside it.
type Lookup struct {
	state.State
	Stale   bool   // it was not polled for more than three of its poll intervals
	Problem string // why the State cannot be read, or why nothing is ever polled; "" = neither
}

// finders are everything that is looked for, in the order in which people read it. A new one has its
// function here, its cases in finding_test.go, and its section in docs/status.md.
var finders = []func(Lookup) []Finding{
	Lookup.neverPolled, Lookup.stale, Lookup.unknown, Lookup.stalled, Lookup.expiring, Lookup.bootstrap, Lookup.splitting, Lookup.unclaimed,
	Lookup.uncheckpointed, Lookup.growing, Lookup.limited, Lookup.rewound, Lookup.leftover, Lookup.paused, Lookup.undecided, Lookup.members,
}

// Findings returns what an operator should know, the worst first; empty where there is nothing.
func Findings(l Lookup) []Finding {
	all := []Finding{}
	for _, find := range finders {
		for _, f := range find(l) {
			f.Sentence = strings.Join(strings.Fields(f.Sentence), " ")
			all = append(all, f)
		}
	}
	return all
}

// found makes a finding with the severity of its status.
func found(status changefeed.Status, remedy, format string, args ...any) []Finding {
	return []Finding{{string(status), SeverityOf(status), fmt.Sprintf(format, args...), remedy}}
}

const (
	readTheError    = "read the error: it says what to correct"
	lookAtThePoller = "check that the poller runs, and that it writes the state that you look at: its log has a line tick for each poll"
)

func (l Lookup) neverPolled() []Finding {
	switch {
	case !l.AttemptedAt.IsZero():
		return nil
	case l.Problem != "":
		return found(changefeed.StatusUnknown, readTheError, "%s", l.Problem)
	}
	return []Finding{{"stale", Critical, "it was never polled", lookAtThePoller}}
}

func (l Lookup) stale() []Finding {
	if !l.Stale {
		return nil
	}
	return []Finding{{"stale", Critical, fmt.Sprintf("it was last polled at %s, more than three of its poll intervals ago: everything here is as of then, and HTTP answers 503",
		l.AttemptedAt.UTC().Format(dayAndMinute)), lookAtThePoller}}
}

// unknown says what could not be measured, and which decision holds meanwhile.
func (l Lookup) unknown() []Finding {
	if l.AttemptedAt.IsZero() || len(l.Members) > 0 || l.Lag.Complete() {
		return nil
	}
	text := "it could not be measured"
	switch failed := l.Memory.Failures; {
	case l.Lag.Known():
		text = "it could be measured only in part"
	case failed > 1 && !l.PolledAt.IsZero():
		text += fmt.Sprintf(" %d times in a row, since %s", failed, l.at(l.PolledAt))
	case failed > 1:
		text += fmt.Sprintf(" %d times in a row", failed)
	}
	if problem := l.Lag.Problem(); problem != "" {
		text += ": " + strings.TrimSuffix(problem, ".")
	}
	switch failure, fallback := l.reason("failure"), l.reason("fallback"); {
	case l.Decision == nil:
		text += "; nothing is decided, and HTTP answers 503"
	case fallback != "":
		text += fmt.Sprintf("; the fallback asks for %s (%s)", Count(l.Decision.Replicas, "replica"), fallback)
	case failure != "":
		text += fmt.Sprintf("; the last decision, %s, holds (%s)", Count(l.Decision.Replicas, "replica"), failure)
	}
	return found(changefeed.StatusUnknown, readTheError, "%s", text)
}

func (l Lookup) stalled() (all []Finding) {
	const remedy = "look at the change at that position. More replicas do not help. If a batch really takes so long, raise stalledAfter"
	stalled := l.with(changefeed.StatusStalled)
	slices.SortStableFunc(stalled, func(a, b *changefeed.Partition) int { return cmp.Compare(pending(b), pending(a)) })
	for i, p := range stalled {
		if i == shown {
			return append(all, found(changefeed.StatusStalled, remedy, "%s stalled as well", list("partition", leases(stalled[shown:])))...)
		}
		text := "partition " + p.Lease + " has not moved"
		if p.CheckpointLSN != nil {
			text = fmt.Sprintf("partition %s has stood at %d", p.Lease, *p.CheckpointLSN)
		}
		if s := p.Stall; s != nil {
			text += " since " + l.at(s.Since)
			owners := strings.Join(s.Owners, ", ")
			switch {
			case s.Kind == changefeed.StallFlapping:
				text += "; the handler throws or its process dies, since the lease is released and taken again"
				if owners != "" {
					text += ", by " + owners
				}
			case p.Owner != "":
				text += "; the handler does not return, since its owner " + p.Owner + " keeps the lease"
			case owners != "":
				text += "; its owner was " + owners
			}
		}
		all = append(all, found(changefeed.StatusStalled, remedy, "%s", text)...)
	}
	return all
}

func (l Lookup) expiring() []Finding {
	expiring := l.with(changefeed.StatusExpiring)
	if len(expiring) == 0 {
		return nil
	}
	text := fmt.Sprintf("changes of %s are about to be lost: the oldest is %s old", list("partition", leases(expiring)), Age(oldest(expiring)))
	if l.Lag.Retention > 0 {
		seconds := int64(l.Lag.Retention / time.Second)
		text += fmt.Sprintf(", and the container keeps a change for %s", Age(&seconds))
	}
	return found(changefeed.StatusExpiring, "scale out by hand, or raise the container's time to live. The decision has asked for replicas since half of the retention: "+
		"check what limits them, maxReplicaCount or the number of partitions", "%s", text)
}

func (l Lookup) bootstrap() []Finding {
	switch {
	case !l.Lag.Bootstrap:
		return nil
	case l.Lag.Nearest != "":
		return []Finding{{string(changefeed.StatusBootstrap), Critical, "it has no lease: " + l.Lag.Nearest,
			"correct processorName, accountHost or leaseContainerId of " + l.Processor + " in the processors file; feedscale leases lists what the container holds"}}
	}
	return found(changefeed.StatusBootstrap, "start the processor once; one replica is asked for. If it has run, correct leaseContainerId",
		"it has no lease: it never ran, or its leases are in another container")
}

func (l Lookup) splitting() []Finding {
	splitting := l.with(changefeed.StatusSplitting)
	if len(splitting) == 0 {
		return nil
	}
	return found(changefeed.StatusSplitting, "nothing: a running replica replaces the lease. If it stays, check that replicas run",
		"after a split or merge, no replica has replaced the lease of %s yet", list("partition", leases(splitting)))
}

func (l Lookup) unclaimed() []Finding {
	unclaimed := l.with(changefeed.StatusUnclaimed)
	if len(unclaimed) == 0 {
		return nil
	}
	var sum int64
	for _, p := range unclaimed {
		sum = changefeed.AddLag(sum, pending(p))
	}
	asked := "replicas"
	if l.Decision != nil {
		asked = Count(l.Decision.Replicas, "replica")
	}
	return found(changefeed.StatusUnclaimed, "check that the decisions reach what scales, that the replicas start, and that they use this processorName and lease container",
		"no host owns %s, though the decision asks for %s: %s pending, the oldest for %s", list("partition", leases(unclaimed)), asked, Count(int(sum), "transaction"), Age(oldest(unclaimed)))
}

func (l Lookup) uncheckpointed() []Finding {
	uncheckpointed := l.with(changefeed.StatusUncheckpointed)
	if len(uncheckpointed) == 0 {
		return nil
	}
	return found(changefeed.StatusUncheckpointed, "nothing: one replica stays. It ends with a first change in each partition, or a start from the beginning",
		"no checkpoint exists for %s: what is written while no replica runs is skipped, since the position is in the owner's memory alone", list("partition", leases(uncheckpointed)))
}

// remarkable is the age from which on, in seconds, a growing backlog is worth a finding: the measured rate
// of a replica is a lower bound, so a young backlog proves nothing.
const remarkable = 60

const findTheLimit = "check what limits it: maxReplicaCount, the number of partitions, the request units, the handler"

// backlog describes what is pending; "" where nothing is, or where another finding describes it.
func (l Lookup) backlog() string {
	lag, status := l.Lag.Lag(), l.Lag.Status()
	if lag == nil || *lag == 0 || l.Decision == nil || status != changefeed.StatusLagging && status != changefeed.StatusExpiring {
		return ""
	}
	return fmt.Sprintf("%s pending, the oldest for %s", Count(int(*lag), "transaction"), Age(l.Lag.Age()))
}

func (l Lookup) growing() []Finding {
	age, drain := l.Lag.Age(), l.Memory.DrainPerReplica
	backlog, seconds, known := l.backlog(), 0.0, false
	if backlog != "" {
		seconds, known = CatchUpSeconds(l.State)
	}
	if !known || !math.IsInf(seconds, 1) || age == nil || *age < remarkable {
		return nil
	}
	return []Finding{{string(changefeed.StatusLagging), Warning, fmt.Sprintf("%s, and the backlog grows: %.3g arrive a second, and each of %s does %.3g",
		backlog, *l.Memory.Arrival, Count(l.Decision.Replicas, "replica"), drain), findTheLimit}}
}

// limiting are the steps of a decision whose reason says that replicas alone do not help, or not enough.
var limiting = []string{"maxChangeAge", "retention", "throughput", "hotPartition", "notEffective"}

func (l Lookup) limited() (all []Finding) {
	backlog := l.backlog()
	if backlog == "" {
		return nil
	}
	before := 0
	for i, r := range l.Decision.Reasons {
		text := ""
		if r.Step == "clamp" && i > 0 && r.Replicas < before {
			text = fmt.Sprintf("%s: it needs %s and gets %d, since %s", backlog, Count(before, "replica"), r.Replicas, r.Why)
		} else if slices.Contains(limiting, r.Step) {
			text = backlog + ": " + r.Why
		}
		if text != "" {
			all = append(all, Finding{string(changefeed.StatusLagging), Warning, text, findTheLimit})
		}
		before = r.Replicas
	}
	return all
}

func (l Lookup) rewound() (all []Finding) {
	const remedy = "ask who reset or restored the leases. Handlers see changes again, and have to tolerate that"
	n := 0
	for i := range l.Lag.Partitions {
		p := &l.Lag.Partitions[i]
		if p.Rewound == nil {
			continue
		}
		if n++; n <= shown {
			all = append(all, Finding{"rewound", Warning, fmt.Sprintf("partition %s went back from %d to %d, as was seen at %s: changes are delivered again",
				p.Lease, p.Rewound.From, p.Rewound.To, l.at(p.Rewound.Time)), remedy})
		}
	}
	if n > shown {
		all = append(all, Finding{"rewound", Warning, Count(n-shown, "partition") + " more went back as well", remedy})
	}
	return all
}

func (l Lookup) leftover() []Finding {
	if len(l.Lag.Leftover) == 0 {
		return nil
	}
	return []Finding{{"leftover", Info, "other leases replaced " + list("lease", l.Lag.Leftover) + ", and nobody deleted what they replaced", "nothing: it is not counted. If it stays, delete it while no replica runs"}}
}

func (l Lookup) paused() []Finding {
	if !l.Paused {
		return nil
	}
	told := "nothing was decided before, so HTTP answers 503"
	if d := l.Standing(); d != nil {
		told = "scalers are told " + Count(d.Replicas, "replica") + ", as decided before"
	}
	return []Finding{{"paused", Info, "it is paused: nothing is published, and " + told, "remove paused from the processors file to scale again"}}
}

const seeTheMember = "see the findings of that member"

func (l Lookup) undecided() []Finding {
	if len(l.Members) == 0 || l.Decision != nil {
		return nil
	}
	return []Finding{{"group", Critical, "nothing is decided for the group, and HTTP answers 503: a member that was never decided may need any number", seeTheMember}}
}

func (l Lookup) members() (all []Finding) {
	for _, m := range l.Members {
		switch {
		case m.Status != changefeed.StatusUnknown:
			continue
		case m.Replicas == nil:
			all = append(all, Finding{"group", Warning, "its member " + m.Processor + " is unknown and was never decided: the group does not go below its own last decision", seeTheMember})
		default:
			all = append(all, Finding{"group", Warning, fmt.Sprintf("its member %s is unknown, and holds its last decision, %s", m.Processor, Count(*m.Replicas, "replica")), seeTheMember})
		}
	}
	return all
}

// shown is how many partitions the findings of one kind name.
const shown = 3

// list names things, the first ones where there are many.
func list(what string, names []string) string {
	if len(names) == 1 {
		return what + " " + names[0]
	}
	first, last := names[:len(names)-1], names[len(names)-1]
	if len(names) > shown+1 {
		first, last = names[:shown], fmt.Sprintf("%d more", len(names)-shown)
	}
	return what + "s " + strings.Join(first, ", ") + " and " + last
}

// with returns the partitions that have a status.
func (l Lookup) with(status changefeed.Status) (all []*changefeed.Partition) {
	for i := range l.Lag.Partitions {
		if p := &l.Lag.Partitions[i]; p.Status == status {
			all = append(all, p)
		}
	}
	return all
}

// reason returns why a step of the decision had a say; "" where it had none.
func (l Lookup) reason(step string) string {
	if l.Decision != nil {
		for _, r := range l.Decision.Reasons {
			if r.Step == step {
				return r.Why
			}
		}
	}
	return ""
}

const dayAndMinute = "2006-01-02 15:04 UTC"

// at writes a time in UTC, without the day where that is the day of the poll.
func (l Lookup) at(t time.Time) string {
	t, polled := t.UTC(), l.AttemptedAt.UTC()
	if t.Format(time.DateOnly) == polled.Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format(dayAndMinute)
}

func leases(partitions []*changefeed.Partition) []string {
	names := make([]string, len(partitions))
	for i, p := range partitions {
		names[i] = p.Lease
	}
	return names
}

// pending returns the lag of a partition, 0 where it is unknown.
func pending(p *changefeed.Partition) int64 {
	if p.Lag == nil {
		return 0
	}
	return *p.Lag
}

// oldest returns the greatest age of some partitions, in seconds; nil where none is known.
func oldest(partitions []*changefeed.Partition) (age *int64) {
	for _, p := range partitions {
		if p.Age != nil && (age == nil || *p.Age > *age) {
			age = p.Age
		}
	}
	return age
}

// Age writes a number of seconds as people say it; "-" where nothing is pending.
func Age(seconds *int64) string {
	switch {
	case seconds == nil:
		return "-"
	case *seconds < 120:
		return fmt.Sprintf("%ds", *seconds)
	case *seconds < 2*3600:
		return fmt.Sprintf("%dm", *seconds/60)
	default:
		return fmt.Sprintf("%dh", *seconds/3600)
	}
}
