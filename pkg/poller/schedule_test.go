package poller_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// emptyAccount answers like an account with containers and without leases.
type emptyAccount struct{}

func (emptyAccount) Do(r *http.Request) (*http.Response, error) {
	body := `{"_rid":"q0oIALS6YvQ=","Documents":[],"_count":0}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// memory is a store that keeps nothing but the State of one processor.
type memory struct {
	state.Empty
	mu      sync.Mutex
	state   state.State
	version int
}

func (m *memory) Load(context.Context, string) (state.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version == 0 {
		return state.Entry{}, nil
	}
	return state.NewEntry(m.state, state.Version(fmt.Sprint(m.version))), nil
}

func (m *memory) Commit(_ context.Context, v state.Version, s state.State, _ *state.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version > 0 && v != state.Version(fmt.Sprint(m.version)) {
		return state.ErrConflict
	}
	m.state, m.version = s, m.version+1
	return nil
}

// expression is an NCRONTAB expression at random, of a timer or of a processor.
func expression(random *rand.Rand, timer bool) string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	if timer {
		return pick("* * * * * *", "*/2 * * * * *", "*/5 * * * * *", "*/15 * * * * *", "*/30 * * * * *", "0 * * * * *", "7,22,37,52 * * * * *")
	}
	number := func(n int) string { return fmt.Sprint(random.IntN(n)) }
	return strings.Join([]string{
		pick("*", "0", "*/5", "*/15", "30", number(60), number(60)+"-59/7"),
		pick("*", "*/2", "*/10", number(60), number(60)+",59"),
		pick("*", "*", "*/3", number(24)),
		pick("*", "*", "*", "1,15", number(28)+"-31"),
		pick("*", "*", "1-12/2"),
		pick("*", "*", "*", "1-5", number(7)),
	}, " ")
}

// TestEachSlotIsPolledOnce_Long has processors with schedules at random, whose timer fires up to 2 ms before
// its slot, as the Functions host does, or late, for 10,000 slots in all, while the clock is set back and
// forth now and then.
func TestEachSlotIsPolledOnce_Long(t *testing.T) {
	t.Parallel()
	const schedules, slots = 100, 100
	account, err := cosmos.NewAccount(cosmos.Options{Endpoint: "http://acct.invalid/", Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1, Transport: emptyAccount{}})
	testworld.Must(t, err)
	for seed := range uint64(schedules) {
		random := rand.New(rand.NewPCG(seed, 0))
		timerText, ownText := expression(random, true), ""
		timer, err := crontab.ParseNCRONTAB(timerText)
		testworld.Must(t, err)
		var own crontab.Schedule
		for own.IsZero() {
			ownText = strings.Replace(expression(random, false), " 0-31 ", " 1-31 ", 1)
			own, err = crontab.ParseNCRONTAB(ownText)
			if err != nil && !strings.Contains(err.Error(), "never fires") {
				t.Fatalf("%s: %v", ownText, err)
			}
		}
		clock := testworld.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		p := &poller.Poller{
			Processors: []poller.Processor{{
				Processor: estimator.Processor{Name: "orders", Account: account, LeaseAccount: account, AccountHost: "acct", Container: cosmos.Container{Database: "d", ID: "c"}, LeaseContainer: cosmos.Container{Database: "d", ID: "l"}},
				Schedule:  own,
			}},
			Estimator: estimator.New(1, clock.Now), Store: &memory{}, Settings: poller.Settings{Timeout: time.Minute, Ticks: everyHour{}}, Now: clock.Now, Log: slog.New(slog.DiscardHandler),
		}
		p.Processors[0].Policy.Threshold, p.Processors[0].Policy.Paused = 1, true
		polled := func(at time.Time) bool {
			clock.Set(at)
			r, err := p.Tick(t.Context(), poller.Mode{})
			if err != nil {
				t.Fatal(err)
			}
			return len(r.Polled) == 1
		}
		// jitter is how far from its slot the timer fires: up to 2 ms early, or late.
		jitter := func() time.Duration {
			if random.IntN(2) == 0 {
				return -time.Duration(random.Int64N(int64(2 * time.Millisecond)))
			}
			return time.Duration(random.Int64N(int64(400 * time.Millisecond)))
		}
		last := clock.Now() // slot of the tick before
		if !polled(last.Add(jitter())) {
			t.Fatalf("%q: one that was never polled is not due", ownText)
		}
		for slot := range slots {
			// The ticks around the next slot: what comes before is like the first of them.
			next := own.Next(last)
			if next.IsZero() {
				break
			}
			tick := timer.Next(last)
			if near := next.Add(-1500 * time.Millisecond); near.After(tick) {
				tick = timer.Next(near)
			}
			for after := 0; after < 2; tick = timer.Next(tick) {
				want := !own.Next(last).After(tick)
				if got := polled(tick.Add(jitter())); got != want {
					t.Fatalf("seed %d, timer %q, schedule %q, slot %d: the tick at %s polls: %v, want %v; the one before was at %s", seed, timerText, ownText, slot, tick, got, want, last)
				}
				if last = tick; !tick.Before(next) {
					after++
				}
			}
			switch random.IntN(20) {
			case 0: // set back: what was polled last is in the future, and counts for nothing
				last = timer.Next(last.Add(-time.Duration(1 + random.Int64N(int64(time.Hour)))).Truncate(time.Second))
				if last.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
					last = timer.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
				}
				stored, _ := storetest.Load(t.Context(), p.Store, "orders")
				ahead := stored.State.AttemptedAt.Round(time.Second).After(last)
				if got := polled(last.Add(jitter())); ahead && !got {
					t.Fatalf("seed %d, schedule %q: not polled after the clock was set back to %s", seed, ownText, last)
				}
			case 1: // set forth: the slots in between are one poll
				from := last
				last = timer.Next(last.Add(time.Duration(random.Int64N(int64(48 * time.Hour)))))
				want := !own.Next(from).After(last)
				if got := polled(last.Add(jitter())); got != want {
					t.Fatalf("seed %d, schedule %q: set forth from %s to %s polls: %v, want %v", seed, ownText, from, last, got, want)
				}
			}
		}
	}
}

// TestEveryTickPollsAProcessorWithoutAScheduleOfItsOwn holds that nothing is left out by when it fires.
func TestEveryTickPollsAProcessorWithoutAScheduleOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 50 {
		if got := len(w.tick().Polled); got != 1 {
			t.Fatalf("%d were polled", got)
		}
		w.clock.Advance(-30*time.Second + 14*time.Second + 999*time.Millisecond)
	}
}
