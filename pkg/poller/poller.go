// Package poller runs one tick: it finds the processors that are due, measures them, decides, commits,
// and publishes.
//
// It joins the estimator, scaling, a state store and a publisher. Its own rules are when a processor is
// due (due.go) and when an event is (publish.go); they are documented in docs/operate.md. Start with
// [Poller.Tick].
//
// The package is internal to the program: its API may change in any release.
package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/health"
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

// Poller runs ticks. Two ticks at once are harmless: of the two results for a processor, the one that
// is committed later is dropped.
type Poller struct {
	Processors  []Processor
	Groups      []Group // of which Processors are members
	Estimator   *estimator.Estimator
	Store       state.Store
	Publisher   events.Publisher
	Signals     Signals       // keeps the signal queues; nil where nothing can have one
	Destination string        // where Publisher delivers to: another one than the last time gets every decision again
	Heartbeat   time.Duration // an unchanged decision is published again after this time; 0 = never
	Timeout     time.Duration // of one tick; a fifth of it is kept for committing and publishing
	Retention   time.Duration // a sample is removed once its hour ended this long ago; 0 = never
	Ticks       Schedule      // of the timer: the RU budget makes no read wait for longer than until the next tick; nil: for the time of the tick
	ID          string        // of this process, by which two that poll into one store notice each other; "" = they do not
	Now         func() time.Time
	Log         *slog.Logger
	Throughput  *throughput.Keeper // has containers follow the replicas; nil = nothing is provisioned
	Shards      Shards             // takes what a tick hands over; nil = it polls everything. Ticks is not nil then
	ShardSize   int                // leases that a tick polls by itself, and that a shard has at most; 0 = any number

	signals  signals
	polled   sync.Map    // when this process committed last, by name
	leftover sync.Map    // names of processors whose leftover leases were said
	rivals   atomic.Bool // said that there is another process
	handed   sync.Map    // when a tick of this process handed a processor over last, by name
	late     atomic.Bool // said that shards are not polled in time

	mu      sync.Mutex
	drained bool // the outbox of processors that are no longer configured is empty
}

// Mode says what a tick does beyond measuring and deciding.
type Mode struct {
	All    bool // poll every processor, whatever its schedule
	DryRun bool // commit and publish nothing
	Brief  bool // return no processor's state, of which there may be much

	Each func(state.State) // called for each processor that was polled, once it is committed or that failed, from any goroutine; nil = nobody cares

	Only     []string                             // with All: the names of the processors to poll; none = every one
	Progress func(processor string, decided bool) // called for each processor that is due once its state is loaded, and once it is decided, from any goroutine; nil = nobody cares

	Shard *Shard // poll these alone, and each unless it was polled since; nil = those that are due
}

// each tells of a poll where somebody cares.
func (m Mode) each(s state.State) {
	if m.Each != nil {
		m.Each(s)
	}
}

// say tells of progress where somebody cares.
func (m Mode) say(processor string, decided bool) {
	if m.Progress != nil {
		m.Progress(processor, decided)
	}
}

const (
	// parallel is the greatest number of requests to the store, or to the queue, that a tick has in
	// flight.
	parallel = 32
	// loadShare is the share of the tick that loading one state may take.
	loadShare = 6
	// waveAfter is how long loading may stand still until those that are loaded are measured: a row that
	// hangs keeps the others waiting no longer.
	waveAfter = 500 * time.Millisecond
	// rivalWithin is the time between two polls of a process within which another one's poll is that of
	// a rival. Where a standby took over in between and gave back, as hosts do, more time has passed.
	rivalWithin = 10 * time.Minute
	// drainTime is how long a tick may still commit what is decided once it was told to stop.
	drainTime = 5 * time.Second
)

