package poller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// waveAfter is how long no further row may come until those that are loaded are measured, so that a
// row that hangs does not delay the others.
const waveAfter = 500 * time.Millisecond

// tick is one tick in progress: it carries out the plans.
type tick struct {
	*Poller
	scope         scope
	budget        budget
	stopping      context.Context // ends where the tick is told to stop
	took          waits
	finishing     sync.WaitGroup
	deciding      slots // what is measured waits for one, so that it does not pile up before a slow store
	store         slots
	queue         slots
	mute          atomic.Bool      // the queue gave no answer
	published     atomic.Int64     // events that the queue took
	publishErrors atomic.Int64     // events that it did not take
	signals       *signalTurn      // nil = there is no signal queue to keep
	containers    *throughput.Turn // nil = no container follows, as in a shard
	parts         atomic.Int64     // that the tick is polled in
	handedOver    atomic.Int64     // processors in shards that the queue took
}

// run loads the states side by side, and plans and measures what is loaded in waves: one if the
// store answers, and another for each row that hung. Each group is decided after the last of its
// members.
func (t *tick) run(ctx context.Context) ([]*subject, []*subject) {
	t.beginSignals(ctx)
	if t.Throughput != nil && t.scope.Shard == nil {
		t.containers = t.Throughput.Begin(ctx, t.scope.now)
	}
	polls := make([]*subject, 0, len(t.Processors))
	for i := range t.Processors {
		if p := &t.Processors[i]; t.scope.concerns(*p) {
			polls = append(polls, &subject{name: p.Name, target: p.Target, signal: p.SignalQueue, processor: p, told: make(chan struct{})})
		}
	}
	groups := make([]*subject, 0, len(t.Groups))
	for _, g := range t.Groups {
		if t.scope.Shard != nil && !t.scope.groups[g.Name] {
			continue
		}
		d := &subject{name: g.Name, target: g.Target, signal: g.SignalQueue}
		groups = append(groups, d)
		members := slices.DeleteFunc(slices.Clone(polls), func(m *subject) bool { return m.processor.Group != g.Name })
		t.finishing.Go(func() { t.decideGroup(ctx, g, d, members) })
	}
	loaded := make(chan *subject)
	go func() {
		t.store.each(len(polls), func(i int) {
			t.load(ctx, polls[i])
			loaded <- polls[i]
		})
		close(loaded)
	}()
	var waves sync.WaitGroup
	due := 0 // leases of all that were planned to be polled
	for more := true; more; {
		var wave []*subject
		wave, more = collect(loaded)
		slices.SortFunc(wave, func(a, b *subject) int { return strings.Compare(a.name, b.name) })
		shards := t.scope.plan(wave, &due, t.ShardSize, t.Processors)
		waves.Go(func() {
			t.handOver(ctx, shards)
			t.measure(ctx, wave)
		})
	}
	waves.Wait()
	t.finishing.Wait()
	return polls, groups
}

// collect receives until nothing has come for a while. more is false if loaded is closed.
func collect(loaded <-chan *subject) (wave []*subject, more bool) {
	d, more := <-loaded
	idle := time.NewTimer(waveAfter)
	defer idle.Stop()
	for more {
		wave = append(wave, d)
		idle.Reset(waveAfter)
		select {
		case d, more = <-loaded:
		case <-idle.C:
			return wave, true
		}
	}
	return wave, false
}

func (t *tick) load(ctx context.Context, d *subject) {
	ctx, cancel := context.WithTimeout(ctx, t.budget.row)
	defer cancel()
	began := time.Now()
	d.stored, d.err = t.Store.Load(ctx, d.name)
	t.took.add("the state", began)
	d.last = d.stored.Head()
	d.saw = sightsOf(d.last)
	d.sees = d.saw
	t.sayUnread(d)
}

// waits keeps the longest wait of a tick.
type waits struct {
	mu      sync.Mutex
	longest report.WaitingTime
}

// add adds a wait that ends now.
func (w *waits) add(who string, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took := time.Since(began); took > w.longest.Time {
		w.longest = report.WaitingTime{Who: who, Time: took}
	}
}

func (p *Poller) sayUnread(d *subject) {
	if d.err != nil {
		p.Log.Error("the state cannot be loaded", "processor", d.name, "error", d.err.Error())
	}
}

// decode completes the last State of a subject, unless that is done. What a clock that was ahead has
// stored counts as now. It reports whether the State could be read.
func (t *tick) decode(d *subject) bool {
	if d.err != nil || d.last != d.stored.Head() {
		return d.err == nil
	}
	var last state.State
	last, d.err = d.stored.State()
	t.sayUnread(d)
	if d.err == nil {
		d.last = &last
	}
	if now := t.scope.now; last.AttemptedAt.After(now) {
		last.Health, last.Memory, last.Lag.Time = last.Health.Until(now), last.Memory.Until(now), now
		for i := range last.Lag.Partitions {
			last.Lag.Partitions[i].Measured = now // carried over, so that its age is counted again
		}
	}
	return d.err == nil
}

