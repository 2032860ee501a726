package poller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// every15s is the timer of the ticks.
type every15s struct{}

func (every15s) Next(t time.Time) time.Time {
	return t.Truncate(15 * time.Second).Add(15 * time.Second)
}

// handed is the queue of shards.
type handed struct {
	mu     sync.Mutex
	shards []poller.Shard
	ids    []string
	lives  []time.Duration
	down   func(poller.Shard) bool
}

func (h *handed) Send(_ context.Context, id string, body []byte, timeToLive time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var s poller.Shard
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	if h.down != nil && h.down(s) {
		return errors.New("the queue is away")
	}
	h.shards, h.ids, h.lives = append(h.shards, s), append(h.ids, id), append(h.lives, timeToLive)
	return nil
}

// take returns the names of each shard that came since it was called last.
func (h *handed) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for _, s := range h.shards {
		names = append(names, strings.Join(s.Names, " "))
	}
	h.shards, h.ids, h.lives = nil, nil, nil
	slices.Sort(names)
	return names
}

// fanOut is a world whose timer hands over what has more than so many leases.
func fanOut(t *testing.T, size int) (*world, *handed) {
	t.Helper()
	w, queue := newWorld(t), &handed{}
	w.clock.Set(w.clock.Now().Truncate(15 * time.Second))
	w.poller.Shards, w.poller.ShardSize, w.poller.Ticks = queue, size, every15s{}
	return w, queue
}

// watch has the world poll processors instead of its own, each given as NAME[/GROUP]:LEASES@CONTAINER, that
// were polled a while ago; a poll fails. NAME! is one with throughput, NAME? one that is not due.
func (w *world) watch(entries ...string) {
	w.t.Helper()
	first := w.poller.Processors[0]
	w.poller.Processors, w.poller.Groups = nil, nil
	for i, entry := range entries {
		p := first
		name, rest, _ := strings.Cut(entry, ":")
		p.Name, p.Group, _ = strings.Cut(strings.TrimRight(name, "!?"), "/")
		p.Throughput = strings.HasSuffix(name, "!")
		p.Container.ID = "nowhere"
		leases := 0
		if _, err := fmt.Sscanf(rest, "%d@%s", &leases, &p.LeaseContainer.ID); err != nil {
			w.t.Fatal(err)
		}
		w.poller.Processors = append(w.poller.Processors, p)
		if p.Group != "" && !slices.ContainsFunc(w.poller.Groups, func(g poller.Group) bool { return g.Name == p.Group }) {
			w.poller.Groups = append(w.poller.Groups, poller.Group{Name: p.Group})
		}
		polled := w.clock.Now().Add(time.Duration(i)*time.Second - time.Hour)
		s := state.State{Processor: p.Name, AttemptedAt: polled, Memory: scaling.Memory{Partitions: leases}}
		if strings.HasSuffix(name, "?") {
			w.poller.Processors[i].Schedule = everyHour{}
			s.AttemptedAt = w.clock.Now()
		}
		testworld.Must(w.t, w.store.Commit(w.t.Context(), "", s, nil))
	}
}