// subject is what a tick decides for: a processor, or a group of processors.
type subject struct {
	name      string
	target    map[string]string
	signal    string        // its signal queue; "" = none
	stored    *state.Stored // nil once it is not needed any more
	last      *state.State  // that it holds, without what it has of each lease until unpack
	due       bool
	state     *state.State // of this tick, where it is due; nil where nobody needs it any more
	event     *state.Event
	committed bool
	dropped   bool  // nothing of it is kept: the tick was told to stop before it was measured
	err       error // why its state could not be loaded, or the decision not be stored
	left      int   // events that stay in the outbox
}

// poll is one processor in the course of a tick.
type poll struct {
	subject
	processor  *Processor
	index      int           // among those of the tick
	decided    chan struct{} // closed once the tick knows what the processor asks for, or that it does not
	whole      bool          // last has what it has of each lease
	unread     bool          // its state could not be loaded: nothing is known of what it asked for
	complete   bool          // no partition of it is unknown
	leases     int           // at its last poll: from the start where it may be handed over, else once it is decided
	attempted  time.Time     // its last poll, likewise
	unloaded   bool          // what was loaded is dropped
	elsewhere  bool          // another invocation polls it, or it is not asked for
	replicas   *int          // that the State of this tick asks for, where that is gone
	perReplica float64       // request units that a replica takes per second, as far as its partitions told; they may be gone
}

// tick is one tick in progress.
type tick struct {
	*Poller
	mode        Mode
	start       time.Time
	stopping    context.Context // ends where the tick is told to stop
	took        report.Durations
	finishing   sync.WaitGroup
	deciding    chan struct{} // slots, as many as the store has: what is measured waits for one, rather than piling up before a slow store
	store       chan struct{} // slots
	queue       chan struct{}
	signalling  chan struct{}    // slots
	containers  *throughput.Turn // of this tick; nil = nothing follows
	signalsKnow func() bool      // waits until the signal queues of this tick are remembered, and reports whether they are
	unreachable atomic.Bool      // the queue gave no answer

	leases             atomic.Int64    // of the processors that are due, as far as they are loaded
	handedOver         atomic.Int64    // processors in shards that the queue took
	parts              atomic.Int64    // that the tick is polled in
	named, namedGroups map[string]bool // of a shard; nil of a whole tick
}

// Tick polls the processors that are due. It returns an error only where no processor at all could be
// committed; every smaller failure is in the result and in the log.
//
// Each processor is decided, committed and published as soon as it is measured, whatever the others wait
// for. Where ctx ends, what is decided by then is committed, and what is not measured, or not published,
// is left for the next tick.
func (p *Poller) Tick(ctx context.Context, mode Mode) (report.Tick, error) {
	t := &tick{
		Poller: p, mode: mode, start: p.Now().UTC().Truncate(time.Millisecond), stopping: ctx,
		deciding: make(chan struct{}, parallel), store: make(chan struct{}, parallel), queue: make(chan struct{}, parallel), signalling: make(chan struct{}, parallel),
	}
	t.parts.Store(1)
	if mode.Shard != nil {
		t.beShard()
	}
	working, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Timeout)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		working, cancel = context.WithDeadline(working, deadline)
		defer cancel()
	}
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			time.AfterFunc(drainTime, cancel)
		}
	})()

	polls, groups := t.run(working)
	t.provision(working, polls, groups)
	result, due, unknown, leases := report.Tick{}, 0, 0, 0
	var failure error
	for _, d := range polls {
		result.Unpublished += d.left
		if !d.due || d.dropped {
			continue
		}
		due++
		leases += d.leases
		if !d.complete {
			unknown++
		}
		if !mode.Brief {
			result.Polled = append(result.Polled, *d.state)
		}
		if d.err != nil {
			result.Uncommitted++
			failure = d.err
		}
	}
	failed := result.Uncommitted
	for _, d := range groups {
		result.Unpublished += d.left
		if !d.due || d.dropped {
			continue
		}
		result.Groups = append(result.Groups, *d.state)
		if d.err != nil {
			result.Uncommitted++
		}
	}
	if !mode.DryRun && mode.Shard == nil {
		result.Unpublished += t.publishOrphans(working)
	}
	result.Took = t.took.Longest()
	if mode.DryRun {
		return result, nil
	}
	p.Log.Info("tick", "polled", due, "unknown", unknown, "leases", leases, "handedOver", t.handedOver.Load(),
		"uncommitted", result.Uncommitted, "unpublished", result.Unpublished, "duration", p.Now().Sub(t.start).String())
	if due > 0 && failed == due {
		return result, fmt.Errorf("nothing could be committed: %w", failure)
	}
	return result, nil
}

