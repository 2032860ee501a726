package poller_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// named is a processor of the world under a name of its own, with a lease at an LSN.
func (l *live) named(name string, account *cosmos.Account, lsn int64) poller.Processor {
	l.t.Helper()
	p := l.processor(account)
	p.Name, p.ProcessorName = name, name
	l.Put(testworld.Leases, l.LeasesOf(name, workerHost, "orders").DotNetPKOld("0", testworld.At(lsn)))
	return p
}

// TestAnAccountThatHangsKeepsNobodyElseWaiting has two accounts, one of which takes requests and does
// not answer: the processors of the other one are published before the tick has given it up.
func TestAnAccountThatHangsKeepsNobodyElseWaiting(t *testing.T) {
	t.Parallel()
	says := map[cosmosfake.RegionState]string{cosmosfake.Hanging: "did not answer in time", cosmosfake.Refusing: "cannot be reached", cosmosfake.Unavailable: "(503)"}
	for rule, state := range map[string]cosmosfake.RegionState{"hangs": cosmosfake.Hanging, "refuses": cosmosfake.Refusing, "answers 503": cosmosfake.Unavailable} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			inBubble(t, 1, func(t *testing.T, l *live) {
				said := false
				other := testworld.New(t, testworld.Options{InMemory: true})
				other.Container("orders", 1)
				l.write(250)
				l.poller.Heartbeat = time.Second // so that each tick has something to publish
				hanging := other.Client()
				bad, worse, good := l.named("bad", hanging, 0), l.named("worse", hanging, 0), l.named("good", l.Client(), 0)
				worse.Container.ID = "payments"
				l.poller.Processors = []poller.Processor{bad, worse, good}
				if r, err := l.poller.Tick(t.Context(), poller.Mode{}); err != nil || len(r.Polled) != 3 {
					t.Fatalf("%+v, %v", r, err)
				}
				l.broker.take(t)
				testworld.Must(t, other.Account.SetRegion(0, state))
				time.Sleep(interval)
				for tick := range 12 {
					began := time.Now()
					soon := l.soon()
					r, err := l.poller.Tick(t.Context(), poller.Mode{})
					testworld.Must(t, err)
					took := time.Since(began)
					early := strings.Join(soon(), ", ")
					if !strings.Contains(early, "good/") {
						t.Errorf("tick %d: %q were published in the first second of %s, want what is good", tick, early, took)
					}
					l.broker.take(t)
					if took > tickTimeout {
						t.Errorf("tick %d took %s, more than its timeout", tick, took)
					}
					for _, s := range r.Polled {
						if (s.Processor == "good") != s.Lag.Complete() || !s.AttemptedAt.After(began.Add(-time.Second)) {
							t.Errorf("tick %d: %s is %s at %s", tick, s.Processor, s.Lag.Status(), s.AttemptedAt)
						}
						said = said || strings.Contains(s.Lag.Error, says[state])
					}
					time.Sleep(max(0, interval-time.Since(began)))
				}
				if !said {
					t.Errorf("no error says %q", says[state])
				}
			})
		})
	}
}

// hangingRow is a store of which one row hangs.
type hangingRow struct {
	state.Store
	processor string
}

func (s hangingRow) Load(ctx context.Context, processor string) (state.Entry, error) {
	if processor == s.processor {
		<-ctx.Done()
		return state.Entry{}, ctx.Err()
	}
	return s.Store.Load(ctx, processor)
}

// TestARowThatHangsStopsNobodyElse has a state that cannot be loaded: the others are measured, committed
// and published, and it is that processor's failure alone.
func TestARowThatHangsStopsNobodyElse(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.write(5)
		account := l.Client()
		names := []string{"a", "b", "stuck", "c", "d"}
		l.poller.Processors = nil
		for _, name := range names {
			l.poller.Processors = append(l.poller.Processors, l.named(name, account, 0))
		}
		l.poller.Store = hangingRow{l.store, "stuck"}
		began := time.Now()
		soon := l.soon()
		r, err := l.poller.Tick(t.Context(), poller.Mode{})
		testworld.Must(t, err)
		if took := time.Since(began); took > tickTimeout/3 {
			t.Errorf("the tick took %s of %s", took, tickTimeout)
		}
		if early := soon(); len(early) != len(names)-1 {
			t.Errorf("%q were published in the first second, want four", early)
		}
		if r.Uncommitted != 1 || len(r.Polled) != len(names) {
			t.Errorf("%d of %d uncommitted, want one", r.Uncommitted, len(r.Polled))
		}
		for _, s := range r.Polled {
			if got, want := s.Lag.Complete(), s.Processor != "stuck"; got != want {
				t.Errorf("%s: complete %v, want %v: %s", s.Processor, got, want, s.Lag.Error)
			}
			record, err := storetest.Load(t.Context(), l.store, s.Processor)
			if stored := record.Version != ""; err != nil || stored != (s.Processor != "stuck") {
				t.Errorf("%s: stored %v, %v", s.Processor, stored, err)
			}
		}
	})
}

