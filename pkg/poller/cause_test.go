package poller_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
)

// TestACauseIsToldOnceWhenItBeginsAndOnceWhenItEnds has two processors on one container that throttles: one
// warning for both, and none from a process that takes over meanwhile.
func TestACauseIsToldOnceWhenItBeginsAndOnceWhenItEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		var log bytes.Buffer
		l.write(5)
		account := l.Client()
		l.poller.Processors = []poller.Processor{l.named("a", account, 0), l.named("b", account, 0)}
		l.poller.Log = slog.New(slog.NewTextHandler(&log, nil))
		said := func(message string, want int, fields ...string) {
			t.Helper()
			count := 0
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, message) {
					count++
					for _, f := range fields {
						if !strings.Contains(line, f) {
							t.Errorf("%s is missing in %s", f, line)
						}
					}
				}
			}
			if count != want {
				t.Errorf("%q was said %d times, want %d, in\n%s", message, count, want, log.String())
			}
			log.Reset()
		}
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
		another := l.poller
		l.poller = &poller.Poller{
			Settings: another.Settings, Processors: another.Processors, Estimator: another.Estimator, Store: another.Store,
			Publisher: another.Publisher, Now: another.Now, Log: another.Log,
		}
		tick()
		said("a failure begins", 0)
		mu.Lock()
		throttles = false
		mu.Unlock()
		tick()
		said("a failure has ended", 1, "processors=2", "duration=", "since=")
		tick()
		said("failure", 0)
	})
}

// TestABrokerThatIsDownIsInTheState lets every instance say why events wait.
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
		l.broker.down = true
		l.write(5)
		l.tick()
		if s, n := stored(); s.Undelivered != nil || n != 1 {
			t.Errorf("after the first tick: %+v, %d events", s.Undelivered, n)
		}
		time.Sleep(interval)
		l.tick()
		s, n := stored()
		if u := s.Undelivered; u == nil || !strings.Contains(u.Error, "the broker is down") || u.Cause.Of != "queue shop.servicebus.windows.net/scale" || n != 1 {
			t.Errorf("after the second: %+v, %d events", u, n)
		}
		l.broker.down = false
		time.Sleep(interval)
		l.tick()
		time.Sleep(interval)
		l.tick()
		if s, n := stored(); s.Undelivered != nil || n != 0 {
			t.Errorf("when it is back: %+v, %d events", s.Undelivered, n)
		}
	})
}
