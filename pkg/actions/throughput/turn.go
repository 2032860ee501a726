package throughput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Turn is what a Keeper does in one tick.
type Turn struct {
	*Keeper
	now   time.Time
	ready chan struct{} // closed once the fields below are loaded
	err   error         // why they are not
	old   *state.Document
	all   map[string]*subject // by document
}

// subject is one container in a turn.
type subject struct {
	*Container
	state.Document
	last state.Container // that Document has
	next state.Container // decided by Settle
	done bool            // next is decided
	read bool            // in this turn
}

// Begin begins a turn: it loads what is remembered, and reads the containers that were never read.
func (k *Keeper) Begin(ctx context.Context, now time.Time) *Turn {
	t := &Turn{Keeper: k, now: now, ready: make(chan struct{}), all: map[string]*subject{}}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle && len(k.Containers) == 0 {
		close(t.ready)
		return t
	}
	if k.readings == nil {
		k.readings, k.wants = map[string]reading{}, map[string]Want{}
	}
	go func() {
		defer close(t.ready)
		ctx, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		if t.err = t.load(ctx); t.err != nil {
			return
		}
		t.each(func(s *subject) {
			if len(s.Processors) > 0 && t.reading(s.Name).at.IsZero() {
				t.readInTime(ctx, s)
			}
		})
	}()
	return t
}

// load loads the documents of containers, and that of earlier releases.
func (t *Turn) load(ctx context.Context) error {
	documents, err := t.Store.Documents(ctx, strings.TrimSuffix(state.ContainersPrefix, "."))
	if err != nil {
		return err
	}
	add := func(d state.Document, last state.Container) {
		c := &Container{Setting: last.Setting, Host: last.Account, Container: cosmos.Container{Database: last.Database, ID: last.Container}}
		t.all[d.Name] = &subject{Container: c, Document: d, last: last}
	}
	var old state.OldContainers
	for _, d := range documents {
		var last state.Container
		if !strings.HasPrefix(d.Name, state.ContainersPrefix) {
			t.old = &d
			err = d.Decode(&old)
		} else if err = d.Decode(&last); err == nil {
			add(d, last)
		}
		if err != nil {
			return err
		}
	}
	for key, last := range old.Containers {
		if d := (state.Document{Name: document(key)}); t.all[d.Name] == nil {
			last.Apply = true
			add(d, last)
		}
	}
	for _, c := range t.Containers {
		if s := t.all[c.document()]; s != nil {
			s.Container = c
		} else {
			t.all[c.document()] = &subject{Container: c, Document: state.Document{Name: c.document()}}
		}
	}
	return nil
}

// each calls do for all containers, at most parallel at once, and waits for all.
func (t *Turn) each(do func(*subject)) {
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for _, name := range slices.Sorted(maps.Keys(t.all)) {
		calls.Go(func() error {
			do(t.all[name])
			return nil
		})
	}
	_ = calls.Wait() // do reports no error
}

func (t *Turn) reading(name string) reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readings[name]
}

// learn notes the answer of a request about a container, and returns the reading.
func (t *Turn) learn(s *subject, told cosmos.Throughput, err error) reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.readings[s.Name]
	if r.err = err; err == nil {
		r.Throughput, r.at = told, t.now
	}
	t.readings[s.Name] = r
	return r
}

// Follow returns the containers of a processor that was just decided, with what they need as far as it is
// known by now. It changes nothing. last is what the State of the poll before shows.
func (t *Turn) Follow(processor string, w Want, last []state.Container) []state.Container {
	if !slices.ContainsFunc(t.Containers, func(c *Container) bool { return c.names(processor) }) {
		return nil
	}
	<-t.ready
	if t.err != nil {
		return last
	}
	t.mu.Lock()
	if known, ok := t.wants[processor]; ok && w.Member {
		w.Replicas = known.Replicas
	}
	t.wants[processor] = w
	t.mu.Unlock()
	return t.Shown(processor)
}

// Shown returns the containers of a processor: as they were settled or, before that, as far as it is known.
func (t *Turn) Shown(processor string) (all []state.Container) {
	<-t.ready
	for _, c := range t.Containers {
		s := t.all[c.document()]
		switch {
		case s == nil || !c.names(processor):
		case s.done:
			all = append(all, s.next)
		default:
			t.mu.Lock()
			r, demands := t.readings[s.Name], c.demands(t.wants)
			t.mu.Unlock()
			next, _ := c.decide(t.now, s.last, r, demands)
			all = append(all, next)
		}
	}
	return all
}

// Settle decides all containers, now that the wants of every processor are known, commits the decisions, and
// provisions them. A container that fails delays no other.
func (t *Turn) Settle(ctx context.Context, wants map[string]Want) {
	<-t.ready
	if t.err == nil && t.old != nil {
		t.err = t.takeOver(ctx)
	}
	if t.err != nil {
		t.say("", slog.LevelError, "throughput cannot be settled", "error", t.err.Error())
		return
	}
	t.each(func(s *subject) { t.tell(s, t.settle(ctx, s, s.demands(wants))) })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wants, t.idle = maps.Clone(wants), len(t.all) == 0
}