// run loads the states side by side, and measures those that are loaded in waves: one wave where the
// store answers, and another for what hung. Each group is decided behind the last of its members.
func (t *tick) run(ctx context.Context) ([]*poll, []*subject) {
	t.beginSignals(ctx)
	t.beginThroughput(ctx)
	polls := make([]*poll, 0, len(t.Processors))
	for i := range t.Processors {
		if p := &t.Processors[i]; t.concerns(*p) {
			polls = append(polls, &poll{subject: subject{name: p.Name, target: p.Target, signal: p.SignalQueue}, processor: p, index: i, decided: make(chan struct{})})
		}
	}
	groups := make([]*subject, 0, len(t.Groups))
	for _, g := range t.Groups {
		if t.named != nil && !t.namedGroups[g.Name] {
			continue
		}
		d := &subject{name: g.Name, target: g.Target, signal: g.SignalQueue, state: &state.State{}}
		groups = append(groups, d)
		t.finishing.Go(func() { t.decideGroup(ctx, g, d, membersOf(g, polls)) })
	}
	loaded := make(chan *poll)
	var loading sync.WaitGroup
	loading.Go(func() {
		for _, d := range polls {
			t.store <- struct{}{}
			loading.Go(func() {
				t.load(ctx, d)
				<-t.store
				loaded <- d
			})
		}
	})
	go func() {
		loading.Wait()
		close(loaded)
	}()
	var waves sync.WaitGroup
	for {
		wave, more := collect(loaded)
		if len(wave) > 0 {
			waves.Go(func() { t.measure(ctx, t.handOver(ctx, wave)) })
		}
		if !more {
			break
		}
	}
	waves.Wait()
	t.finishing.Wait()
	return polls, groups
}

// collect takes what comes until nothing has come for a while; more is false at the end of all.
func collect(loaded <-chan *poll) (wave []*poll, more bool) {
	d, more := <-loaded
	if !more {
		return nil, false
	}
	wave = append(wave, d)
	idle := time.NewTimer(waveAfter)
	defer idle.Stop()
	for {
		select {
		case d, more := <-loaded:
			if !more {
				return wave, false
			}
			wave = append(wave, d)
			idle.Reset(waveAfter)
		case <-idle.C:
			return wave, true
		}
	}
}

// load reads what is stored of a processor, and tells whether it is due.
func (t *tick) load(ctx context.Context, d *poll) {
	t.read(ctx, &d.subject)
	switch {
	case t.named != nil:
		d.elsewhere = d.err == nil && !t.named[d.name]
		d.due = d.err != nil || !d.elsewhere && !t.polledSince(d.last)
	case t.mode.All:
		d.due = len(t.mode.Only) == 0 || slices.Contains(t.mode.Only, d.name)
		d.elsewhere = !d.due
	default:
		d.due = d.err != nil || d.processor.due(d.last, d.stored.Complete(), t.start)
		t.weigh(d)
	}
	if d.due {
		t.mode.say(d.name, false)
	}
}

// read reads what is stored of a subject. It has its own share of the tick's time.
func (t *tick) read(ctx context.Context, d *subject) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout/loadShare)
	defer cancel()
	began := time.Now()
	stored, err := t.Store.Load(ctx, d.name)
	d.stored, d.last, d.err = &stored, stored.Head(), err
	t.took.Add("the state", time.Since(began))
	t.sayUnread(d)
}

