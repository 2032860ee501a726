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

// causesOf returns the causes that a State names.
func causesOf(s *state.State) []changefeed.Cause {
	causes := slices.Clone(s.Lag.Causes)
	if s.Undelivered != nil {
		causes = append(causes, s.Undelivered.Cause)
	}
	return causes
}

// trouble is what refuses and how, in whatever part of it.
type trouble struct{ of, says string }

// blame is a trouble as all subjects of a tick see it together.
type blame struct {
	state.ToldCause
	next  string   // what to do
	names []string // of the subjects
	first *subject // nil if only an earlier tick saw it
}

type troubles map[trouble]*blame

func (t troubles) add(d *subject, causes []changefeed.Cause) {
	for _, c := range causes {
		k := trouble{c.Of, c.Says}
		b := t[k]
		if b == nil {
			b = &blame{ToldCause: state.ToldCause{Of: c.Of, Says: c.Says, Since: c.Since}, next: c.Remedy, first: d}
			t[k] = b
		}
		if c.Since.Before(b.Since) {
			b.Since = c.Since
		}
		if !slices.Contains(b.names, d.name) {
			b.names = append(b.names, d.name)
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
	before, now := make(troubles), make(troubles)
	for _, d := range subjects {
		before.add(d, d.saw)
		if d.stage != committed {
			d.sees = d.saw
		}
		now.add(d, d.sees)
	}
	if t.Shards != nil {
		var err error
		if before, err = t.replaceTold(ctx, now, subjects); err != nil {
			t.Log.Info("which failures the log has told cannot be stored: the next tick tells what begins and ends", "error", err.Error())
			return
		}
	}
	for k, b := range now {
		if before[k] == nil {
			t.Log.Warn("a failure begins", "what", b.Of, "says", b.Says, "processors", b.Processors,
				"names", strings.Join(b.names[:min(namesShown, len(b.names))], " "), "error", t.problem(b.first), "next", b.next)
		}
	}
	for k, b := range before {
		if now[k] == nil {
			t.Log.Info("a failure has ended", "what", b.Of, "says", b.Says, "processors", b.Processors,
				"since", b.Since.UTC().Format(time.RFC3339), "duration", t.scope.now.Sub(b.Since).Round(time.Second).String())
		}
	}
}

// problem says why the last poll of a subject, which may be a shard's, does not know the whole lag.
func (t *tick) problem(d *subject) string {
	if d.stage == elsewhere && t.decode(d) {
		return d.last.Lag.Problem()
	}
	return d.problem
}

// replaceTold stores what the log tells with this tick, and returns what it told before. It also
// adds to now what may be in a row that could not be read. The error is state.ErrConflict if
// another process tells the same.
func (t *tick) replaceTold(ctx context.Context, now troubles, subjects []*subject) (troubles, error) {
	ctx, cancel := context.WithTimeout(ctx, t.budget.row)
	defer cancel()
	document, told := state.Document{Name: state.ToldCausesName}, state.ToldCauses{}
	documents, err := t.Store.Documents(ctx, document.Name)
	if len(documents) > 0 {
		document = documents[0]
		err = document.Decode(&told)
	}
	if err != nil {
		return nil, err
	}
	unread := slices.ContainsFunc(subjects, func(d *subject) bool { return d.err != nil })
	before := make(troubles, len(told.Causes))
	for _, c := range told.Causes {
		k := trouble{c.Of, c.Says}
		before[k] = &blame{ToldCause: c}
		if unread && now[k] == nil {
			now[k] = before[k]
		}
	}
	if maps.EqualFunc(before, now, func(a, b *blame) bool { return a.Since.Equal(b.Since) && a.Processors == b.Processors }) {
		return before, nil
	}
	next := state.ToldCauses{}
	for _, b := range now {
		next.Causes = append(next.Causes, b.ToldCause)
	}
	if document.Text, err = json.Marshal(next); err == nil {
		_, err = t.Store.Put(ctx, document)
	}
	return before, err
}
