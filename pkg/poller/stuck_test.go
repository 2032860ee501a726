package poller_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
)

// behaviour is what becomes of a processor in the course of a run.
type behaviour int

const (
	fine behaviour = iota
	throws
	hangs
	rewinds
	losesADelete
	stops
	behaviours
)

func (b behaviour) String() string {
	return [...]string{"fine", "throws", "hangs", "rewinds", "loses a delete", "stops"}[b]
}

// alarms are what has to be shown of a behaviour, and of no other.
var alarms = map[behaviour]string{throws: "stalled flapping", hangs: "stalled hung", stops: "unclaimed"}

// turning is a handler that does well until it is to turn.
type turning struct {
	*live
	becomes behaviour
	turned  atomic.Bool
	once    atomic.Bool
	pace    func() time.Duration // of a batch
}

func (h *turning) handle(ctx context.Context, b changefeedprocessor.Batch) error {
	time.Sleep(h.pace())
	if !h.turned.Load() {
		return h.live.handle(ctx, b)
	}
	switch h.becomes {
	case throws:
		return errors.New("as it was told to")
	case hangs:
		return h.hang(ctx, b)
	case rewinds:
		if err := h.live.handle(ctx, b); err != nil || h.once.Swap(true) {
			return err
		}
		h.rewind(b.Lease, 1)
		return errors.New("as it was told to, after it set its lease back")
	default:
		return h.live.handle(ctx, b)
	}
}

// run is a processor that turns into something, and how it is watched.
type run struct {
	becomes    behaviour
	partitions int
	hosts      int
	write      int           // changes in a third of an interval
	turn       time.Duration // when it does
	phase      time.Duration // of polling
	pace       func() time.Duration
}

// watched runs it for some minutes beyond the time in which its alarm has to be shown, and counts what
// was shown.
func (r run) watched(t *testing.T, l *live) (counts map[string]int) {
	t.Helper()
	h := &turning{live: l, becomes: r.becomes, pace: r.pace}
	var hosts []*host
	for i := range r.hosts {
		hosts = append(hosts, l.start(fmt.Sprint("host-", i), h.handle, func(o *changefeedprocessor.Options) { o.MaxItems = 10 }))
	}
	time.Sleep(r.phase)
	counts = map[string]int{}
	want := alarms[r.becomes]
	began := time.Now()
	late := began.Add(r.turn + stalledAfter + leaseExpires + acquireLeases + 3*interval)
	check := func(s state.State) {
		got := shown(s)
		counts[got]++
		alarm := got != "ok" && got != "lagging" && got != "bootstrap" && got != "uncheckpointed" && got != "splitting"
		switch {
		case !s.Lag.Complete():
			t.Errorf("%s: %s", time.Since(began), s.Lag.Problem())
		case alarm && got != want:
			t.Errorf("%s, %d hosts, %s: false alarm: %s", r.becomes, r.hosts, time.Since(began), got)
		case alarm && time.Since(began) < r.turn+stalledAfter-interval:
			t.Errorf("%s, %d hosts, %s: too early: %s", r.becomes, r.hosts, time.Since(began), got)
		case !alarm && want != "" && time.Now().After(late):
			t.Errorf("%s, %d hosts, %s: missed: %s", r.becomes, r.hosts, time.Since(began), got)
		case rewound(s) != nil && r.becomes != rewinds:
			t.Errorf("%s, %d hosts, %s: %+v went backwards", r.becomes, r.hosts, time.Since(began), rewound(s))
		}
		if rewound(s) != nil {
			counts["rewound"]++
		}
		if len(s.Lag.Leftover) > 0 {
			counts["leftover"]++
		}
	}
	l.watch(r.turn, r.write, check)
	h.turned.Store(true)
	switch r.becomes {
	case stops:
		for _, host := range hosts {
			l.end(host)
		}
	case losesADelete:
		l.LoseDeletes(testworld.Leases)
		_, err := l.Account.Split(testworld.Database, "orders", "0")
		testworld.Must(t, err)
	}
	l.watch(time.Until(late)+2*time.Minute, r.write, check)
	return counts
}