// measure measures the processors of a wave that are due, and finishes each as soon as it is known.
func (t *tick) measure(ctx context.Context, wave []*subject) {
	var due []*subject
	var processors []estimator.Processor
	for _, d := range wave {
		switch d.stage {
		case polling:
			p := d.processor.Processor
			p.Account.Budget.Share(int(t.parts.Load()))
			p.Account.Until(t.budget.reads, t.Now())
			p.LeaseAccount.Until(t.budget.reads, t.Now())
			p.Last = func() changefeed.ProcessorLag {
				if !t.decode(d) {
					return changefeed.ProcessorLag{}
				}
				return d.last.Lag
			}
			due, processors = append(due, d), append(processors, p)
		case unread:
			t.failed(d)
		default:
			t.lookAt(d)
			if d.stage == resting {
				t.finishing.Go(func() { t.rest(ctx, d) })
			}
		}
	}
	if len(due) == 0 {
		return
	}
	began := time.Now()
	deadline, _ := ctx.Deadline()
	most, paced := t.budget.measuring(t.Now(), time.Until(deadline))
	measuring, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	defer context.AfterFunc(t.stopping, cancel)()
	t.Estimator.Estimate(measuring, began.Add(paced), processors, func(i int, lag changefeed.ProcessorLag) {
		t.took.add("account "+due[i].processor.Account.Host(), began)
		t.deciding <- struct{}{}
		t.finishing.Go(func() { t.finish(ctx, due[i], lag) })
	})
}

// lookAt tells what a processor that is not polled here asks for, if its group or a container needs
// that.
func (t *tick) lookAt(d *subject) {
	if d.processor.Group != "" || d.processor.Throughput {
		t.decode(d)
	}
	d.tell(d.last)
	d.last = d.stored.Head()
}

// failed closes a poll whose state could not be loaded.
func (t *tick) failed(d *subject) {
	d.stage = unread
	d.next = &state.State{Processor: d.name, Group: d.processor.Group, AttemptedAt: t.scope.now, Lag: changefeed.ProcessorLag{Time: t.scope.now, Error: d.err.Error()}}
	d.tell(d.next)
	t.scope.Each(*d.next)
}

// finish decides, commits and publishes. It gives its slot back after the commit, however long the
// broker takes, and drops what it holds of each lease as soon as nothing needs it.
func (t *tick) finish(ctx context.Context, d *subject, lag changefeed.ProcessorLag) {
	t.decide(ctx, d, lag)
	<-t.deciding
	t.deliver(ctx, d)
	d.stored, d.last = state.Entry{}, nil
	if t.scope.Brief {
		d.next = nil
	}
}

func (t *tick) decide(ctx context.Context, d *subject, lag changefeed.ProcessorLag) {
	if t.stopping.Err() != nil && !lag.Complete() {
		d.stage = dropped
		d.tell(d.last)
		return
	}
	if !t.decode(d) {
		t.failed(d)
		return
	}
	before := messagesOf(&d.last.Lag)
	limit, last, now := t.Throughput.Limit(d.name, d.last), d.last, t.scope.now
	last.Lag.Partitions = nil // the first of what there may be much of
	lag, healthy := health.Assess(health.Input{Now: now, Lag: lag, Policy: d.processor.Policy.Health, Asked: last.Memory.Asked, Memory: last.Health})
	outcome := scaling.Decide(scaling.Input{Now: now, Lag: lag, Policy: d.processor.Policy, Memory: last.Memory, Limit: limit})
	d.stage, d.next = decided, t.following(d)
	lag.Causes = append(lag.Causes, t.Clock.causes()...)
	changefeed.DateCauses(lag.Causes, last.Lag.Causes, now)
	d.next.Lag, d.next.Health, d.next.Decision, d.next.Memory = lag, healthy, outcome.Decision, outcome.Memory
	d.next.Paused, d.next.Group = d.processor.Policy.Paused, d.processor.Group
	if lag.Known() || lag.Ahead() {
		d.next.PolledAt = now
	}
	if d.next.Group != "" {
		d.next.Published = nil // of a time before the group, which publishes for its members
	}
	if t.containers != nil {
		d.next.Containers = t.containers.Follow(d.name, d.want(d.next), last.Containers)
	}
	t.say(d.name, &last.Lag, before, lag)
	t.emit(d, state.Observation{
		LeaseExpiration: d.processor.Policy.Health.LeaseExpiration, Objective: d.processor.Policy.MaxChangeAge,
		Due: d.processor.NextPoll(t.Ticks, *last, last.AttemptedAt),
	})
	last.Forget()
	d.tell(d.next)
	t.commit(ctx, d)
	t.scope.Each(*d.next)
	if d.next.Forget(); t.scope.Brief {
		d.next.Lag.Partitions = nil
	}
}