// takeOver moves each container from the document of earlier releases to one of its own, and then removes
// the old document.
func (t *Turn) takeOver(ctx context.Context) error {
	for _, s := range t.all {
		if s.Version == "" && s.last.Found > 0 {
			if err := t.commit(ctx, s, s.last, true); err != nil {
				return err
			}
		}
	}
	t.old.Text = nil
	_, err := t.Store.Put(ctx, *t.old)
	return err
}

// commit stores the document of a container, or removes it unless keep.
func (t *Turn) commit(ctx context.Context, s *subject, next state.Container, keep bool) error {
	next.Decision, next.Note, next.Error = nil, "", ""
	text, err := json.Marshal(next)
	if !keep {
		text = nil
	}
	if err != nil || bytes.Equal(text, s.Text) {
		return err
	}
	version, err := t.Store.Put(ctx, state.Document{Name: s.Name, Version: s.Version, Text: text})
	if err == nil {
		s.Version, s.Text, s.last = version, text, next
	}
	return err
}

// What a turn may have made of a container.
const (
	isBack        = "throughput that was found is back"
	isProvisioned = "throughput is provisioned"
)

// settle decides one container, commits the decision, and provisions it. The process may end between any two
// of these steps. It returns what it made of the container; "" for nothing.
func (t *Turn) settle(ctx context.Context, s *subject, demands []scaling.Demand) (made string) {
	s.done = true
	if s.Client == nil {
		var err error
		if s.Client, err = t.Open(s.Setting); err != nil {
			s.next = s.last
			s.next.Error = fmt.Sprintf("%d RU/s of %s cannot be given back: %s", s.last.Found, s.last.Name(), err)
			return ""
		}
	}
	r := t.reading(s.Name)
	if !r.fresh(t.now, s.last) {
		r = t.readInTime(ctx, s)
	}
	var target int
	if s.next, target = s.decide(t.now, s.last, r, demands); target != r.RUPerSecond && !s.read {
		r = t.readInTime(ctx, s)
		s.next, target = s.decide(t.now, s.last, r, demands)
	}
	if s.next.Error != "" {
		return ""
	}
	found, follows := s.last.Found, len(demands) > 0
	switch err := t.commit(ctx, s, s.next, s.next.Found > 0 || follows); {
	case errors.Is(err, state.ErrConflict):
		return "" // another process settles it
	case err != nil:
		s.next.Error = "what is provisioned cannot be remembered, so nothing is changed: " + err.Error()
		return ""
	case target != r.RUPerSecond:
	case found > 0 && s.next.Found == 0 && s.next.Note == "":
		return isBack
	default:
		return ""
	}
	told, err := s.Client.ReplaceThroughput(ctx, s.Container.Container, r.Throughput, target)
	t.learn(s, told, err)
	switch {
	case err != nil:
		s.next.Error = err.Error()
		return ""
	case s.next.Decision != nil:
		return isProvisioned
	}
	forget(&s.next)
	_ = t.commit(ctx, s, s.next, follows) // if that fails, the next turn finds nothing left to do
	return isBack
}

// readInTime reads a container in half of the time that is left.
func (t *Turn) readInTime(ctx context.Context, s *subject) reading {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	s.read = true
	told, err := s.Client.ReadThroughput(ctx, s.Container.Container)
	return t.learn(s, told, err)
}

// tell logs what became of a container, each thing once.
func (t *Turn) tell(s *subject, made string) {
	c, d := &s.next, s.next.Decision
	about := []any{"container", c.Name()}
	switch {
	case c.Error != "":
		t.say(s.Name, slog.LevelWarn, "throughput cannot be read or changed", append(about, "error", c.Error)...)
	case made == isBack:
		t.say(s.Name, slog.LevelInfo, made, about...)
	case c.Note != "" && c.Note != pausedNote:
		t.say(s.Name, slog.LevelWarn, "throughput is left alone", append(about, "why", c.Note)...)
	case made == isProvisioned:
		t.say(s.Name, slog.LevelInfo, made, append(about, "ruPerSecond", d.RUPerSecond, "before", d.Provisioned, "why", d.Why())...)
	case d != nil && !c.Apply && d.RUPerSecond != d.Provisioned:
		t.say(s.Name, slog.LevelInfo, "throughput is recommended", append(about, "ruPerSecond", d.RUPerSecond, "provisioned", d.Provisioned, "why", d.Why())...)
	default:
		t.said.News(s.Name, "")
	}
}

// say logs a line about a container, unless it was the last one.
func (t *Turn) say(name string, level slog.Level, text string, attributes ...any) {
	if t.said.News(name, fmt.Sprint(text, attributes)) {
		t.Log.Log(context.Background(), level, text, attributes...)
	}
}
