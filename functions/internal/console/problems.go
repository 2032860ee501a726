package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// Problem is something that an operator should know, in one sentence.
type Problem struct {
	Name string `json:"name"` // of the processor or group
	Kind string `json:"kind"` // a status or another word of docs/lag.md; stale, paused or group
	Says string `json:"says"`
	Do   string `json:"do"`
	Page string `json:"page"` // that says more
}

// shown is how many partitions a processor's sentences name.
const shown = 3

// The pages that sentences point to.
const (
	pageStatus  = "docs/status.md#" // and the status or word
	pageUnknown = "docs/troubleshooting.md#a-processor-is-unknown"
	pageStale   = "docs/status.md#stale"
	pageTune    = "docs/tune.md#which-field-for-which-trouble"
	pagePausing = "docs/act.md#pausing"
	pageGroups  = "docs/configure.md#groups"
)

// Problems finds what an operator should know, in the order of the processors and groups given, and of
// each the worst first.
func Problems(all report.List) []Problem {
	found := []Problem{}
	for _, p := range all.Processors {
		s := sentences{now: all.Time, name: p.Name}
		s.processor(p)
		found = append(found, s.found...)
	}
	for _, g := range all.Groups {
		s := sentences{now: all.Time, name: g.Name}
		s.group(g)
		found = append(found, s.found...)
	}
	return found
}

// sentences are those about one processor or group.
type sentences struct {
	now   time.Time
	name  string
	found []Problem
}

func (s *sentences) say(kind, do, page, format string, args ...any) {
	s.found = append(s.found, Problem{s.name, kind, oneLine(fmt.Sprintf(format, args...)), do, page})
}

// status says something of a status, with the advice that everybody gives for it.
func (s *sentences) status(of changefeed.Status, format string, args ...any) {
	page := pageStatus + string(of)
	if of == changefeed.StatusUnknown {
		page = pageUnknown
	}
	for _, advice := range report.Advices() {
		if advice.Status == of {
			s.say(string(of), advice.Do, page, format, args...)
		}
	}
}

func (s *sentences) processor(p report.Stored) {
	if !s.polled("processor", p.Kept, p.Error) {
		return
	}
	s.unknown(p)
	by := make(map[changefeed.Status][]report.Partition)
	for _, q := range p.Partitions {
		by[q.Status] = append(by[q.Status], q)
	}
	s.stalled(by[changefeed.StatusStalled])
	if q := by[changefeed.StatusExpiring]; len(q) > 0 && p.RetentionSeconds != nil {
		s.status(changefeed.StatusExpiring, "%s about to be lost: the oldest is %s old, and the container keeps a change for %s",
			inPartitions("changes of", q, "are"), Age(oldest(q)), Age(p.RetentionSeconds))
	} else if len(q) > 0 {
		s.status(changefeed.StatusExpiring, "%s about to be lost: the oldest is %s old", inPartitions("changes of", q, "are"), Age(oldest(q)))
	}
	if p.Status == changefeed.StatusBootstrap {
		s.status(changefeed.StatusBootstrap, "it has no lease: %s", reason(p.Processor, "bootstrap", "no processor has run yet"))
	}
	if q := by[changefeed.StatusSplitting]; len(q) > 0 {
		s.status(changefeed.StatusSplitting, "%s split or merged, and no replica has replaced the %s yet", inPartitions("", q, "was", "were"), plural(len(q), "lease"))
	}
	if q := by[changefeed.StatusUnclaimed]; len(q) > 0 {
		s.status(changefeed.StatusUnclaimed, "%s %s pending, the oldest for %s, and nobody takes the %s, though %s asked for",
			inPartitions("", q, "has", "have"), changes(q), Age(oldest(q)), plural(len(q), "lease"), replicasAre(p.DesiredReplicas))
	}
	if q := by[changefeed.StatusUncheckpointed]; len(q) > 0 {
		s.status(changefeed.StatusUncheckpointed, "%s no checkpoint: the position is in the memory of the owner alone, and what is written while no replica runs is skipped", inPartitions("", q, "has", "have"))
	}
	s.behind(p)
	s.rewound(p.Partitions)
	if len(p.Leftover) > 0 {
		s.say("leftover", "nothing; it is not counted. If it stays, delete it while no replica runs", pageStatus+"leftover",
			"%s replaced by others and not deleted", named("lease", p.Leftover, "was", "were"))
	}
	s.paused(p.Kept, p.DesiredReplicas)
}

