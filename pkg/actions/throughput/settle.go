package throughput

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/state"
)

// Settle provisions what containers need, and gives back what was found in those that are not among them,
// or not to be provisioned, any more. It returns an outcome for each of both; the error is about the
// store, without which nothing is changed.
//
// Its steps: what is not fresh is read; what follows is decided; what is to be changed is read again;
// what was found, and what each change is to make of it, is committed; the changes are made; and what was
// given back is forgotten. A process may end between any two of them (docs/throughput.md).
func (k *Keeper) Settle(ctx context.Context, now time.Time, containers []Container) ([]Outcome, error) {
	entries, version, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	t := &turn{Keeper: k, now: now, version: version, entries: entries}
	if t.entries == nil {
		t.entries = map[string]state.Provisioning{}
	}
	t.plan(containers)
	t.side(ctx, t.all, func(ctx context.Context, w *work) {
		if !k.know(w.key).fresh(now) {
			t.read(ctx, w)
		}
	})
	var again []*work
	for _, w := range t.all {
		if t.decide(w); w.changes && !w.read {
			again = append(again, w)
		}
	}
	t.side(ctx, again, t.read)
	for _, w := range again {
		t.decide(w)
	}
	t.commit(ctx, func(w *work) *state.Provisioning { return w.entry })
	t.side(ctx, t.all, t.replace)
	t.commit(ctx, func(w *work) *state.Provisioning {
		if w.out.Restored {
			return nil
		}
		return w.entry
	})
	outcomes := make([]Outcome, len(t.all))
	for i, w := range t.all {
		k.learn(w.key, func(s *seen) {
			s.entry = nil
			if entry, kept := t.entries[w.key]; kept {
				s.entry = &entry
			}
		})
		outcomes[i] = w.out
	}
	return outcomes, t.failed
}

// turn is one call of Settle.
type turn struct {
	*Keeper
	now     time.Time
	version state.Version
	entries map[string]state.Provisioning
	all     []*work
	failed  error // of the store: nothing is changed any more
}

// side does something for containers side by side, in half of the time that is left: one that hangs keeps
// no other from the steps behind it.
func (t *turn) side(ctx context.Context, all []*work, do func(context.Context, *work)) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	each(all, func(w *work) { do(ctx, w) })
}

// work is one container in a turn.
type work struct {
	key      string
	follows  Container // with what processors need; of one that is given back only its names and its way
	back     bool      // what was found is given back
	read     bool      // it was read in this turn
	out      Outcome
	entry    *state.Provisioning // to be remembered; nil = nothing
	target   int                 // request units a second that it is to have
	changes  bool                // it has another throughput
	replaced bool
}

// plan lists the containers that are followed, and those whose throughput is given back.
func (t *turn) plan(containers []Container) {
	kept, ways := map[string]bool{}, map[string]Way{}
	for _, c := range containers {
		ways[c.key()] = c.Way
		t.learn(c.key(), func(s *seen) { s.entry = nil })
		if c.Apply {
			kept[c.key()] = true
		}
		t.all = append(t.all, &work{key: c.key(), follows: c})
	}
	for _, key := range slices.Sorted(maps.Keys(t.entries)) {
		entry := t.entries[key]
		t.learn(key, func(s *seen) { s.entry = &entry })
		if kept[key] {
			continue
		}
		c := cosmos.Container{Database: entry.Database, ID: entry.Container}
		w := &work{key: key, back: true, follows: Container{Account: key[:len(key)-len(c.String())], Container: c, Way: ways[key]}}
		w.out = Outcome{Container: c, Account: w.follows.Account}
		if w.follows.Way == nil {
			var err error
			if w.follows.Way, err = t.Open(entry.Setting); err != nil {
				w.out.Err = fmt.Errorf("%d RU/s of %s cannot be given back: %w", entry.Before, c, err)
			}
		}
		t.all = append(t.all, w)
	}
}