// polledHere are the names of the processors that a tick polled.
func (w *world) polledHere(mode poller.Mode) string {
	w.t.Helper()
	r, err := w.poller.Tick(w.t.Context(), mode)
	testworld.Must(w.t, err)
	var names []string
	for _, s := range r.Polled {
		names = append(names, s.Processor)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestATickIsHandedOverInShards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule       string
		size       int
		processors []string
		shards     []string
		here       string
	}{
		{"what one process is to poll is polled here", 100, []string{"a:60@x", "b:40@x"}, nil, "a b"},
		{"one lease more is handed over", 99, []string{"a:60@x", "b:40@x"}, []string{"a", "b"}, ""},
		{"without a size nothing is", 0, []string{"a:60000@x"}, nil, "a"},
		{"who share a lease container stay together", 100, []string{"a:40@x", "b:40@y", "c:40@x", "d:40@y"}, []string{"a c", "b d"}, ""},
		{"what does not fit is divided, and the rest shares a shard", 100, []string{"a:80@x", "b:80@x", "c:20@y"}, []string{"a c", "b"}, ""},
		{"a processor is never divided", 100, []string{"a:500@x", "b:1@x"}, []string{"a", "b"}, ""},
		{"a group is never divided", 100, []string{"a/g:80@x", "b:20@x", "c/g:80@y", "d:20@y"}, []string{"a c", "b d"}, ""},
		{"what is not due is not handed over, nor counted", 100, []string{"a:80@x", "b?:80@x"}, nil, "a"},
		{"of a group those that are due", 100, []string{"a/g:80@x", "b/g?:80@x", "c:80@y"}, []string{"a", "c"}, ""},
		{"whose throughput follows is polled here, and its group", 100, []string{"a!:80@x", "b/g!:10@x", "c/g:10@x", "d:80@y"}, []string{"d"}, "a b c"},
		{"a processor that was never polled counts 1", 2, []string{"a:0@x", "b:0@x", "c:0@x"}, []string{"a b", "c"}, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w, queue := fanOut(t, c.size)
			var log bytes.Buffer
			w.poller.Log = slog.New(slog.NewTextHandler(&log, nil))
			w.watch(c.processors...)
			here := w.polledHere(poller.Mode{})
			got := queue.take()
			if !slices.Equal(got, c.shards) || here != c.here {
				t.Errorf("shards %q and here %q, want %q and %q", got, here, c.shards, c.here)
			}
			counts := fmt.Sprintf("polled=%d unknown=%[1]d ", len(strings.Fields(here))) // none of which can be measured
			if says := fmt.Sprintf("handedOver=%d ", len(strings.Fields(strings.Join(got, " ")))); !strings.Contains(log.String(), counts) || !strings.Contains(log.String(), says) {
				t.Errorf("it says %s, want %s and %s", &log, counts, says)
			}
		})
	}
}

func TestManyProcessorsOfFewLeasesFitIntoMessages(t *testing.T) {
	t.Parallel()
	w, queue := fanOut(t, 1000)
	first := w.poller.Processors[0]
	w.poller.Processors = nil
	for i := range 4001 {
		first.Name = fmt.Sprintf("%063d", i)
		w.poller.Processors = append(w.poller.Processors, first)
	}
	w.poller.ShardSize = 4000
	w.polledHere(poller.Mode{})
	total := 0
	for _, s := range queue.shards {
		body, err := json.Marshal(s)
		testworld.Must(t, err)
		if total += len(s.Names); len(body) > 200<<10 {
			t.Errorf("a message of %d bytes", len(body))
		}
	}
	if total != 4001 || len(queue.shards) != 3 {
		t.Errorf("%d processors in %d shards", total, len(queue.shards))
	}
}

func TestByHandNothingIsHandedOver(t *testing.T) {
	t.Parallel()
	w, queue := fanOut(t, 10)
	w.watch("a:60@x", "b:40@x")
	for _, mode := range []poller.Mode{{All: true}, {DryRun: true}} {
		if here := w.polledHere(mode); here != "a b" || queue.take() != nil {
			t.Errorf("%+v polled %q here", mode, here)
		}
	}
}

func TestAShardHasAnIdOfItsTickAndLivesUntilTheNext(t *testing.T) {
	t.Parallel()
	w, queue := fanOut(t, 10)
	w.watch("a:60@x", "b:40@x")
	w.polledHere(poller.Mode{})
	w.polledHere(poller.Mode{}) // at the same time
	if len(queue.ids) != 4 || queue.ids[0] == queue.ids[1] || !slices.Contains(queue.ids[2:], queue.ids[0]) || !slices.Contains(queue.ids[2:], queue.ids[1]) {
		t.Errorf("the same shards have the ids %q", queue.ids)
	}
	if s := queue.shards[0]; queue.lives[0] != 30*time.Second || s.Of != 3 || !s.Tick.Equal(w.clock.Now()) {
		t.Errorf("a shard lives %s, and says %+v", queue.lives[0], s)
	}
	w.clock.Advance(15 * time.Second)
	w.polledHere(poller.Mode{})
	if slices.Contains(queue.ids[:4], queue.ids[4]) {
		t.Error("the shard of another tick has the same id")
	}
}

