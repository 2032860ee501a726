package poller

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

// messages are what is to be logged of a measurement.
type messages struct {
	unknown    string // that the lag is not known, or not fully; "" if it is known or a Cause says why not
	conditions []int  // partitions in each of the conditions
}

func messagesOf(lag *changefeed.ProcessorLag) messages {
	s := messages{conditions: make([]int, len(conditions))}
	explains := func(c changefeed.Cause) bool { return !c.Beside }
	switch {
	case lag.Time.IsZero() || lag.Complete() || slices.ContainsFunc(lag.Causes, explains):
	case lag.Known():
		s.unknown = "the lag is not fully known"
	default:
		s.unknown = "the lag is not known"
	}
	for i := range lag.Partitions {
		for j, c := range conditions {
			if c.holds(&lag.Partitions[i]) {
				s.conditions[j]++
			}
		}
	}
	return s
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
	for i, n := range now.conditions {
		if c := conditions[i]; n > before.conditions[i] {
			p.Log.Warn(c.says, "processor", name, "kind", c.kind, "partitions", n, "next", c.next)
		}
	}
}

// conditions are what an operator has to know of partitions (docs/status.md). Each is logged when
// more partitions are in it than before. The alerts of infra look for these messages.
var conditions = []struct {
	says, kind, next string
	holds            func(p *changefeed.Partition) bool
}{
	{"a processor is stalled", string(changefeed.StallHung), "look at the log of the owner: it holds the lease of pending changes, but its handler does not return",
		func(p *changefeed.Partition) bool { return p.Stall != nil && p.Stall.Kind == changefeed.StallHung }},
	{"a processor is stalled", string(changefeed.StallFlapping), "look at the log of the owners: the lease is given up and taken again, since the handler throws; feedscale inspect NAME PARTITION names the change",
		func(p *changefeed.Partition) bool { return p.Stall != nil && p.Stall.Kind == changefeed.StallFlapping }},
	{"changes of a processor are about to expire", string(changefeed.StatusExpiring), "they leave their retention unread: see that the processor runs, or lengthen the retention",
		func(p *changefeed.Partition) bool { return p.Status == changefeed.StatusExpiring }},
	{"positions of a processor are ahead of the feed", string(changefeed.StatusAhead), "the leases are from another account, region or container: changes up to their positions are skipped",
		func(p *changefeed.Partition) bool { return p.Ahead != nil }},
	{"partitions of a processor are unclaimed", string(changefeed.StatusUnclaimed), "changes are pending and nobody takes the lease: see that its replicas start and may write to the lease container",
		func(p *changefeed.Partition) bool { return p.Status == changefeed.StatusUnclaimed }},
	{"a position of a processor went backwards", "rewound", "changes are processed again: a lease was restored, reset or deleted",
		func(p *changefeed.Partition) bool { return p.Rewound != nil }},
	{"leases of a processor have a time that no owner can have written", "badLeaseTime", "it counts as none: set the clock of the owners, or find what else writes leases",
		func(p *changefeed.Partition) bool { return p.BadTime }},
}

// undelivered is why an event was not published, for the State.
func (p *Poller) undelivered(err error) *state.Undelivered {
	cause, named := changefeed.CauseOf(err)
	if !named {
		cause.Says = "does not answer"
	}
	cause.Remedy = strings.TrimSuffix("run feedscale check, which tries it; "+cause.Remedy, "; ")
	cause.Of, cause.Effect = p.Destination, changefeed.Unpublished
	if strings.Contains(p.Destination, "/") {
		cause.Of = "queue or topic " + p.Destination // the name of a topic does not tell
	}
	return &state.Undelivered{Error: err.Error(), Cause: cause}
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

// trouble is what refuses and how, in whatever part of it.
type trouble struct{ of, says string }

// blame is a trouble as all subjects of a tick see it together.
type blame struct {
	state.ToldCause
	next, err string
	names     []string // of the subjects; nil if only an earlier tick saw it
}

type troubles map[trouble]*blame

func (t troubles) add(name string, sights []sight) {
	for _, s := range sights {
		k := trouble{s.Of, s.Says}
		b := t[k]
		if b == nil {
			b = &blame{ToldCause: state.ToldCause{Of: s.Of, Says: s.Says, Since: s.Since}, next: s.Remedy, err: s.err}
			t[k] = b
		}
		if s.Since.Before(b.Since) {
			b.Since = s.Since
		}
		if !slices.Contains(b.names, name) {
			b.names = append(b.names, name)
			b.Processors++
		}
	}
}

// namesShown is how many names a line of the log has.
const namesShown = 5

// sayCauses logs, once for all subjects, what begins to refuse with this tick, and what has ended.
// Both are told from what is stored, so that a restart or another process repeats none and misses
// none. A shard sees too little to tell: the timer's next tick does.
func (t *tick) sayCauses(ctx context.Context, subjects []*subject) {
	if t.scope.Shard != nil {
		return
	}
	before, now, unread := make(troubles), make(troubles), false
	for _, d := range subjects {
		before.add(d.name, d.saw)
		now.add(d.name, d.sees)
		unread = unread || d.err != nil
	}
	if t.Shards != nil {
		clear(before)
		if err := t.replaceTold(ctx, before, now, unread); err != nil {
			t.Log.Info("which failures the log has told cannot be stored: the next tick tells what begins and ends", "error", err.Error())
			return
		}
	}
	for k, b := range now {
		if before[k] == nil {
			t.Log.Warn("a failure begins", "what", b.Of, "says", b.Says, "processors", b.Processors,
				"names", strings.Join(b.names[:min(namesShown, len(b.names))], " "), "error", b.err, "next", b.next)
		}
	}
	for k, b := range before {
		if now[k] == nil {
			t.Log.Info("a failure has ended", "what", b.Of, "says", b.Says, "processors", b.Processors,
				"since", b.Since.UTC().Format(time.RFC3339), "duration", t.scope.now.Sub(b.Since).Round(time.Second).String())
		}
	}
}

// replaceTold stores what the log tells with this tick, and adds to before what it told before. If a
// row is unread, it adds that to now as well, since the row may have it. The error is
// state.ErrConflict if another process tells the same.
func (t *tick) replaceTold(ctx context.Context, before, now troubles, unread bool) error {
	return rewrite(ctx, t, state.ToldCausesName, func(told *state.ToldCauses) (changed bool) {
		for _, c := range told.Causes {
			k := trouble{c.Of, c.Says}
			before[k] = &blame{ToldCause: c}
			if unread && now[k] == nil {
				now[k] = before[k]
			}
		}
		told.Causes = nil
		for _, b := range now {
			told.Causes = append(told.Causes, b.ToldCause)
		}
		return !maps.EqualFunc(before, now, func(a, b *blame) bool { return a.Since.Equal(b.Since) && a.Processors == b.Processors })
	})
}

// rewrite has change change a document of the store, and stores it if that changed it. The error is
// state.ErrConflict if another process writes in between.
func rewrite[T any](ctx context.Context, t *tick, name string, change func(*T) (changed bool)) error {
	ctx, cancel := context.WithTimeout(ctx, t.budget.row)
	defer cancel()
	document, value := state.Document{Name: name}, new(T)
	documents, err := t.Store.Documents(ctx, name)
	if len(documents) > 0 {
		document = documents[0]
		err = document.Decode(value)
	}
	if err != nil || !change(value) {
		return err
	}
	if document.Text, err = json.Marshal(value); err == nil {
		_, err = t.Store.Put(ctx, document)
	}
	return err
}
