package overview_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// rows is a store that counts the rows that are read of it.
type rows struct {
	state.Store
	reads   atomic.Int64
	broken  atomic.Bool
	reading func() // called with each read, before its result is returned; nil = nobody cares
}

func (r *rows) Load(ctx context.Context, name string) (state.Entry, error) {
	r.reads.Add(1)
	found, err := r.Store.Load(ctx, name)
	if r.reading != nil {
		r.reading()
	}
	if r.broken.Load() {
		err = errors.New("the table does not answer")
	}
	return found, err
}

// world is an Overview of processors that are polled every minute.
type world struct {
	*overview.Overview
	commits *state.Commits // of this process
	rows    *rows
	clock   *testworld.Clock
	log     *bytes.Buffer
}

func newWorld(t *testing.T, names ...string) world {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "feedscale.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	w := world{rows: &rows{Store: store}, clock: testworld.NewClock(noon), log: new(bytes.Buffer)}
	w.Overview = &overview.Overview{Store: w.rows, Now: w.clock.Now, Log: slog.New(slog.NewJSONHandler(w.log, nil))}
	for _, name := range names {
		w.Processors = append(w.Processors, overview.Subject{Name: name, Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }})
	}
	w.commits = &state.Commits{Store: store, Wrote: w.Wrote}
	return w
}

// poll commits to a store what a poll of now measured.
func (w world) poll(t *testing.T, store state.Store, name string, lag int64, event *state.Event) {
	t.Helper()
	before, err := storetest.Load(t.Context(), w.rows.Store, name)
	testworld.Must(t, err)
	testworld.Must(t, store.Commit(t.Context(), before.Version, polled(name, w.clock.Now(), lag), event))
}

func polled(name string, at time.Time, lag int64) state.State {
	return state.State{
		Processor: name, AttemptedAt: at, PolledAt: at, Decision: &scaling.Decision{Time: at, Replicas: 2},
		Lag: changefeed.ProcessorLag{Time: at, Partitions: []changefeed.Partition{{Lease: "0", Lag: &lag, Status: changefeed.StatusLagging}}},
	}
}

// want holds the lag of the first processor, and how many rows were read for it.
func (w world) want(t *testing.T, rule string, lag, reads int64) {
	t.Helper()
	before := w.rows.reads.Load()
	processors := w.Current()
	if got := processors[0].Processor.Lag; got == nil || *got != lag {
		t.Errorf("%s: the lag is %v, want %d", rule, got, lag)
	}
	if got := w.rows.reads.Load() - before; got != reads {
		t.Errorf("%s: %d rows were read, want %d", rule, got, reads)
	}
}

func TestARowIsReadOncePerPollHoweverManyAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders", "audit")
	w.poll(t, w.rows.Store, "orders", 7, nil)
	w.poll(t, w.rows.Store, "audit", 1, nil)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() { w.Current() })
	}
	asking.Wait()
	if got := w.rows.reads.Load(); got != 2 {
		t.Errorf("%d rows were read for 8 who ask at once, want 2", got)
	}
	w.clock.Advance(time.Minute)
	w.poll(t, w.rows.Store, "orders", 8, nil) // by another process
	w.want(t, "another process has just polled", 7, 0)
	w.clock.Advance(5*time.Second + 1)
	w.want(t, "its poll has settled", 8, 2)
	w.want(t, "nothing is new", 8, 0)
}

func TestWhatThisProcessCommitsIsShownAtOnceAndNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders")
	w.poll(t, w.commits, "orders", 7, nil)
	w.want(t, "nobody had asked", 7, 1)
	before := w.Current()[0]
	w.clock.Advance(time.Minute)
	w.poll(t, w.commits, "orders", 8, nil)
	w.want(t, "a commit", 8, 0)
	if w.Current()[0] == before {
		t.Error("a commit is no new entry")
	}
	w.poll(t, w.commits, "orders", 9, &state.Event{Processor: "orders", Sequence: 1, Body: []byte("{}")})
	w.want(t, "a commit with an event", 9, 1)
	w.poll(t, w.commits, "orders", 10, nil)
	w.want(t, "a commit while the event waits", 10, 1)
	testworld.Must(t, w.commits.Remove(t.Context(), "orders", 1))
	w.want(t, "the event is published", 10, 1)
	w.poll(t, w.commits, "orders", 11, nil)
	w.want(t, "nothing waits any more", 11, 0)
	if err := w.commits.Commit(t.Context(), "old", polled("orders", noon, 1), nil); !errors.Is(err, state.ErrConflict) {
		t.Fatal(err)
	}
	w.want(t, "another process was faster", 11, 1)
}

func TestARowThatIsWrittenWhileItIsReadIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders")
	w.poll(t, w.commits, "orders", 7, nil)
	w.rows.reading = func() {
		w.rows.reading = nil
		w.poll(t, w.commits, "orders", 8, nil)
	}
	w.want(t, "what was read before the commit", 7, 1)
	w.want(t, "the commit", 8, 1)
}

func TestARowThatIsWrittenWhileAnotherIsReadIsShownAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders", "audit")
	w.poll(t, w.rows.Store, "orders", 7, nil)
	w.Current()
	w.Wrote("audit", nil)
	w.rows.reading = func() {
		w.rows.reading = nil
		w.Wrote("orders", nil)
	}
	w.want(t, "the row of audit is read", 7, 1)
	w.want(t, "the row of orders is read", 7, 1)
}

func TestARowThatCannotBeReadIsAnEntryWithItsErrorAndIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders")
	w.poll(t, w.rows.Store, "orders", 7, nil)
	w.rows.broken.Store(true)
	for range 3 {
		processors := w.Current()
		if e := processors[0]; e.Err == nil || e.Processor.Error == nil || e.Processor.Name != "orders" || e.Processor.Lag != nil {
			t.Errorf("%+v", e)
		}
		w.clock.Advance(5*time.Second + 1)
	}
	w.rows.broken.Store(false)
	w.want(t, "the store answers again", 7, 1)
	for _, message := range []string{"the table does not answer", "every processor again"} {
		if n := strings.Count(w.log.String(), message); n != 1 {
			t.Errorf("%q was logged %d times:\n%s", message, n, w.log)
		}
	}
}

func TestAnEntryIsStaleWithinSecondsOfItsTimeThoughNothingIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "orders")
	w.poll(t, w.rows.Store, "orders", 7, nil)
	w.clock.Advance(3 * time.Minute)
	for _, stale := range []bool{false, true} {
		processors := w.Current()
		if got := processors[0].Processor.Stale; got != stale {
			t.Errorf("stale is %t after %s", got, w.clock.Now().Sub(noon))
		}
		w.clock.Advance(5*time.Second + 1)
	}
}

func TestEntriesHavePartitionsOnRequestAlone(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		w := newWorld(t, "orders")
		w.Partitions = asked
		w.poll(t, w.rows.Store, "orders", 7, nil)
		processors := w.Current()
		if got := len(processors[0].Processor.Partitions); (got == 1) != asked {
			t.Errorf("asked %t: %d partitions", asked, got)
		}
	}
}
