package poller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// broker is where events go: it can be down.
type broker struct {
	mu   sync.Mutex
	down bool
	got  bytes.Buffer
}

func (b *broker) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return 0, errors.New("the broker is down")
	}
	return b.got.Write(p)
}

func (b *broker) setDown(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// take returns what arrived since it was called last, as "processor/sequence from->to activity".
func (b *broker) take(t *testing.T) []string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var got []string
	for line := range strings.Lines(b.got.String()) {
		e, err := events.Decode([]byte(line))
		if err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		from := "null"
		if e.PreviousReplicas != nil {
			from = fmt.Sprint(*e.PreviousReplicas)
		}
		got = append(got, fmt.Sprintf("%s/%d %s->%d %v", e.Processor, e.Sequence, from, e.DesiredReplicas, e.Active))
	}
	b.got.Reset()
	return got
}

// world is one processor, orders, of one partition.
type world struct {
	*testworld.World
	t      *testing.T
	poller *poller.Poller
	store  *boltstore.Store
	clock  *testworld.Clock
	broker *broker
	leases leasefake.Processor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: testworld.New(t, testworld.Options{}), t: t, clock: testworld.NewClock(time.Now().Truncate(time.Second)), broker: &broker{}}
	w.Container("orders", 1)
	w.leases = w.LeasesOf("", "acct", "orders")
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "feedscale.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	w.store = store

	account := w.Client()
	w.poller = &poller.Poller{
		Processors: []poller.Processor{{
			Processor: estimator.Processor{
				Name: "orders", Account: account, Container: cosmos.Container{Database: testworld.Database, ID: "orders"},
				LeaseAccount: account, LeaseContainer: cosmos.Container{Database: testworld.Database, ID: testworld.Leases}, AccountHost: "acct",
			},
			Policy: scaling.Policy{
				Threshold: 10, Cooldown: 5 * time.Minute, Health: health.Policy{StalledAfter: 5 * time.Minute, LeaseExpiration: time.Minute},
				Fallback: scaling.Fallback{FailureThreshold: 1, Behavior: scaling.FallbackMax},
			},
			Target: map[string]string{"deployment": "orders"},
		}},
		Estimator: estimator.New(4, w.clock.Now),
		Store:     store,
		Publisher: events.NewStdout(w.broker),
		Settings:  poller.Settings{Heartbeat: time.Hour, Timeout: time.Minute, Ticks: everyHour{}},
		Now:       w.clock.Now,
		Log:       slog.New(slog.DiscardHandler),
	}
	w.checkpoint(0)
	return w
}

func (w *world) write(n int) { w.Write("orders", n) }

func (w *world) checkpoint(lsn int64) {
	w.t.Helper()
	w.Put(testworld.Leases, w.leases.DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(lsn)}))
}

func (w *world) tick() report.Tick {
	w.t.Helper()
	r, err := w.poller.Tick(w.t.Context(), poller.Mode{})
	testworld.Must(w.t, err)
	w.clock.Advance(30 * time.Second)
	return r
}

func (w *world) wantEvents(want ...string) {
	w.t.Helper()
	if got := w.broker.take(w.t); strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Errorf("events %q, want %q", got, want)
	}
}

func TestOneEventForEachChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(5)
	w.tick()
	w.wantEvents("orders/1 null->1 true")
	w.tick()
	w.wantEvents()
	w.checkpoint(5)
	w.tick()
	w.wantEvents("orders/2 1->1 false")
	w.clock.Advance(5 * time.Minute)
	w.tick()
	w.wantEvents("orders/3 1->0 false")
	record, err := storetest.Load(t.Context(), w.store, "orders")
	testworld.Must(t, err)
	if s := record.State; s.Sequence != 3 || len(record.Outbox) != 0 || s.Published.Replicas != 0 || s.PolledAt.IsZero() {
		t.Errorf("state %+v, outbox %d", s, len(record.Outbox))
	}
}

func TestTheFirstDecisionIsPublishedAlsoWhereItIsZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tick()
	w.wantEvents("orders/1 null->0 false")
}

func TestAnUnchangedDecisionIsPublishedAtTheHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tick()
	w.wantEvents("orders/1 null->0 false")
	w.clock.Advance(59 * time.Minute)
	w.tick()
	w.wantEvents()
	w.tick()
	w.wantEvents("orders/2 0->0 false")
	w.poller.Heartbeat = 0
	w.clock.Advance(1000 * time.Hour)
	w.tick()
	w.wantEvents()
}

