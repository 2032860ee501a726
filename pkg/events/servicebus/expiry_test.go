package servicebus_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

func TestAMessageLivesAsLongAsThePublisherSays(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		ttl   time.Duration
		queue time.Duration // its own limit; 0 = none
		want  time.Duration // 0 = for ever
	}{
		{"as long as asked for", 30 * time.Minute, 0, 30 * time.Minute},
		{"for ever where nothing is asked for", 0, 0, 0},
		{"no longer than the queue allows", 30 * time.Minute, time.Minute, time.Minute},
		{"no longer than a message can say", 1000 * time.Hour * 24, 0, (1<<32 - 1) * time.Millisecond},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
				spec.DefaultTTL = c.queue
				s := startBroker(t, "", spec)
				o := patient()
				o.TimeToLive = c.ttl
				publish(t, newPublisher(t, s.ConnectionString(), o), numbered(t, "orders", 1))
				m := s.Messages("scale")[0]
				var got time.Duration
				if !m.ExpiresAt.IsZero() {
					got = m.ExpiresAt.Sub(m.EnqueuedAt)
				}
				if got != c.want {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestAnEventOlderThanItsTimeToLiveIsIgnored(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		ttl     time.Duration // 0 = none
		age     time.Duration // of the event, when it is published
		handled bool
	}{
		{"younger", time.Hour, 30 * time.Minute, true},
		{"older, since it waited in an outbox", time.Hour, 2 * time.Hour, false},
		{"made by a clock that is ahead", time.Hour, -30 * time.Minute, true},
		{"of any age, where messages live for ever", 0, 1000 * time.Hour, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
				s := startBroker(t, "", spec)
				j := &journal{}
				got := make(chan events.ScaleEvent, 3)
				stop := consume(t, s.ConnectionString(), options(spec, j), into(got))
				o := patient()
				o.TimeToLive = c.ttl
				p := newPublisher(t, s.ConnectionString(), o)
				aged := ordersEvent()
				aged.Epoch, aged.Sequence, aged.Time = 1767225600, 5, time.Now().Add(-c.age)
				publish(t, p, encode(t, aged))
				testworld.Eventually(t, "an empty queue", isEmpty(s))
				if c.handled {
					testworld.Came(t, "the event", got)
				}
				if len(got) != 0 {
					t.Errorf("handled %d more, want none", len(got))
				}
				if logged := j.has(t, slog.LevelDebug, "older than its time to live")(); logged == c.handled {
					t.Errorf("the log says %q", j.at(t, slog.LevelDebug))
				}

				// Whether it was handled or not, it has its place: what came before it is stale, the next counts.
				before, next := ordersEvent(), ordersEvent()
				before.Sequence, before.Time = 4, time.Now()
				next.Sequence, next.Time = 6, time.Now()
				for _, e := range []events.ScaleEvent{before, next} {
					e.Epoch = aged.Epoch
					publish(t, p, encode(t, e))
				}
				if e := testworld.Came(t, "the next event", got); e.Sequence != 6 {
					t.Errorf("got %d, want 6", e.Sequence)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