func (t *turn) read(ctx context.Context, w *work) {
	if w.back && w.out.Err != nil {
		return
	}
	w.read = true
	_ = t.Keeper.read(ctx, t.now, w.key, w.follows.Container, w.follows.Way) // decide tells
}

// decide finds what is to become of a container.
func (t *turn) decide(w *work) {
	s := t.know(w.key)
	if w.back {
		t.giveBack(w, s)
		return
	}
	w.out, w.entry = w.follows.decide(t.now, &s)
	t.learn(w.key, func(known *seen) { known.virtual = s.virtual })
	if s.err != nil {
		w.out.Decision, w.entry, w.changes = nil, s.entry, false
		return
	}
	w.target = w.out.Decision.RUPerSecond
	w.changes = w.follows.Apply && w.out.Note == "" && w.target != s.read.RUPerSecond
}

// giveBack finds what is to become of a container that no processor follows any more.
func (t *turn) giveBack(w *work, s seen) {
	entry := *s.entry
	w.entry, w.changes = &entry, false
	if w.out.Err != nil {
		return
	}
	refusal, refused := errors.AsType[*cosmos.Refusal](s.err)
	switch {
	case refused && (refusal.Kind == cosmos.Missing || refusal.Kind == cosmos.NoThroughput || refusal.Kind == cosmos.SharedThroughput) && !refusal.Manager:
		w.out.Note, w.entry = "it is gone, and what was found in it with it", nil
		return
	case s.err != nil:
		w.out.Err = s.err
		return
	}
	w.out.Provisioned = s.read.RUPerSecond
	if theirs(&entry, s.read) {
		w.out.Note = fmt.Sprintf("somebody else provisioned %d RU/s in place of %d: that is left alone, and the %d that were found are forgotten", s.read.RUPerSecond, entry.Set, entry.Before)
		w.entry = nil
		return
	}
	w.target = max(entry.Before, s.read.Minimum)
	switch {
	case s.read.RUPerSecond == w.target:
		w.out.Restored, w.entry = true, nil
	case s.read.Pending: // until the change that is under way has been made
	default:
		change(&entry, s.read.RUPerSecond, w.target)
		w.changes = true
	}
}

// commit writes what is to be remembered of all containers, where that is another than before. Only then
// may a throughput be changed.
func (t *turn) commit(ctx context.Context, entryOf func(*work) *state.Provisioning) {
	next := maps.Clone(t.entries)
	for _, w := range t.all {
		if !w.back && !w.follows.Apply {
			continue // what is recommended leaves nothing; what was found is another work's
		}
		if entry := entryOf(w); entry != nil {
			next[w.key] = *entry
		} else {
			delete(next, w.key)
		}
	}
	if t.failed != nil || maps.Equal(next, t.entries) {
		return
	}
	text, err := json.Marshal(state.Provisionings{Containers: next})
	if err == nil {
		var version state.Version
		if version, err = t.Store.Put(ctx, state.Document{Name: state.ThroughputName, Version: t.version, Text: text}); err == nil {
			t.entries, t.version = next, version
			return
		}
	}
	t.failed = fmt.Errorf("what is provisioned cannot be remembered, so nothing is changed: %w", err)
	for _, w := range t.all {
		if w.changes && !w.replaced {
			w.out.Err = errors.Join(w.out.Err, t.failed)
		}
		w.out.Restored = false
	}
}

// replace makes a change that is remembered.
func (t *turn) replace(ctx context.Context, w *work) {
	if !w.changes || t.failed != nil {
		return
	}
	made, err := w.follows.Way.ReplaceThroughput(ctx, w.follows.Container, t.know(w.key).read, w.target)
	t.learn(w.key, func(s *seen) {
		s.spent.Add(made.Usage)
		if s.at = (time.Time{}); err == nil {
			s.read, s.at = made, t.now
		}
	})
	if w.out.Err = err; err == nil {
		w.replaced, w.out.Applied, w.out.Restored = true, true, w.back
	}
}