func TestWhileTheBrokerIsDownTheNewestEventWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker.setDown(true)
	w.write(5)
	if r := w.tick(); r.Unpublished != 1 {
		t.Errorf("%d unpublished, want 1", r.Unpublished)
	}
	w.checkpoint(5)
	if r := w.tick(); r.Unpublished != 1 {
		t.Errorf("%d unpublished, want 1: the later event has overtaken the earlier one", r.Unpublished)
	}
	w.wantEvents()
	w.broker.setDown(false)
	w.tick()
	w.wantEvents("orders/2 1->1 false")
	w.tick()
	w.wantEvents()
}

func TestWhatWasCommittedAndNotPublishedIsSettledWithTheNextTick(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(5)
	w.tick()
	w.broker.take(t)
	// The state after a process that was killed between commit and publish.
	record, err := storetest.Load(t.Context(), w.store, "orders")
	testworld.Must(t, err)
	killed := record.State
	killed.Sequence = 2
	body := []byte(`{"specversion":"1.0","id":"orders-000000000002","source":"feedscale","type":"feedscale.scale.v1","subject":"orders","time":"2026-01-01T00:00:00Z","datacontenttype":"application/json","data":{"processor":"orders","sequence":2,"desiredReplicas":9,"previousReplicas":1,"active":true,"direction":"out","metricValue":9,"lag":9,"changeAgeSeconds":1,"partitionCount":1,"partitionsWithLag":1,"complete":true,"status":"lagging","reasons":[],"target":{}}}`)
	testworld.Must(t, w.store.Commit(t.Context(), record.Version, killed, &state.Event{Processor: "orders", Sequence: 2, Body: body}))
	w.checkpoint(5)
	w.tick()
	w.wantEvents("orders/3 1->1 false") // which has overtaken the other one: a decision is a level
}

func TestAPausedProcessorIsMeasuredAndNotPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.poller.Processors[0].Policy.Paused = true
	w.write(5)
	r := w.tick()
	w.wantEvents()
	if d := r.Polled[0].Decision; d == nil || d.Replicas != 1 {
		t.Errorf("decision %+v, want it shown", d)
	}
	w.poller.Processors[0].Policy.Paused = false
	w.tick()
	w.wantEvents("orders/1 null->1 true")
	w.poller.Processors[0].Policy.Paused = true
	w.checkpoint(5)
	w.tick()
	w.wantEvents()
	w.checkpoint(0)
	w.poller.Processors[0].Policy.Paused = false
	w.tick()
	w.wantEvents() // nothing differs from what was published before the pause
}

func TestAFailureHoldsOrFallsBackAndIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tick()
	w.wantEvents("orders/1 null->0 false")
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.QueryDocuments {
			return &cosmosfake.Answer{Status: 403}
		}
		return nil
	})
	w.tick()
	w.wantEvents() // one poll may fail
	r := w.tick()
	w.wantEvents("orders/2 0->1 true")
	if s := r.Polled[0]; s.Lag.Error == "" || s.Lag.Complete() {
		t.Errorf("lag %+v", s.Lag)
	}
}

// everyHour is due an hour after the last poll: not at full hours, which a test may cross at any step.
type everyHour struct{}

func (everyHour) Next(t time.Time) time.Time { return t.Add(time.Hour) }

func TestAProcessorIsPolledByItsSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.poller.Processors[0].Schedule = everyHour{}
	if got := len(w.tick().Polled); got != 1 {
		t.Errorf("polled %d, want 1: one that was never polled is due at once", got)
	}
	if got := len(w.tick().Polled); got != 0 {
		t.Errorf("polled %d before it was due", got)
	}
	r, err := w.poller.Tick(t.Context(), poller.Mode{All: true})
	testworld.Must(t, err)
	if got := len(r.Polled); got != 1 {
		t.Errorf("polled %d, though all were asked for", got)
	}
	w.clock.Advance(time.Hour)
	if got := len(w.tick().Polled); got != 1 {
		t.Errorf("polled %d when it was due", got)
	}
}

