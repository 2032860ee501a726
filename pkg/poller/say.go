package poller

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

// messages are what is to be logged of a measurement.
type messages struct {
	unknown    string         // that the lag is not known, or not fully; "" if it is known or a Cause says why not
	partitions map[string]int // in each of the conditions, by its kind
}

func messagesOf(lag *changefeed.ProcessorLag) messages {
	m := messages{partitions: map[string]int{}}
	explains := func(c changefeed.Cause) bool { return !c.Beside }
	switch {
	case lag.Time.IsZero() || lag.Complete() || slices.ContainsFunc(lag.Causes, explains):
	case lag.Known():
		m.unknown = "the lag is not fully known"
	default:
		m.unknown = "the lag is not known"
	}
	for i := range lag.Partitions {
		p := &lag.Partitions[i]
		kind := string(p.Status)
		if p.Status == changefeed.StatusStalled && p.Stall != nil {
			kind = string(p.Stall.Kind)
		}
		m.partitions[kind]++
		if p.Rewound != nil {
			m.partitions["rewound"]++
		}
		if p.BadTime {
			m.partitions["badLeaseTime"]++
		}
	}
	return m
}

// say logs what an operator has to know of a measurement and the one before did not say. sayCauses
// logs what refuses, once for all processors.
func (p *Poller) say(name string, last *changefeed.ProcessorLag, before messages, lag changefeed.ProcessorLag) {
	now := messagesOf(&lag)
	if now.unknown != "" && now.unknown != before.unknown {
		p.Log.Warn(now.unknown, "processor", name, "error", lag.Problem())
	}
	if lag.Nearest != "" && lag.Nearest != last.Nearest {
		p.Log.Warn("no lease of a processor was found", "processor", name, "next", lag.Nearest)
	}
	// At a split a lease may be left over in one poll.
	stays := slices.DeleteFunc(slices.Clone(lag.Leftover), func(lease string) bool { return !slices.Contains(last.Leftover, lease) })
	if left := strings.Join(stays, " "); left != "" && p.said.News("leftover of "+name, left) {
		p.Log.Warn("leases of a processor are left over", "processor", name, "kind", "leftover", "leases", left, "next", "others have replaced them, and nobody deleted them: they are not counted; delete them while no replica runs")
	}
	if lag.Uncovered() && !last.Uncovered() {
		p.Log.Warn("keys of a processor are uncovered", "processor", name, "kind", string(changefeed.StatusUncovered), "holes", len(lag.Coverage.Holes), "next", "no lease covers them, so that no replica reads them: https://github.com/feedscale/feedscale/blob/main/docs/status.md#uncovered says how to create the lease again")
	}
	for _, c := range conditions {
		if n := now.partitions[c.kind]; n > before.partitions[c.kind] {
			p.Log.Warn(c.says, "processor", name, "kind", c.kind, "partitions", n, "next", c.next)
		}
	}
}

// conditions are what an operator has to know of partitions (docs/status.md). Each is logged when
// more partitions are in it than before. The alerts of infra look for these messages.
var conditions = []struct{ kind, says, next string }{
	{string(changefeed.StallHung), "a processor is stalled", "look at the log of the owner: it holds the lease of pending changes, but its handler does not return"},
	{string(changefeed.StallFlapping), "a processor is stalled", "look at the log of the owners: the lease is given up and taken again, since the handler throws; feedscale inspect NAME PARTITION names the change"},
	{string(changefeed.StatusExpiring), "changes of a processor are about to expire", "they leave their retention unread: see that the processor runs, or lengthen the retention"},
	{string(changefeed.StatusAhead), "positions of a processor are ahead of the feed", "the leases are from another account, region or container: changes up to their positions are skipped"},
	{string(changefeed.StatusUnclaimed), "partitions of a processor are unclaimed", "changes are pending and nobody takes the lease: see that its replicas start and may write to the lease container"},
	{"rewound", "a position of a processor went backwards", "changes are processed again: a lease was restored, reset or deleted"},
	{"badLeaseTime", "leases of a processor have a time that no owner can have written", "it counts as none: set the clock of the owners, or find what else writes leases"},
}

// undelivered is why an event was not published, for the State.
func (p *Poller) undelivered(err error) *state.DeliveryFailure {
	cause, named := changefeed.CauseOf(err)
	if !named {
		cause.Says = "does not answer"
	}
	cause.Remedy = strings.TrimSuffix("run feedscale check, which tries it; "+cause.Remedy, "; ")
	cause.Of, cause.Effect = p.Destination, changefeed.Unpublished
	if strings.Contains(p.Destination, "/") {
		cause.Of = "queue or topic " + p.Destination // the name of a topic does not tell
	}
	return &state.DeliveryFailure{Error: err.Error(), Cause: cause}
}

// sight is a cause, with the error of the poll that saw it.
type sight struct {
	changefeed.Cause
	err string
}

// sightsOf returns the causes that a State names. Without its leases, the errors of partitions are missing.
func sightsOf(s *state.State) (all []sight) {
	for _, c := range s.Lag.Causes {
		all = append(all, sight{c, s.Lag.Problem()})
	}
	if s.Undelivered != nil {
		all = append(all, sight{s.Undelivered.Cause, s.Undelivered.Error})
	}
	return all
}

// troubles are the causes that the subjects of a tick see, by what refuses and how.
type troubles map[[2]string]*trouble

type trouble struct {
	sight          // of one subject, but since the first
	names []string // of all subjects
}

func (t troubles) add(name string, sights []sight) {
	for _, s := range sights {
		all := t[[2]string{s.Of, s.Says}]
		if all == nil {
			all = &trouble{sight: s}
			t[[2]string{s.Of, s.Says}] = all
		}
		if s.Since.Before(all.Since) {
			all.Since = s.Since
		}
		if !slices.Contains(all.names, name) {
			all.names = append(all.names, name)
		}
	}
}

// namesShown is how many names a line of the log has.
const namesShown = 5

// sayCauses logs, once for all subjects, what begins to refuse, and what has ended. In its first tick a process
// takes what the stored States name for logged. A shard sees too little to tell: the timer's next tick does.
func (t *tick) sayCauses(subjects []*subject) {
	if t.scope.Shard != nil {
		return
	}
	before, now, unread := make(troubles), make(troubles), false
	for _, d := range subjects {
		before.add(d.name, d.saw)
		now.add(d.name, d.sees)
		unread = unread || d.err != nil
	}
	if told := t.told.Load(); told != nil {
		before = *told
	}
	if unread { // such a State may name any of them
		all := maps.Clone(before)
		maps.Copy(all, now)
		now = all
	}
	t.told.Store(&now)
	for k, c := range now {
		if before[k] == nil {
			t.Log.Warn("a failure begins", "what", c.Of, "says", c.Says, "processors", len(c.names),
				"names", strings.Join(c.names[:min(namesShown, len(c.names))], " "), "error", c.err, "next", c.Remedy)
		}
	}
	for k, c := range before {
		if now[k] == nil {
			t.Log.Info("a failure has ended", "what", c.Of, "says", c.Says, "processors", len(c.names),
				"since", c.Since.UTC().Format(time.RFC3339), "duration", t.scope.now.Sub(c.Since).Round(time.Second).String())
		}
	}
}