func TestAShardPollsItsOwnUnlessTheyWerePolledSince(t *testing.T) {
	t.Parallel()
	w, _ := fanOut(t, 10)
	w.watch("a:1@leases", "b:1@leases", "c:1@leases")
	s := poller.Shard{Tick: w.clock.Now(), Of: 2, Names: []string{"a", "b", "gone"}}
	w.clock.Advance(3 * time.Second)
	if here := w.polledHere(poller.Mode{Shard: &s}); here != "a b" {
		t.Errorf("polled %q", here)
	}
	for _, c := range []struct {
		rule string
		tick time.Duration // of the shard, from the first
		now  time.Duration // of the process that polls it, likewise
		want string
	}{
		{"delivered again", 0, 5 * time.Second, ""},
		{"of a tick that began before the poll", 2 * time.Second, 5 * time.Second, ""},
		{"of the next tick", 15 * time.Second, 16 * time.Second, "a b"},
		{"of the next tick, by a clock that is behind", 30 * time.Second, 20 * time.Second, "a b"},
		{"and again", 30 * time.Second, 31 * time.Second, ""},
		{"polled by a clock that was ahead", -time.Hour, -time.Hour, "a b"},
	} {
		again := s
		again.Tick = s.Tick.Add(c.tick)
		w.clock.Set(s.Tick.Add(c.now))
		if here := w.polledHere(poller.Mode{Shard: &again}); here != c.want {
			t.Errorf("%s: polled %q, want %q", c.rule, here, c.want)
		}
	}
}

// TestAGroupIsDecidedByTheShardOfItsMembers, with the last poll of a member that is not due, and also where an
// earlier delivery of the shard ended behind the members.
func TestAGroupIsDecidedByTheShardOfItsMembers(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	w.write(5)
	w.tick()
	w.wantEvents("/1 null->1 true")
	w.Write("payments", 90)
	s := poller.Shard{Tick: w.clock.Now(), Of: 1, Names: []string{"payments"}}
	group, err := storetest.Load(t.Context(), w.store, "shop-workers")
	testworld.Must(t, err)
	r, err := w.poller.Tick(t.Context(), poller.Mode{Shard: &s})
	testworld.Must(t, err)
	w.wantEvents("/2 1->3 true")
	if len(r.Polled) != 1 || len(r.Groups) != 1 || *r.Groups[0].Members[0].Replicas != 1 {
		t.Errorf("polled %+v", r)
	}
	now, err := storetest.Load(t.Context(), w.store, "shop-workers")
	testworld.Must(t, err)
	testworld.Must(t, w.store.Commit(t.Context(), now.Version, group.State, nil)) // as if the process had been killed before it
	r, err = w.poller.Tick(t.Context(), poller.Mode{Shard: &s})
	testworld.Must(t, err)
	w.wantEvents("/2 1->3 true")
	if len(r.Polled) != 0 || len(r.Groups) != 1 {
		t.Errorf("delivered again: %d processors and %d groups", len(r.Polled), len(r.Groups))
	}
	if r, err = w.poller.Tick(t.Context(), poller.Mode{Shard: &s}); err != nil || len(r.Groups) != 0 {
		t.Errorf("delivered once more: %d groups, %v", len(r.Groups), err)
	}
}

// TestOnlyTheTimersTickLooksAtWhatIsNobodysShard: one place empties what was left behind, and provisions.
func TestOnlyTheTimersTickLooksAtWhatIsNobodysShard(t *testing.T) {
	t.Parallel()
	w, _ := fanOut(t, 10)
	w.watch("a:60@x", "b:60@x")
	p := w.follow(10_000, "a", "b")
	gone := state.State{Processor: "gone", Epoch: 1, Sequence: 1}
	event := state.Event{Processor: "gone", Sequence: 1, Body: []byte(`{"specversion":"1.0","id":"gone-0000000001-000000000001","source":"feedscale","type":"feedscale.scale.v1","subject":"gone","time":"2026-01-01T00:00:00Z","data":{"processor":"gone","epoch":1,"sequence":1,"desiredReplicas":1}}`)}
	testworld.Must(t, w.store.Commit(t.Context(), "", gone, &event))
	w.polledHere(poller.Mode{Shard: &poller.Shard{Tick: w.clock.Now(), Of: 1, Names: []string{"a"}}})
	if w.broker.got.Len() > 0 && strings.Contains(w.broker.got.String(), "gone") || p.read > 0 {
		t.Errorf("a shard read %d containers, and published %s", p.read, w.broker.got.String())
	}
	w.polledHere(poller.Mode{})
	if !strings.Contains(w.broker.got.String(), `"subject":"gone"`) || p.read != 3 {
		t.Errorf("the timer's tick read %d containers, and published %s", p.read, w.broker.got.String())
	}
}

