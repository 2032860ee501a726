// Package poller runs one tick: it finds the processors that are due, measures them, decides,
// commits, and publishes.
//
// It joins the estimator, scaling, a state store and a publisher, and imports no adapter of a
// service. plan.go is pure: it says which processors a tick polls, which it hands over, and how its
// time is divided. tick.go carries that out. docs/operate.md says when a processor is due (due.go)
// and when an event is (publish.go). Start with [Poller.Tick].
//
// The package is internal to the program: its API may change in any release.
package poller

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Processor is one configured processor.
type Processor struct {
	estimator.Processor
	Policy       scaling.Policy
	Schedule     Schedule          // nil: due at every tick
	IdleSchedule Schedule          // used in place of Schedule while the processor is idle; nil: Schedule
	Group        string            // name of the group that it is a member of; "" = none
	SignalQueue  string            // holds a message for each replica that is wanted; "" = none
	Throughput   bool              // request units of containers follow its replicas
	Target       map[string]string // labels that every scale event carries, for its consumers
}

// Settings are what the configuration says of all ticks.
type Settings struct {
	Destination string        // where Publisher delivers to; a new one gets every decision again
	Heartbeat   time.Duration // an unchanged decision is published again after this time; 0 = never
	Timeout     time.Duration // of one tick; a fifth of it is kept for committing and publishing
	Retention   time.Duration // a sample is removed once its hour ended this long ago; 0 = never
	Ticks       Schedule      // of the timer, within whose slot reads end
	ShardSize   int           // leases that a tick polls by itself, and that a shard has at most; 0 = any number, also without Shards
}

// Poller runs ticks. Two ticks at once are harmless: of the two results for a processor, the one
// that is committed later is dropped.
type Poller struct {
	Settings
	Processors []Processor
	Groups     []Group // of which Processors are members
	Estimator  *estimator.Estimator
	Store      state.Store
	Publisher  events.Publisher
	Signals    Signals            // keeps the signal queues; nil where nothing can have one
	Throughput *throughput.Keeper // has containers follow the replicas; nil = none does
	Shards     Shards             // takes what a tick hands over; nil = a tick polls everything
	Now        func() time.Time
	Clock      *Clock // that Now reads; nil = the clocks are not compared
	Log        *slog.Logger

	refused atomic.Pointer[state.DeliveryFailure] // why the queue did not take the last event; nil = it did
	known   knownSignals
	said    bounded.Notes            // what was logged last, by what it is about
	told    atomic.Pointer[troubles] // what the log says has begun; nil before the first tick
	handed  sync.Map                 // when a tick of this process handed a processor over last, by name
	late    atomic.Bool              // it was logged that shards are not polled in time
	drained atomic.Bool              // the outbox of processors that are no longer configured is empty
}

// Mode says what a tick does beyond measuring and deciding.
type Mode struct {
	All    bool     // poll every processor, whatever its schedule
	Only   []string // with All: the names of the processors to poll; none = every one
	Shard  *Shard   // poll these alone, unless they were polled since; nil = those that are due
	DryRun bool     // commit and publish nothing
	Brief  bool     // return no processor's state, of which there may be much

	// Each is called with each processor that was polled, after its commit, from any goroutine; nil = not at all.
	Each func(state.State)
}

// Tick polls the processors that are due. It returns an error only if no processor could be
// committed; every smaller failure is in the result and in the log.
//
// Each processor is decided, committed and published as soon as it is measured, whatever the others
// wait for. When ctx ends, what is decided is committed. What is not measured or not published is
// left for the next tick.
func (p *Poller) Tick(ctx context.Context, mode Mode) (report.Tick, error) {
	start := p.Now().UTC().Truncate(time.Millisecond)
	if mode.Each == nil {
		mode.Each = func(state.State) {}
	}
	scope := newScope(mode, start, p.Processors)
	t := &tick{
		Poller: p, scope: scope, budget: newBudget(p.Timeout, p.Ticks, scope.now), stopping: ctx,
		deciding: newSlots(), store: newSlots(), queue: newSlots(),
	}
	t.parts.Store(1)
	if mode.Shard != nil {
		t.parts.Store(int64(mode.Shard.Of))
	}
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Timeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTime, cancel) })()
	polls, groups := t.run(working)
	t.provision(working, polls, groups)
	return t.result(working, polls, groups)
}

// parallel is the greatest number of requests to the store, or to the queue, that a tick has in
// flight.
const parallel = 32

// slots bound what is done at once.
type slots chan struct{}

func newSlots() slots { return make(slots, parallel) }

func (s slots) do(f func()) {
	s <- struct{}{}
	defer func() { <-s }()
	f()
}

// each calls do for 0..n-1 side by side, and waits for all.
func (s slots) each(n int, do func(int)) {
	var calls sync.WaitGroup
	for i := range n {
		s <- struct{}{}
		calls.Go(func() {
			defer func() { <-s }()
			do(i)
		})
	}
	calls.Wait()
}