// polled reports whether there is anything to say but that it was never polled, or cannot be read.
func (s *sentences) polled(what string, kept report.Kept, problem *string) bool {
	const do = "see whether the poller runs, and polls into the state that is looked at: its log has a line tick for each poll"
	switch {
	case kept.AttemptedAt == nil && problem != nil:
		s.say(string(changefeed.StatusUnknown), do, pageStale, "%s", *problem)
		return false
	case kept.AttemptedAt == nil:
		s.say(string(changefeed.StatusUnknown), do, pageStale, "this %s was never polled", what)
		return false
	case kept.Stale:
		s.say("stale", do, pageStale, "it was last polled at %s, more than three of its poll intervals ago: all of this is of then, and HTTP answers 503", s.at(*kept.AttemptedAt))
	}
	return true
}

// unknown says what could not be measured, and which decision stands meanwhile.
func (s *sentences) unknown(p report.Stored) {
	if p.Complete {
		return
	}
	text := "it could not be measured"
	if p.FailedPolls > 1 {
		text = fmt.Sprintf("it could not be measured %d times in a row", p.FailedPolls)
		if p.PolledAt != nil {
			text += ", since " + s.at(*p.PolledAt)
		}
	}
	if p.Lag != nil {
		text = "it is known in part"
	}
	if p.Error != nil {
		text += ": " + strings.TrimSuffix(*p.Error, ".")
	}
	switch failure, fallback := reason(p.Processor, "failure", ""), reason(p.Processor, "fallback", ""); {
	case p.DesiredReplicas == nil:
		text += "; nothing is decided, and HTTP answers 503"
	case fallback != "":
		text += fmt.Sprintf("; the fallback asks for %s (%s)", report.Count(*p.DesiredReplicas, "replica"), fallback)
	case failure != "":
		text += fmt.Sprintf("; the last decision, %s, holds (%s)", report.Count(*p.DesiredReplicas, "replica"), failure)
	}
	s.status(changefeed.StatusUnknown, "%s", text)
}

func (s *sentences) stalled(stalled []report.Partition) {
	slices.SortStableFunc(stalled, func(a, b report.Partition) int { return cmp.Compare(orZero(b.Lag), orZero(a.Lag)) })
	for i, q := range stalled {
		if i == shown {
			s.status(changefeed.StatusStalled, "%s stalled, too", inPartitions("", stalled[shown:], "is", "are"))
			return
		}
		text := "partition " + q.Lease + " has not moved"
		if q.CheckpointLSN != nil {
			text = fmt.Sprintf("partition %s has stood at %d", q.Lease, *q.CheckpointLSN)
		}
		if q.Stall == nil {
			s.status(changefeed.StatusStalled, "%s; more replicas do not help", text)
			continue
		}
		text += " since " + s.at(q.Stall.Since)
		owners := strings.Join(q.Stall.Owners, ", ")
		switch {
		case q.Stall.Kind == changefeed.StallFlapping && owners != "":
			text += "; its lease is given back and taken again, by " + owners
		case q.Stall.Kind == changefeed.StallFlapping:
			text += "; its lease is given back and taken again"
		case q.Owner != nil:
			text += "; its owner " + *q.Owner + " holds the lease"
		case owners != "":
			text += "; its owner was " + owners
		}
		s.status(changefeed.StatusStalled, "%s; more replicas do not help", text)
	}
}

// remarkable is from which age on, in seconds, a backlog that only grows is worth a sentence: what a replica
// was seen to do is the least that it can, so that a young one proves nothing.
const remarkable = 60

// limiting are the steps of a decision that say that replicas alone do not help, or do not suffice.
var limiting = []string{"maxChangeAge", "retention", "throughput", "hotPartition", "notEffective"}

// behind says of a backlog what is remarkable about it: that it only grows, or what keeps it from being
// worked off in time. One that stands still, or that nobody takes, has had its sentence.
func (s *sentences) behind(p report.Stored) {
	if p.Lag == nil || *p.Lag == 0 || p.DesiredReplicas == nil || p.Status != changefeed.StatusLagging && p.Status != changefeed.StatusExpiring {
		return
	}
	const do = "see what keeps it from more: maxReplicaCount, the number of partitions, the request units, the handler"
	pending := fmt.Sprintf("%s pending, the oldest for %s", inAll(*p.Lag), Age(p.ChangeAgeSeconds))
	if p.ArrivalPerSecond != nil && p.DrainPerReplica != nil && p.CatchUpSeconds == nil && orZero(p.ChangeAgeSeconds) >= remarkable {
		s.say(string(changefeed.StatusLagging), do, pageTune, "%s, and by the measured rates the backlog only grows: %.3g arrive a second, and one of %s was seen to do %.3g",
			pending, *p.ArrivalPerSecond, report.Count(*p.DesiredReplicas, "replica"), *p.DrainPerReplica)
	}
	before := 0
	for i, r := range p.Reasons {
		capped := r.Step == "clamp" && i > 0 && r.Replicas < before
		if capped {
			s.say(string(changefeed.StatusLagging), do, pageTune, "%s, and %s asked for, of which it gets %d: %s", pending, replicasAre(&before), r.Replicas, r.Why)
		} else if slices.Contains(limiting, r.Step) {
			s.say(string(changefeed.StatusLagging), do, pageTune, "%s: %s", pending, r.Why)
		}
		before = r.Replicas
	}
}