// TestAShardKeepsItsSignalsAndEmptiesNoneThatWereLeft: what is left is the timer's to empty.
func TestAShardKeepsItsSignalsAndEmptiesNoneThatWereLeft(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas", "renamed")
	w.ask(3)
	w.tick()
	w.wantSignals("replicas", 3)
	w.poller.Processors[0].SignalQueue = "renamed"
	_, err := w.poller.Tick(t.Context(), poller.Mode{Shard: &poller.Shard{Tick: w.clock.Now(), Of: 1, Names: []string{"orders"}}})
	testworld.Must(t, err)
	w.wantSignals("replicas", 3)
	w.wantSignals("renamed", 3)
	w.clock.Advance(30 * time.Second)
	w.tick()
	w.wantSignals("replicas", 0)
}

// TestWithoutTheQueueEveryShardHasItsTurn, and nothing that waits is taken for a failure.
func TestWithoutTheQueueEveryShardHasItsTurn(t *testing.T) {
	t.Parallel()
	w, queue := fanOut(t, 100)
	w.watch("a:80@x", "b:80@y", "c:80@z")
	queue.down = func(poller.Shard) bool { return true }
	for _, want := range []string{"a", "b", "c", "a"} {
		if here := w.polledHere(poller.Mode{}); here != want {
			t.Errorf("polled %q, want %q", here, want)
		}
		w.clock.Advance(15 * time.Second)
	}
	for name, failures := range map[string]int{"a": 2, "b": 1, "c": 1} { // what is polled fails, and what waits does not
		if record, err := storetest.Load(t.Context(), w.store, name); err != nil || record.State.Memory.Failures != failures {
			t.Errorf("%s failed %d times, %v; want %d", name, record.State.Memory.Failures, err, failures)
		}
	}
	queue.down = func(s poller.Shard) bool { return s.Names[0] == "c" }
	if here := w.polledHere(poller.Mode{}); here != "c" || !slices.Equal(queue.take(), []string{"a", "b"}) {
		t.Errorf("one shard was refused, and %q polled", here)
	}
}

func TestShardsThatNobodyPollsAreSaidOnce(t *testing.T) {
	t.Parallel()
	w, queue := fanOut(t, 100)
	var log bytes.Buffer
	w.poller.Log = slog.New(slog.NewTextHandler(&log, nil))
	w.watch("a:80@x", "b:80@y")
	said := func() int { return strings.Count(log.String(), "were not polled until the next tick") }
	for i, want := range []int{0, 1, 1, 1} {
		w.polledHere(poller.Mode{})
		w.clock.Advance(15 * time.Second)
		if got := said(); got != want {
			t.Errorf("after tick %d it was said %d times, want %d", i, got, want)
		}
	}
	for range 2 { // they are polled, and then not again
		queue.take()
		w.polledHere(poller.Mode{})
		for _, s := range queue.shards {
			w.polledHere(poller.Mode{Shard: &s})
		}
		w.clock.Advance(15 * time.Second)
	}
	for range 2 {
		w.polledHere(poller.Mode{})
		w.clock.Advance(15 * time.Second)
	}
	if got := said(); got != 2 {
		t.Errorf("it was said %d times, want once more", got)
	}
}

// TestAShardSpendsItsPartOfTheBudget, so that the parts of a tick keep it together.
func TestAShardSpendsItsPartOfTheBudget(t *testing.T) {
	t.Parallel()
	for of, complete := range map[int]bool{1: true, 1000: false} {
		w := newGrouped(t)
		account, err := cosmos.NewAccount(cosmos.Options{Endpoint: w.Account.Endpoint(), Key: cosmosfake.WellKnownKey, Concurrency: 4, Budget: 100})
		testworld.Must(t, err)
		w.poller.Processors[1].Account, w.poller.Timeout = account, 5*time.Second
		w.Write("payments", 90)
		r, err := w.poller.Tick(t.Context(), poller.Mode{Shard: &poller.Shard{Tick: w.clock.Now(), Of: of, Names: []string{"payments"}}})
		testworld.Must(t, err)
		if got := r.Polled[0].Lag.Complete(); got != complete {
			t.Errorf("one of %d parts: complete %v, want %v", of, got, complete)
		}
	}
}