func TestAnIdleProcessorIsPolledByItsIdleSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.poller.Processors[0].IdleSchedule = everyHour{}
	w.write(5)
	w.tick()
	if got := len(w.tick().Polled); got != 1 {
		t.Errorf("polled %d while changes are pending", got)
	}
	w.checkpoint(5)
	w.tick()
	if got := len(w.tick().Polled); got != 1 {
		t.Errorf("polled %d while it cools down", got)
	}
	w.clock.Advance(5 * time.Minute)
	if d := w.tick().Polled[0].Decision; d.Replicas != 0 {
		t.Fatalf("%d replicas after the cooldown", d.Replicas)
	}
	if got := len(w.tick().Polled); got != 0 {
		t.Errorf("polled %d while it is idle", got)
	}
	w.write(5)
	w.clock.Advance(time.Hour)
	if got := len(w.tick().Polled); got != 1 {
		t.Errorf("polled %d after an hour", got)
	}
	if got := len(w.tick().Polled); got != 1 {
		t.Errorf("polled %d behind it, when changes are pending again", got)
	}
}

func TestADryRunLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(5)
	r, err := w.poller.Tick(t.Context(), poller.Mode{All: true, DryRun: true})
	testworld.Must(t, err)
	if d := r.Polled[0].Decision; d == nil || d.Replicas != 1 {
		t.Errorf("decision %+v", d)
	}
	w.wantEvents()
	if record, err := storetest.Load(t.Context(), w.store, "orders"); err != nil || record.Version != "" {
		t.Errorf("stored %+v, %v", record, err)
	}
}

func TestEventsOfRemovedProcessorsAreNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker.setDown(true)
	w.tick()
	w.broker.setDown(false)
	restarted := &poller.Poller{
		Estimator: w.poller.Estimator, Store: w.store, Publisher: w.poller.Publisher,
		Settings: poller.Settings{Timeout: time.Minute, Ticks: everyHour{}}, Now: w.clock.Now, Log: w.poller.Log,
	}
	r, err := restarted.Tick(t.Context(), poller.Mode{})
	testworld.Must(t, err)
	if r.Unpublished != 0 {
		t.Errorf("%d unpublished", r.Unpublished)
	}
	w.wantEvents("orders/1 null->0 false")
}

// keeping is a store that cannot remove anything at first.
type keeping struct {
	state.Store
	tries int
}

func (k *keeping) Remove(ctx context.Context, processor string, sequences ...int64) error {
	if k.tries++; k.tries == 1 {
		return errors.New("the row hangs")
	}
	return k.Store.Remove(ctx, processor, sequences...)
}

// TestWhatARemovedProcessorLeavesIsRemovedInTheEnd is seed 287 of the simulation: its event was delivered,
// and stayed in the outbox for the next process to publish once more.
func TestWhatARemovedProcessorLeavesIsRemovedInTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broker.setDown(true)
	w.tick()
	w.broker.setDown(false)
	restarted := &poller.Poller{
		Estimator: w.poller.Estimator, Store: &keeping{Store: w.store}, Publisher: w.poller.Publisher,
		Settings: poller.Settings{Timeout: time.Minute, Ticks: everyHour{}}, Now: w.clock.Now, Log: w.poller.Log,
	}
	for range 2 {
		_, err := restarted.Tick(t.Context(), poller.Mode{})
		testworld.Must(t, err)
	}
	left, err := w.store.Outbox(t.Context(), nil)
	testworld.Must(t, err)
	if len(left) > 0 {
		t.Errorf("%d events are left", len(left))
	}
}

func TestOfTwoTicksAtOnceOneDropsItsResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(5)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := w.poller.Tick(t.Context(), poller.Mode{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range w.broker.take(t) {
		if e != "orders/1 null->1 true" {
			t.Errorf("event %q", e)
		}
	}
	if record, err := storetest.Load(t.Context(), w.store, "orders"); err != nil || record.State.Sequence != 1 {
		t.Errorf("sequence %d, %v; want 1", record.State.Sequence, err)
	}
}

// brokenStore is a store that cannot be reached.
type brokenStore struct{ state.Empty }

func (brokenStore) Load(context.Context, string) (state.Entry, error) {
	return state.Entry{}, errors.New("the state table cannot be reached")
}

func TestATickFailsOnlyWhereNothingCouldBeCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.poller.Store = brokenStore{}
	r, err := w.poller.Tick(t.Context(), poller.Mode{})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("error %v", err)
	}
	if r.Uncommitted != 1 || r.Polled[0].Lag.Error == "" {
		t.Errorf("result %+v", r)
	}
	w.wantEvents()
}

