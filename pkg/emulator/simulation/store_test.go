package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// row is what a store holds of one subject. A State is kept as the JSON that the stores keep, so that a
// process gets no memory of another one.
type row struct {
	json    []byte
	version int
	outbox  []state.Event
	last    state.State // that json says: who loads it changes nothing in it
}

// rows is what all processes share: the table.
type rows map[string]*row

// table is the store as one process reaches it: compare-and-swap by version, State and event all or
// nothing, and answers that are lost behind a write that happened, as Azure Table storage has them
// (https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions).
type table struct {
	w *world
	p *process
}

var errStore = errors.New("the table gave no answer")

// call makes one call: do takes effect, unless a fault comes before.
func (s table) call(ctx context.Context, op, subject string, do func() error) error {
	w := s.w
	op += " " + subject
	attempt, err := s.p.begin(ctx, op)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := s.p.arrive(op); err != nil {
		return err
	}
	loads := strings.HasPrefix(op, "load ")
	if loads {
		s.p.unread[subject] = true
	}
	hang := func() error {
		w.tell("%s store %s: no answer", s.p.name, op)
		return w.hang(ctx, s.p, op, attempt)
	}
	switch {
	case w.lasts("row hangs", subject, 3), w.happens("store hangs", op, attempt):
		return hang()
	case w.happens("store error", op, attempt):
		w.tell("%s store %s: refused", s.p.name, op)
		return errStore
	}
	err = do()
	said := "done"
	if err != nil {
		said = err.Error()
	}
	w.tell("%s store %s: %s", s.p.name, op, said)
	if err == nil && w.happens("store answer lost", op, attempt) {
		w.tell("%s store %s: the answer is lost", s.p.name, op)
		return errStore
	}
	if gone := s.p.depart(); gone != nil {
		return gone
	}
	if err == nil && loads {
		s.p.unread[subject] = false
	}
	return err
}

func (s table) Load(ctx context.Context, subject string) (record state.Entry, err error) {
	err = s.call(ctx, "load", subject, func() error {
		r := s.w.rows[subject]
		if r == nil {
			return nil
		}
		record = state.NewEntry(r.last, state.Version(strconv.Itoa(r.version)), slices.Clone(r.outbox)...)
		return nil
	})
	if err != nil {
		return state.Entry{}, err
	}
	return record, nil
}

func (s table) Commit(ctx context.Context, version state.Version, next state.State, event *state.Event) error {
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if !next.AttemptedAt.IsZero() {
		if _, err := next.Sample().Encode(); err != nil {
			return err
		}
	}
	return s.call(ctx, "commit", next.Processor, func() error {
		r := s.w.rows[next.Processor]
		have := state.Version("")
		if r != nil {
			have = state.Version(strconv.Itoa(r.version))
		}
		if have != version {
			return state.ErrConflict
		}
		var stored state.State
		if err := json.Unmarshal(text, &stored); err != nil {
			return err
		}
		if r == nil {
			r = &row{}
			s.w.rows[next.Processor] = r
		}
		s.w.committed(s.p, r, stored, event)
		s.w.versions++
		r.json, r.version, r.last = text, s.w.versions, stored
		if event != nil {
			r.outbox = append(r.outbox, state.Event{Processor: event.Processor, Sequence: event.Sequence, Body: slices.Clone(event.Body)})
		}
		return nil
	})
}

func (s table) Documents(ctx context.Context, prefix string) (found []state.Document, err error) {
	err = s.call(ctx, "documents", prefix, func() error {
		for _, name := range sortedKeys(s.w.documents) {
			if strings.HasPrefix(name, prefix) {
				found = append(found, s.w.documents[name])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (s table) Put(ctx context.Context, d state.Document) (version state.Version, err error) {
	err = s.call(ctx, "put", d.Name, func() error {
		if s.w.documents[d.Name].Version != d.Version {
			return state.ErrConflict
		}
		if d.Text == nil {
			delete(s.w.documents, d.Name)
			return nil
		}
		s.w.versions++
		version = state.Version(strconv.Itoa(s.w.versions))
		s.w.documents[d.Name] = state.Document{Name: d.Name, Version: version, Text: d.Text}
		return nil
	})
	if err != nil {
		return "", err
	}
	return version, nil
}

func (s table) Outbox(ctx context.Context, except []string) (left []state.Event, err error) {
	err = s.call(ctx, "outbox", "", func() error {
		for _, name := range sortedKeys(s.w.rows) {
			if !slices.Contains(except, name) {
				left = append(left, s.w.rows[name].outbox...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return left, nil
}

func (s table) Remove(ctx context.Context, subject string, sequences ...int64) error {
	return s.call(ctx, "remove", subject, func() error {
		if r := s.w.rows[subject]; r != nil {
			for _, n := range sequences {
				s.w.removed(r, n)
			}
			r.outbox = slices.DeleteFunc(r.outbox, func(e state.Event) bool { return slices.Contains(sequences, e.Sequence) })
		}
		return nil
	})
}

func (s table) History(context.Context, string, time.Time, time.Time) ([]state.Sample, error) {
	return nil, nil
}

func (s table) Summaries(context.Context, string, time.Time, time.Time) ([]state.Summary, error) {
	return nil, nil
}

func (s table) Prune(ctx context.Context, subject string, _ time.Time) error {
	return s.call(ctx, "prune", subject, func() error { return nil })
}

func (s table) Close() error { return nil }