// unpack completes the State that read has read.
func (t *tick) unpack(d *poll) {
	if d.err != nil || d.whole {
		return
	}
	var last state.State
	if last, d.err = d.stored.State(); d.err == nil {
		d.last, d.whole = &last, true
	}
	t.sayUnread(&d.subject)
}

func (t *tick) sayUnread(d *subject) {
	if d.err != nil {
		t.Log.Error("the state cannot be loaded", "processor", d.name, "error", d.err.Error())
	}
}

// measure measures the processors of a wave that are due, and finishes each as soon as it is known.
func (t *tick) measure(ctx context.Context, wave []*poll) {
	var (
		due        []*poll
		processors []estimator.Processor
	)
	for _, d := range wave {
		switch {
		case d.elsewhere:
			t.lookAt(d)
			close(d.decided) // and nothing of it is touched
		case !d.due:
			t.lookAt(d)
			close(d.decided)
			t.finishing.Go(func() { t.rest(ctx, &d.subject) })
		case d.err != nil:
			t.notRead(d)
		default:
			p := d.processor.Processor
			p.Account.ShareBudget(int(t.parts.Load()))
			p.Last = func() changefeed.ProcessorLag {
				t.unpack(d)
				return asOf(d.last.Lag, t.start)
			}
			due, processors = append(due, d), append(processors, p)
		}
	}
	if len(due) == 0 {
		return
	}
	measuring, cancel := t.measuring(ctx)
	defer cancel()
	began := time.Now()
	var delay atomic.Int64
	t.Estimator.Estimate(measuring, t.budgetUntil(measuring), processors, func(i int, lag changefeed.ProcessorLag) {
		t.took.Add("account "+due[i].processor.Account.Host(), time.Since(began))
		delay.Add(int64(lag.Delay))
		t.deciding <- struct{}{}
		t.finishing.Go(func() { t.finish(ctx, due[i], lag) })
	})
	if d := time.Duration(delay.Load()); d > 0 {
		t.Log.Info("the RU budget delayed requests", "setting", "FEEDSCALE_RU_BUDGET", "sum", d.String())
	}
}

// lookAt takes from the partitions of a processor that is not polled here what somebody else needs: its group, or
// the throughput that follows it.
func (t *tick) lookAt(d *poll) {
	if d.processor.Group == "" && t.Throughput == nil {
		return
	}
	t.unpack(d)
	d.unread = d.err != nil
	d.perReplica = chargePerReplica(d.last)
	if d.processor.Group == "" {
		d.last.Lag.Partitions = nil
	}
	d.last.Forget()
}

// notRead closes a poll whose state could not be loaded.
func (t *tick) notRead(d *poll) {
	d.unread = true
	d.state = &state.State{Processor: d.name, Group: d.processor.Group, AttemptedAt: t.start, Lag: changefeed.ProcessorLag{Time: t.start, Error: d.err.Error()}}
	close(d.decided)
	t.mode.each(*d.state)
}

// asOf returns what was measured last, as far as it may be used now. Where a clock was ahead, its time
// counts as now, and each partition as carried over, so that it is read again: its age was counted by
// that clock.
func asOf(l changefeed.ProcessorLag, now time.Time) changefeed.ProcessorLag {
	if !l.Time.After(now) {
		return l
	}
	l.Time = now
	l.Partitions = slices.Clone(l.Partitions)
	for i := range l.Partitions {
		l.Partitions[i].Measured = now
	}
	return l
}