func TestSamplesAreForgottenOnceTheirTimeHasPassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.poller.Retention = 2 * time.Hour
	w.clock.Set(time.Date(2026, 1, 2, 10, 10, 0, 0, time.UTC))
	kept := func() (times []string) {
		samples, err := w.store.History(t.Context(), "orders", time.Time{}, w.clock.Now().Add(time.Hour))
		testworld.Must(t, err)
		for _, s := range samples {
			times = append(times, s.Time.Format("15:04"))
		}
		return times
	}
	for i, want := range []string{"10:10", "10:10 10:50", "10:10 10:50 11:30", "10:10 10:50 11:30 12:10", "10:10 10:50 11:30 12:10 12:50", "11:30 12:10 12:50 13:30"} {
		if i > 0 {
			w.clock.Advance(40*time.Minute - 30*time.Second) // of which a tick takes 30 s
		}
		w.tick()
		if got := strings.Join(kept(), " "); got != want {
			t.Errorf("at %s: %s, want %s", w.clock.Now().Format("15:04"), got, want)
		}
	}
}

func TestAStalledProcessorIsLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log bytes.Buffer
	w.poller.Log = slog.New(slog.NewJSONHandler(&log, nil))
	w.write(5)
	for range 4 {
		w.Put(testworld.Leases, w.leases.DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{Owner: "worker", Continuation: leasefake.At(0), Updated: w.clock.Now()}))
		w.tick()
		w.clock.Advance(5 * time.Minute)
	}
	if got := strings.Count(log.String(), `"msg":"a processor is stalled","processor":"orders","kind":"hung","partitions":1`); got != 1 {
		t.Errorf("it was logged %d times, want once:\n%s", got, &log)
	}
}

// TestALeaseOfAnImpossibleTimeFreezesNothing: no JSON has the year 10000, so that no state with it could be stored.
func TestALeaseOfAnImpossibleTimeFreezesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log bytes.Buffer
	w.poller.Log = slog.New(slog.NewJSONHandler(&log, nil))
	w.write(25)
	lease := w.leases.DotNetPKOld("0", leasefake.Fields{Owner: "worker", Continuation: leasefake.At(0)})
	lease["timestamp"] = "9999-12-31T23:59:59-01:00"
	w.Put(testworld.Leases, lease)
	for range 2 {
		if r := w.tick(); r.Uncommitted != 0 || !r.Polled[0].Lag.Partitions[0].BadTime {
			t.Errorf("%d uncommitted, %+v", r.Uncommitted, r.Polled[0].Lag.Partitions)
		}
	}
	if record, err := storetest.Load(t.Context(), w.store, "orders"); err != nil || record.State.AttemptedAt.IsZero() || !record.State.Lag.Partitions[0].BadTime {
		t.Errorf("stored is %+v, %v", record.State.Lag, err)
	}
	if n := strings.Count(log.String(), `"kind":"badLeaseTime"`); n != 1 {
		t.Errorf("it was said %d times, want once:\n%s", n, &log)
	}
}

// TestLeasesThatStayLeftOverAreLoggedOnce: at one poll a lease may be on its way out.
func TestLeasesThatStayLeftOverAreLoggedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log bytes.Buffer
	w.poller.Log = slog.New(slog.NewJSONHandler(&log, nil))
	w.tick()
	children, err := w.Account.Split(testworld.Database, "orders", "0")
	testworld.Must(t, err)
	for _, child := range children {
		w.Put(testworld.Leases, w.leases.DotNetPKOld(child, leasefake.Fields{Continuation: leasefake.At(0)}))
	}
	for poll, want := range []int{0, 1, 1, 1} {
		if r := w.tick(); len(r.Polled[0].Lag.Leftover) != 1 {
			t.Fatalf("left over: %q", r.Polled[0].Lag.Leftover)
		}
		if got := strings.Count(log.String(), `"msg":"leases of a processor are left over","processor":"orders","kind":"leftover","leases":"0"`); got != want {
			t.Errorf("poll %d: it was logged %d times, want %d:\n%s", poll, got, want, &log)
		}
	}
}