// deliver does what follows a commit. After a conflict the faster tick does that, since this one does not know
// its decision.
func (t *tick) deliver(ctx context.Context, d *subject) {
	if d.stage != committed || t.stopping.Err() != nil {
		return
	}
	waiting := d.stored.Outbox
	if d.event != nil {
		waiting = append(waiting, *d.event)
	}
	d.left = t.publish(ctx, waiting)
	t.signals.keep(ctx, d, d.next)
	t.prune(ctx, d)
}

// rest is what a tick does for a subject that is not due. If events of it wait, its state is read again first,
// since another process may have decided anew.
func (t *tick) rest(ctx context.Context, d *subject) {
	if d.err == nil && len(d.stored.Outbox) > 0 && !t.scope.DryRun && t.stopping.Err() == nil {
		if t.load(ctx, d); d.err != nil {
			d.left = 1
		} else {
			d.left = t.publish(ctx, d.stored.Outbox)
		}
	}
	t.signals.keep(ctx, d, d.last)
}

// emit records what was decided in the history, and makes an event of it if one is due.
func (t *tick) emit(d *subject, o state.Observation) {
	d.next.Record(d.last, o)
	if !t.eventDue(*d.next, t.scope.now) {
		return
	}
	d.next.Sequence++
	event, err := report.NewEvent(*d.next, d.target).Encode()
	if err != nil {
		d.err = err
		return
	}
	d.event = &state.Event{Processor: d.name, Sequence: d.next.Sequence, Body: event}
	d.next.Published = &state.Publication{Time: t.scope.now, Replicas: d.next.Decision.Replicas, Active: d.next.Decision.Active, Destination: t.Destination}
}

// commit writes a State, and its event, in one step.
func (t *tick) commit(ctx context.Context, d *subject) {
	if t.scope.DryRun || d.err != nil {
		return
	}
	var err error
	t.store.do(func() {
		defer t.took.add("the state", time.Now())
		err = t.Store.Commit(ctx, d.stored.Version, *d.next, d.event)
	})
	if err != nil {
		d.next.Sequence, d.next.Published = d.last.Sequence, d.last.Published
	}
	switch {
	case errors.Is(err, state.ErrConflict):
		t.Log.Info("another tick was faster: this one's result is dropped", "processor", d.name)
	case err != nil:
		d.err = err
		t.Log.Error("the decision cannot be committed", "processor", d.name, "error", err.Error())
	default:
		d.stage, d.sees = committed, sightsOf(d.next)
	}
}

// prune lets the store forget old samples of a processor in the first tick of each hour. A failure
// is tried again in the next hour.
func (p *Poller) prune(ctx context.Context, d *subject) {
	now, last := d.next.AttemptedAt, d.last.AttemptedAt
	if p.Retention <= 0 || now.Truncate(time.Hour).Equal(last.Truncate(time.Hour)) {
		return
	}
	if now.Sub(last) > time.Hour {
		now = last // one poll by a clock that is ahead does not empty the history
	}
	if err := p.Store.Prune(ctx, d.name, now.Add(-p.Retention)); err != nil {
		p.Log.Warn("old samples cannot be removed", "processor", d.name, "error", err.Error())
	}
}

// result tells what became of the subjects, and publishes what removed ones have left.
func (t *tick) result(ctx context.Context, polls []*subject, groups []*subject) (report.Tick, error) {
	var result report.Tick
	var configured []string
	var due, failed, unknown, leases int
	var failure error
	subjects := slices.Concat(polls, groups)
	for _, d := range subjects {
		configured = append(configured, d.name)
		result.Unpublished += d.left
		if !d.stage.polled() {
			continue
		}
		if d.err != nil {
			result.Uncommitted++
		}
		if d.processor == nil {
			result.Groups = append(result.Groups, *d.next)
			continue
		}
		due++
		leases += d.asks.leases
		if !d.asks.Complete {
			unknown++
		}
		if !t.scope.Brief {
			result.Polled = append(result.Polled, *d.next)
		}
		if d.err != nil {
			failed, failure = failed+1, d.err
		}
	}
	if !t.scope.DryRun && t.scope.Shard == nil {
		result.Unpublished += t.publishOrphans(ctx, configured)
	}
	t.Clock.compare(polls)
	result.Published, result.PublishErrors = int(t.published.Load()), int(t.publishErrors.Load())
	result.Longest = t.took.longest
	if t.scope.DryRun {
		return result, nil
	}
	t.sayCauses(subjects)
	t.Log.Info("tick", "polled", due, "unknown", unknown, "leases", leases, "handedOver", t.handedOver.Load(),
		"uncommitted", result.Uncommitted, "unpublished", result.Unpublished, "duration", t.Now().Sub(t.scope.now).String())
	if due > 0 && failed == due {
		return result, fmt.Errorf("nothing could be committed: %w", failure)
	}
	return result, nil
}