func (s *sentences) rewound(partitions []report.Partition) {
	const do = "ask who did it. Handlers see changes again, which they have to bear"
	const page = pageStatus + "rewound"
	n := 0
	for _, q := range partitions {
		if q.Rewound == nil {
			continue
		}
		if n++; n <= shown {
			s.say("rewound", do, page, "partition %s went back from %d to %d, as was seen at %s: changes are delivered again", q.Lease, q.Rewound.From, q.Rewound.To, s.at(q.Rewound.Time))
		}
	}
	if n > shown {
		s.say("rewound", do, page, "%s more went back, too", report.Count(n-shown, "partition"))
	}
}

func (s *sentences) paused(kept report.Kept, desired *int) {
	if !kept.Paused {
		return
	}
	told := "nothing was decided before, so that HTTP answers 503"
	if desired != nil {
		told = "whoever asks is told " + report.Count(*desired, "replica") + ", as was decided before"
	}
	s.say("paused", "take paused out of the processors file where it is to scale again", pagePausing, "it is paused: nothing is published, and %s", told)
}

func (s *sentences) group(g report.StoredGroup) {
	if !s.polled("group", g.Kept, g.Error) {
		return
	}
	const do = "see what is said of that member"
	if g.DesiredReplicas == nil {
		s.say("group", do, pageGroups, "nothing is decided for the group, and HTTP answers 503: a member that was never decided may ask for any number")
	}
	for _, m := range g.Members {
		switch {
		case m.Status != changefeed.StatusUnknown:
		case m.DesiredReplicas == nil:
			s.say("group", do, pageGroups, "its member %s is unknown and was never decided: the group does not go below its own last decision", m.Processor)
		default:
			s.say("group", do, pageGroups, "its member %s is unknown, and holds its last decision, %s", m.Processor, report.Count(*m.DesiredReplicas, "replica"))
		}
	}
}

// at is a time of day, in UTC; with the date where that is another one than now's.
func (s *sentences) at(t time.Time) string {
	const day = time.DateOnly
	t = t.UTC()
	if t.Format(day) == s.now.UTC().Format(day) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// reason is why a step said what it did; otherwise where it had no say.
func reason(p report.Processor, step, otherwise string) string {
	for _, r := range p.Reasons {
		if r.Step == step {
			return r.Why
		}
	}
	return otherwise
}

// inPartitions names partitions, with the verb in singular and, where it has one, in plural.
func inPartitions(before string, partitions []report.Partition, verbs ...string) string {
	leases := make([]string, len(partitions))
	for i, q := range partitions {
		leases[i] = q.Lease
	}
	return strings.TrimLeft(before+" "+named("partition", leases, verbs...), " ")
}

// named names things, the first of them where there are many.
func named(what string, names []string, verbs ...string) string {
	if len(names) == 1 {
		return what + " " + names[0] + " " + verbs[0]
	}
	list, last := names[:len(names)-1], names[len(names)-1]
	if len(names) > shown+1 {
		list, last = names[:shown], fmt.Sprintf("%d more", len(names)-shown)
	}
	return what + "s " + strings.Join(list, ", ") + " and " + last + " " + verbs[len(verbs)-1]
}

func plural(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

// changes counts what is pending in partitions.
func changes(partitions []report.Partition) string {
	var sum int64
	for _, q := range partitions {
		sum = changefeed.AddLag(sum, orZero(q.Lag))
	}
	return report.Count(int(sum), "transaction")
}

func inAll(lag int64) string {
	if lag == 1 {
		return "1 transaction is"
	}
	return fmt.Sprintf("%d transactions are", lag)
}

func replicasAre(n *int) string {
	switch {
	case n == nil:
		return "replicas are"
	case *n == 1:
		return "1 replica is"
	}
	return fmt.Sprintf("%d replicas are", *n)
}

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// oldest is the age of the oldest pending change of partitions, in seconds; nil where none is known.
func oldest(partitions []report.Partition) (age *int64) {
	for _, q := range partitions {
		if q.ChangeAgeSeconds != nil && (age == nil || *q.ChangeAgeSeconds > *age) {
			age = q.ChangeAgeSeconds
		}
	}
	return age
}