// earlier returns the earlier of two times: one that is remembered, and lies in the future, counts as
// now.
func earlier(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// measuring returns a context for measuring: it ends with the tick, but for a fifth of the time left,
// and at once where the tick is told to stop.
func (t *tick) measuring(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	measuring, cancel := context.WithTimeout(ctx, left-left/5)
	stop := context.AfterFunc(t.stopping, cancel)
	return measuring, func() {
		stop()
		cancel()
	}
}

// budgetUntil is until when a read may wait for the RU budget: what is not allowed by then is carried
// over, rather than making the tick overrun its slot.
func (t *tick) budgetUntil(ctx context.Context) time.Time {
	until, _ := ctx.Deadline()
	if t.Ticks == nil {
		return until
	}
	now := t.Now()
	if next := t.Ticks.Next(nearestSecond(now)); !next.IsZero() {
		slot := time.Now().Add(next.Sub(now) * 4 / 5)
		if slot.Before(until) {
			return slot
		}
	}
	return until
}

// finish decides, commits and publishes. It gives its slot back once that is committed, whatever the broker
// does.
func (t *tick) finish(ctx context.Context, d *poll, lag changefeed.ProcessorLag) {
	kept := t.decideAndCommit(ctx, d, lag)
	<-t.deciding
	if kept {
		t.afterCommit(ctx, &d.subject)
	}
	if !t.mode.DryRun { // which tells of throughput behind all
		d.stored, d.last = nil, nil
	}
	if t.mode.Brief && d.processor.Group == "" && d.state != nil { // a group looks at its members, and nobody at others
		d.replicas, d.state = d.state.Memory.Replicas, nil
	}
}

// decideAndCommit reports whether anything of the poll may be delivered. It drops what it has of each lease
// as soon as nobody needs that any more.
func (t *tick) decideAndCommit(ctx context.Context, d *poll, lag changefeed.ProcessorLag) bool {
	if t.stopping.Err() != nil && !lag.Complete() {
		d.dropped = true // it was told to stop before this was measured: the next tick does
		close(d.decided)
		return false
	}
	if t.unpack(d); d.err != nil {
		t.notRead(d)
		return false
	}
	t.decide(ctx, d, lag)
	d.last.Forget()
	close(d.decided)
	t.mode.say(d.name, true)
	kept := t.keeps(&d.subject)
	if kept {
		t.commit(ctx, &d.subject)
	}
	t.mode.each(*d.state)
	d.state.Forget()
	if t.mode.Brief && d.processor.Group == "" {
		d.state.Lag.Partitions = nil
	}
	return kept
}

// keep commits and publishes what was decided.
func (t *tick) keep(ctx context.Context, d *subject) {
	if t.keeps(d) {
		t.commit(ctx, d)
		t.afterCommit(ctx, d)
	}
}

// keeps reports whether what was decided is to be kept.
func (t *tick) keeps(d *subject) bool { return !t.mode.DryRun && d.err == nil }

// afterCommit does what follows a commit.
func (t *tick) afterCommit(ctx context.Context, d *subject) {
	if t.stopping.Err() == nil {
		t.publish(ctx, d)
		if d.committed {
			t.keepSignals(ctx, d, *d.state)
		}
		t.prune(ctx, d)
	}
}

// rest is what a tick does for a subject that is not due.
func (t *tick) rest(ctx context.Context, d *subject) {
	t.publishPending(ctx, d)
	t.keepSignals(ctx, d, *d.last)
}

func (t *tick) decide(ctx context.Context, d *poll, lag changefeed.ProcessorLag) {
	before, limit := conditionsOf(&d.last.Lag), limitOf(d.last)
	d.last.Lag.Partitions = nil // the first of what there may be much of
	last := d.last
	if last.AttemptedAt.After(t.start) { // by a clock that was ahead
		last.Health, last.Memory = last.Health.Until(t.start), last.Memory.Until(t.start)
	}
	lag, healthy := health.Assess(health.Input{Now: t.start, Lag: lag, Policy: d.processor.Policy.Health, Asked: last.Memory.Asked, Memory: last.Health})
	outcome := scaling.Decide(scaling.Input{Now: t.start, Lag: lag, Policy: d.processor.Policy, Memory: last.Memory, Limit: limit})
	d.state = t.following(&d.subject)
	d.state.Lag, d.state.Health, d.state.Decision, d.state.Memory = lag, healthy, outcome.Decision, outcome.Memory
	d.complete, d.leases = lag.Complete(), max(d.state.Memory.Partitions, lag.PartitionCount())
	d.perReplica = chargePerReplica(d.state)
	d.state.Paused, d.state.Group = d.processor.Policy.Paused, d.processor.Group
	if lag.Known() {
		d.state.PolledAt = t.start
	}
	if d.state.Group != "" {
		d.state.Published = nil // of a time before the group, which publishes for its members
	}
	t.follow(d)
	t.say(d, &last.Lag, before, lag)
	t.emit(&d.subject)
}

// following returns the State of this tick without what the tick decided.
func (t *tick) following(d *subject) *state.State {
	last := d.last
	s := &state.State{
		Processor: d.name, Epoch: last.Epoch, AttemptedAt: t.start, PolledAt: earlier(last.PolledAt, t.start),
		Sequence: last.Sequence, Published: last.Published,
	}
	if s.Epoch == 0 {
		s.Epoch = t.start.Unix()
	}
	s.Poller, s.Rival = last.Poller, last.Rival
	if t.mode.Shard != nil {
		s.Poller = "" // any process may poll a shard: none is a rival
		return s
	}
	if t.ID == "" || t.mode.All {
		return s // a poll by hand is no rival
	}
	if before, ok := t.polled.Load(d.name); ok && last.Poller != "" && last.Poller != t.ID && t.start.Sub(before.(time.Time)).Abs() < rivalWithin {
		s.Rival = &state.Rival{Poller: last.Poller, Time: t.start}
		if !t.rivals.Swap(true) {
			t.Log.Warn("another process polls into the same state: both spend request units, and each drops results of the other", "processor", d.name, "other", last.Poller, "next", "end one of the two, or give each a state of its own in FEEDSCALE_STATE")
		}
	}
	s.Poller = t.ID
	return s
}

// emit records what was decided in the history, and makes an event of it where one is due.
func (t *tick) emit(d *subject) {
	d.state.Record(d.last.Recorded)
	if !t.eventDue(*d.state, t.start) {
		return
	}
	d.state.Sequence++
	event, err := report.NewEvent(*d.state, d.target).Encode()
	if err != nil {
		d.err = err
		return
	}
	d.event = &state.Event{Processor: d.name, Sequence: d.state.Sequence, Body: event}
	d.state.Published = &state.Published{Time: t.start, Replicas: d.state.Decision.Replicas, Active: d.state.Decision.Active, Destination: t.Destination}
}

// say logs what an operator has to know of a measurement, once.
func (t *tick) say(d *poll, last *changefeed.ProcessorLag, before []int, lag changefeed.ProcessorLag) {
	if problem := lag.Problem(); problem != "" {
		says := "the lag is not fully known"
		if !lag.Known() {
			says = "the lag is not known"
		}
		t.Log.Warn(says, "processor", d.processor.Name, "error", problem)
	}
	if lag.Nearest != "" && lag.Nearest != last.Nearest {
		t.Log.Warn("no lease of a processor was found", "processor", d.processor.Name, "next", lag.Nearest)
	}
	if stays := both(last.Leftover, lag.Leftover); len(stays) > 0 {
		if _, said := t.leftover.LoadOrStore(d.name, nil); !said {
			t.Log.Warn("leases of a processor are left over", "processor", d.name, "kind", "leftover", "leases", strings.Join(stays, " "), "next", "others have replaced them, and nobody deleted them: they are not counted; delete them while no replica runs")
		}
	}
	for i, n := range conditionsOf(&lag) {
		if c := conditions[i]; n > before[i] {
			t.Log.Warn(c.says, "processor", d.name, "kind", c.kind, "partitions", n, "next", c.next)
		}
	}
}

// both returns the leases that two polls in a row found left over: at a split one may.
func both(before, now []string) (stays []string) {
	for _, lease := range now {
		if slices.Contains(before, lease) {
			stays = append(stays, lease)
		}
	}
	return stays
}

// conditions are what an operator has to know of partitions (docs/lag.md). Each is logged where more
// partitions are in it than before; the alerts of infra look for these messages.
var conditions = []struct {
	says, kind, next string
	holds            func(p *changefeed.Partition) bool
}{
	{"a processor is stalled", string(changefeed.StallHung), "look at the log of the owner: it holds the lease of pending changes, but its handler does not return",
		func(p *changefeed.Partition) bool { return p.Stall != nil && p.Stall.Kind == changefeed.StallHung }},
	{"a processor is stalled", string(changefeed.StallFlapping), "look at the log of the owners: the lease is given up and taken again, since the handler throws",
		func(p *changefeed.Partition) bool { return p.Stall != nil && p.Stall.Kind == changefeed.StallFlapping }},
	{"changes of a processor are about to expire", string(changefeed.StatusExpiring), "they leave their retention unread: see that the processor runs, or lengthen the retention",
		func(p *changefeed.Partition) bool { return p.Status == changefeed.StatusExpiring }},
	{"partitions of a processor are unclaimed", string(changefeed.StatusUnclaimed), "changes are pending and nobody takes the lease: see that its replicas start and may write to the lease container",
		func(p *changefeed.Partition) bool { return p.Status == changefeed.StatusUnclaimed }},
	{"a position of a processor went backwards", "rewound", "changes are processed again: a lease was restored, reset or deleted",
		func(p *changefeed.Partition) bool { return p.Rewound != nil }},
	{"leases of a processor have a time that no owner can have written", "badLeaseTime", "it counts as none: set the clock of the owners, or find what else writes leases",
		func(p *changefeed.Partition) bool { return p.BadTime }},
}

// conditionsOf returns how many partitions are in each condition.
func conditionsOf(lag *changefeed.ProcessorLag) []int {
	counts := make([]int, len(conditions))
	for i := range lag.Partitions {
		for j := range conditions {
			if conditions[j].holds(&lag.Partitions[i]) {
				counts[j]++
			}
		}
	}
	return counts
}

// commit writes a State, and its event, in one step.
func (t *tick) commit(ctx context.Context, d *subject) {
	t.store <- struct{}{}
	defer func() { <-t.store }()
	began := time.Now()
	err := t.Store.Commit(ctx, d.stored.Version, *d.state, d.event)
	t.took.Add("the state", time.Since(began))
	if err != nil {
		d.state.Sequence, d.state.Published = d.last.Sequence, d.last.Published
	}
	switch {
	case errors.Is(err, state.ErrConflict):
		t.Log.Info("another tick was faster: this one's result is dropped", "processor", d.state.Processor)
	case err != nil:
		d.err = err
		t.Log.Error("the decision cannot be committed", "processor", d.state.Processor, "error", err.Error())
	default:
		d.committed = true
		if !t.mode.All && t.mode.Shard == nil {
			t.polled.Store(d.name, t.start)
		}
	}
}

// prune lets the store forget old samples of a processor that begins a new hour with this tick. What
// fails is tried again in an hour.
func (t *tick) prune(ctx context.Context, d *subject) {
	now, last := d.state.AttemptedAt, d.last.AttemptedAt
	if t.Retention <= 0 || !d.committed || now.Truncate(time.Hour).Equal(last.Truncate(time.Hour)) {
		return
	}
	if now.Sub(last) > time.Hour {
		now = last // one poll by a clock that is ahead does not empty the history
	}
	if err := t.Store.Prune(ctx, d.state.Processor, now.Add(-t.Retention)); err != nil {
		t.Log.Warn("old samples cannot be removed", "processor", d.state.Processor, "error", err.Error())
	}
}

// each calls do for 0..n-1, at most parallel at once, and waits for all.
func each(n int, do func(int)) {
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for i := range n {
		calls.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = calls.Wait() // do reports no error
}