// TestATickThatIsStoppedKeepsWhatIsDecided stops a tick of which one processor is measured, and the other
// one's account hangs.
func TestATickThatIsStoppedKeepsWhatIsDecided(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		other := testworld.New(t, testworld.Options{InMemory: true})
		other.Container("orders", 1)
		l.write(5)
		l.poller.Processors = []poller.Processor{l.named("decided", l.Client(), 0), l.named("hanging", other.Client(), 0)}
		testworld.Must(t, other.Account.SetRegion(0, cosmosfake.Hanging))
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		began := time.Now()
		r, err := l.poller.Tick(ctx, poller.Mode{})
		testworld.Must(t, err)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the tick went on for %s after it was told to stop", took-time.Second)
		}
		if len(r.Polled) != 1 || r.Polled[0].Processor != "decided" {
			t.Errorf("polled %+v, want the one that was measured", r.Polled)
		}
		for name, want := range map[string]bool{"decided": true, "hanging": false} {
			if record, err := storetest.Load(t.Context(), l.store, name); err != nil || (record.Version != "") != want {
				t.Errorf("%s: stored %v, %v; want %v", name, record.Version != "", err, want)
			}
		}
	})
}

// slowCommit is a store whose commits take some time.
type slowCommit struct {
	state.Store
	takes   time.Duration
	started chan struct{}
	once    *sync.Once
}

func (s slowCommit) Commit(ctx context.Context, v state.Version, next state.State, e *state.Event) error {
	s.once.Do(func() { close(s.started) })
	time.Sleep(s.takes)
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Commit(ctx, v, next, e)
}

// TestWhatIsBeingCommittedWhenATickIsStoppedIsPublishedByTheNext stops a tick in the middle of a commit.
func TestWhatIsBeingCommittedWhenATickIsStoppedIsPublishedByTheNext(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.write(5)
		l.poller.Processors = []poller.Processor{l.named("orders", l.Client(), 0)}
		slow := slowCommit{l.store, time.Second, make(chan struct{}), &sync.Once{}}
		l.poller.Store = slow
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			<-slow.started
			stop()
		}()
		_, err := l.poller.Tick(ctx, poller.Mode{})
		testworld.Must(t, err)
		record, err := storetest.Load(t.Context(), l.store, "orders")
		if err != nil || record.Version == "" || len(record.Outbox) != 1 {
			t.Errorf("stored %v with %d events, %v; want the decision and its event", record.Version != "", len(record.Outbox), err)
		}
		if got := l.broker.take(t); len(got) != 0 {
			t.Errorf("%q were published though the tick was told to stop", got)
		}
		time.Sleep(interval)
		_, err = l.poller.Tick(t.Context(), poller.Mode{})
		testworld.Must(t, err)
		if got := strings.Join(l.broker.take(t), ", "); got != "orders/1 null->1 true" {
			t.Errorf("published %q", got)
		}
	})
}

// TestACommitThatDoesNotEndIsGivenUpSomeSecondsAfterTheStop keeps the process from being killed.
func TestACommitThatDoesNotEndIsGivenUpSomeSecondsAfterTheStop(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.poller.Processors = []poller.Processor{l.named("orders", l.Client(), 0)}
		l.poller.Timeout = time.Hour
		l.poller.Store = hangingCommit{l.store}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		began := time.Now()
		if _, err := l.poller.Tick(ctx, poller.Mode{}); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the tick ended %s after it was told to stop", took-time.Second)
		}
	})
}

type hangingCommit struct{ state.Store }

func (hangingCommit) Commit(ctx context.Context, _ state.Version, _ state.State, _ *state.Event) error {
	<-ctx.Done()
	return ctx.Err()
}
