package poller_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
)

// said has the poller log, and returns a check of how many lines since the last check have a message, each
// with some fields.
func (l *live) said() func(message string, want int, fields ...string) {
	var log bytes.Buffer
	l.poller.Log = slog.New(slog.NewTextHandler(&log, nil))
	return func(message string, want int, fields ...string) {
		l.t.Helper()
		count := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, message) {
				count++
				for _, f := range fields {
					if !strings.Contains(line, f) {
						l.t.Errorf("%s is missing in %s", f, line)
					}
				}
			}
		}
		if count != want {
			l.t.Errorf("%q was said %d times, want %d, in\n%s", message, count, want, log.String())
		}
		log.Reset()
	}
}

// another replaces the poller as a restart does, or another instance.
func (l *live) another() {
	p := l.poller
	l.poller = &poller.Poller{
		Settings: p.Settings, Processors: p.Processors, Estimator: p.Estimator, Store: p.Store,
		Publisher: p.Publisher, Now: p.Now, Log: p.Log,
	}
}

// TestACauseIsToldOnceWhenItBeginsAndOnceWhenItEnds has two processors on one container that throttles: one
// warning for both, and none from a process that takes over meanwhile.
func TestACauseIsToldOnceWhenItBeginsAndOnceWhenItEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		said := l.said()
		l.write(5)
		account := l.Client()
		l.poller.Processors = []poller.Processor{l.named("a", account, 0), l.named("b", account, 0)}
		tick := func() {
			t.Helper()
			if _, err := l.poller.Tick(t.Context(), poller.Mode{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(interval)
		}
		tick()
		said("a failure begins", 0)
		var mu sync.Mutex
		throttles := true
		l.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			mu.Lock()
			defer mu.Unlock()
			if throttles && r.Kind == cosmosfake.ReadChangeFeed {
				return &cosmosfake.Answer{Status: 429}
			}
			return nil
		})
		tick()
		said("a failure begins", 1, "processors=2", `names="a b"`, "429, throttled", "error=", "next=", "level=WARN")
		tick()
		said("a failure begins", 0)
		l.another()
		tick()
		said("a failure begins", 0)
		mu.Lock()
		throttles = false
		mu.Unlock()
		l.another()
		tick()
		said("a failure has ended", 1, "processors=2", "duration=", "since=")
		tick()
		said("failure", 0)
	})
}

// TestShardsTellACauseOnce has two shards on one container that throttles, each polled by a process of its
// own: the timer's next tick warns once for both. A timer's process that starts repeats nothing.
func TestShardsTellACauseOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		said := l.said()
		l.write(5)
		account := l.Client()
		var mu sync.Mutex
		throttles := true
		l.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			mu.Lock()
			defer mu.Unlock()
			if throttles && r.Kind == cosmosfake.ReadChangeFeed {
				return &cosmosfake.Answer{Status: 429}
			}
			return nil
		})
		queue := &handed{}
		l.poller.Processors = []poller.Processor{l.named("a", account, 0), l.named("b", account, 0)}
		l.poller.Ticks, l.poller.ShardSize = every15s{}, 1
		l.another()
		timers := l.poller // process of the timer
		timers.Shards = queue
		timer := func() {
			t.Helper()
			time.Sleep(interval)
			queue.take()
			if _, err := timers.Tick(t.Context(), poller.Mode{}); err != nil {
				t.Fatal(err)
			}
		}
		shards := func(of ...string) {
			t.Helper()
			queue.mu.Lock()
			all := queue.shards
			queue.mu.Unlock()
			for i := range all {
				if slices.Contains(of, all[i].Names[0]) {
					l.another()
					if _, err := l.poller.Tick(t.Context(), poller.Mode{Shard: &all[i]}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		timer()
		shards("a", "b")
		said("failure", 0)
		timer()
		said("a failure begins", 1, "processors=2", `names="a b"`, "429, throttled", "error=", "next=", "level=WARN")
		shards("a", "b")
		timer()
		l.another()
		timers = l.poller
		timers.Shards = queue
		shards("a", "b")
		timer()
		said("failure", 0)
		mu.Lock()
		throttles = false
		mu.Unlock()
		shards("b")
		timers.Store = unread{l.store, "a"}
		timer() // the cause has ended as far as the rows that can be read tell
		timers.Store = l.store
		timer()
		said("failure", 0)
		shards("a", "b")
		timer()
		said("a failure has ended", 1, "processors=1", "duration=", "since=")
		shards("a", "b")
		timer()
		said("failure", 0)
	})
}

// TestABrokerThatIsDownIsInTheState lets every instance say why events wait, and one of them that they do.
func TestABrokerThatIsDownIsInTheState(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.poller.Destination = "shop.servicebus.windows.net/scale"
		stored := func() (state.State, int) {
			t.Helper()
			s, err := l.store.Load(t.Context(), "orders")
			testworld.Must(t, err)
			return *s.Head(), len(s.Outbox)
		}
		said := l.said()
		l.broker.down = true
		l.write(5)
		l.tick()
		if s, n := stored(); s.Undelivered != nil || n != 1 {
			t.Errorf("after the first tick: %+v, %d events", s.Undelivered, n)
		}
		time.Sleep(interval)
		l.tick()
		s, n := stored()
		if u := s.Undelivered; u == nil || !strings.Contains(u.Error, "the broker is down") || u.Cause.Of != "queue or topic shop.servicebus.windows.net/scale" || n != 1 {
			t.Errorf("after the second: %+v, %d events", u, n)
		}
		said("a failure begins", 1, "shop.servicebus.windows.net/scale", "level=WARN", "the broker is down")
		l.another()
		time.Sleep(interval)
		l.tick()
		said("a failure begins", 0)
		l.another()
		l.broker.down = false
		time.Sleep(interval)
		l.tick()
		time.Sleep(interval)
		l.tick()
		said("a failure has ended", 1, "duration=")
		if s, n := stored(); s.Undelivered != nil || n != 0 {
			t.Errorf("when it is back: %+v, %d events", s.Undelivered, n)
		}
	})
}
