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