// TestWhatIsStuckIsSeen has a processor as .NET runs it, by the name of what becomes of it: a handler
// that throws or hangs, a lease that is set back, a delete of a lease that fails, hosts that are gone,
// and one that does fine.
func TestWhatIsStuckIsSeen(t *testing.T) {
	t.Parallel()
	for b := range behaviours {
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			inBubble(t, 2, func(t *testing.T, l *live) {
				counts := run{becomes: b, partitions: 2, hosts: 1, write: 6, turn: 3 * time.Minute, phase: 4 * time.Second, pace: func() time.Duration { return time.Second }}.watched(t, l)
				for what, of := range map[string]behaviour{"stalled flapping": throws, "stalled hung": hangs, "unclaimed": stops, "rewound": rewinds, "leftover": losesADelete} {
					if (counts[what] > 0) != (b == of) {
						t.Errorf("%s was shown in %d polls of one that %s: %v", what, counts[what], b, counts)
					}
				}
			})
		})
	}
}

// runs is for `make chaos`, which has a thousand.
var runs = flag.Uint64("runs", 6, "runs at random of TestNoStallIsMissedAndNoneIsInvented_Long")

// TestNoStallIsMissedAndNoneIsInvented_Long has runs at random: partitions, hosts, load, the pace of the
// handler, the phase of polling, and when the behaviour turns.
func TestNoStallIsMissedAndNoneIsInvented_Long(t *testing.T) {
	t.Parallel()
	for seed := range *runs {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
			r := run{
				becomes: behaviour(seed % uint64(behaviours)), partitions: 1 + random.IntN(4), hosts: 1 + random.IntN(3), write: 2 + random.IntN(8),
				turn: time.Minute + upTo(2*time.Minute), phase: upTo(interval),
			}
			slowest := int64(2 * time.Second)
			pace := rand.New(rand.NewPCG(seed, 1)) // by hosts side by side: one at a time
			turns := make(chan struct{}, 1)
			r.pace = func() time.Duration {
				turns <- struct{}{}
				defer func() { <-turns }()
				return time.Duration(pace.Int64N(slowest))
			}
			inBubble(t, r.partitions, func(t *testing.T, l *live) { r.watched(t, l) })
		})
	}
}

// TestAProcessorThatTheAccountThrottledIsNotStalled throttles the feed, or the leases, for twice
// stalledAfter: for the hosts as well as for the poller.
func TestAProcessorThatTheAccountThrottledIsNotStalled(t *testing.T) {
	t.Parallel()
	for what, throttled := range map[string]func(*cosmosfake.Request) bool{
		"feed":   func(r *cosmosfake.Request) bool { return r.Kind == cosmosfake.ReadChangeFeed },
		"leases": func(r *cosmosfake.Request) bool { return r.Container == testworld.Leases },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, l *live) {
				l.start("host", l.handle, nil)
				l.watch(2*time.Minute, 2, func(state.State) {})
				var on atomic.Bool
				l.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if on.Load() && throttled(r) {
						return &cosmosfake.Answer{Status: 429}
					}
					return nil
				})
				unknown := 0
				look := func(s state.State) {
					switch got := shown(s); {
					case !s.Lag.Complete():
						unknown++
					case got != "ok" && got != "lagging":
						t.Errorf("%s: %s", time.Now(), got)
					}
				}
				l.write(2)
				if got := shown(l.tick()); got != "lagging" {
					t.Fatalf("before: %s", got)
				}
				on.Store(true)
				for end := time.Now().Add(2 * stalledAfter); time.Now().Before(end); time.Sleep(interval) {
					r, _ := l.poller.Tick(t.Context(), poller.Mode{})
					look(r.Polled[0])
				}
				if unknown == 0 {
					t.Error("no poll was throttled")
				}
				on.Store(false)
				l.watch(2*time.Minute, 2, look)
			})
		})
	}
}
