// Package poller runs one tick: it finds the processors that are due, measures them, decides,
// commits and publishes (docs/architecture.md, The flow of a tick).
//
// It joins the packages estimator, scaling, state and events, and has two rules of its own: which
// processors are due, and when an event is published. Start with Tick.
//
// The package is internal to the program: its API may change in any release.
package poller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/changefeed"
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
	Target       map[string]string // labels that every scale event carries, for its consumers
}

// Poller runs ticks. Two ticks at once are harmless: of the two results for a processor, the one
// that is committed later is dropped.
type Poller struct {
	Processors []Processor
	Estimator  *estimator.Estimator
	Store      state.Store
	Publisher  events.Publisher
	Heartbeat  time.Duration // an unchanged decision is published again after this time; 0 = never
	Timeout    time.Duration // of one tick; a fifth of it is kept for commit and publish
	Retention  time.Duration // samples are removed when their hour ended this long ago; 0 = never
	Now        func() time.Time
	Log        *slog.Logger

	mu      sync.Mutex
	drained bool // the outboxes of processors that are no longer configured are empty
}

// Mode says what a tick does beyond measuring and deciding.
type Mode struct {
	All    bool // poll every processor, whatever its schedule
	DryRun bool // commit and publish nothing
}

// parallel is the greatest number of requests to the store, or to the queue, that a tick has in
// flight.
const parallel = 32

// poll is the state of one processor in the course of a tick.
type poll struct {
	processor Processor
	record    state.Record
	state     state.State
	event     *state.Event
	committed bool
	err       error // why its state could not be loaded, or the decision not be stored
}

// Tick polls the processors that are due. It returns an error only where no processor at all could
// be committed; every smaller failure is in the result and in the log.
func (p *Poller) Tick(ctx context.Context, mode Mode) (report.Tick, error) {
	start := p.Now().UTC().Truncate(time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()

	polls := p.load(ctx)
	due := p.due(polls, start, mode)
	p.measure(ctx, due, start)
	if !mode.DryRun {
		p.commit(ctx, due)
	}
	result := report.Tick{Polled: make([]state.State, 0, len(due))}
	for _, d := range due {
		result.Polled = append(result.Polled, d.state)
		if d.err != nil {
			result.Uncommitted++
		}
	}
	if mode.DryRun {
		return result, nil
	}
	result.Unpublished = p.publish(ctx, polls)
	p.prune(ctx, due)
	p.Log.Info("tick", "polled", len(due), "uncommitted", result.Uncommitted, "unpublished", result.Unpublished, "duration", p.Now().Sub(start).String())
	if len(due) > 0 && result.Uncommitted == len(due) {
		return result, fmt.Errorf("nothing could be committed: %w", due[0].err)
	}
	return result, nil
}

// load reads the stored state and outbox of every processor.
func (p *Poller) load(ctx context.Context) []*poll {
	polls := make([]*poll, len(p.Processors))
	each(len(polls), func(i int) {
		polls[i] = &poll{processor: p.Processors[i]}
		polls[i].record, polls[i].err = p.Store.Load(ctx, p.Processors[i].Name)
		if err := polls[i].err; err != nil {
			p.Log.Error("the state cannot be loaded", "processor", p.Processors[i].Name, "error", err.Error())
		}
	})
	return polls
}

// due selects the processors to poll now. One whose state could not be loaded is among them, so
// that it is reported; it is not measured.
func (p *Poller) due(polls []*poll, now time.Time, mode Mode) []*poll {
	var due []*poll
	for _, d := range polls {
		if mode.All || d.processor.due(d.record.State, now) {
			due = append(due, d)
		}
	}
	return due
}

// measure estimates the lag of the processors, decides, and prepares what is to be committed. It
// takes at most four fifths of the time left.
func (p *Poller) measure(ctx context.Context, due []*poll, now time.Time) {
	deadline, _ := ctx.Deadline() // of the tick, or an earlier one of the caller
	left := time.Until(deadline)
	ctx, cancel := context.WithTimeout(ctx, left-left/5)
	defer cancel()
	var (
		loaded     []*poll
		processors []estimator.Processor
	)
	for _, d := range due {
		if d.err != nil {
			d.state = state.State{Processor: d.processor.Name, AttemptedAt: now, Lag: changefeed.ProcessorLag{Time: now, Error: d.err.Error()}}
			continue
		}
		loaded, processors = append(loaded, d), append(processors, d.processor.Processor)
	}
	var delay time.Duration
	for i, lag := range p.Estimator.Estimate(ctx, processors) {
		delay += lag.Delay
		p.decide(loaded[i], lag, now)
	}
	if delay > 0 {
		p.Log.Info("the RU budget delayed requests", "setting", "FEEDSCALE_RU_BUDGET", "sum", delay.String())
	}
}

func (p *Poller) decide(d *poll, lag changefeed.ProcessorLag, now time.Time) {
	last := d.record.State
	outcome := scaling.Decide(scaling.Input{Now: now, Lag: lag, Policy: d.processor.Policy, Memory: last.Memory})
	d.state = state.State{
		Processor:   d.processor.Name,
		AttemptedAt: now,
		PolledAt:    last.PolledAt,
		Lag:         outcome.Lag,
		Decision:    outcome.Decision,
		Memory:      outcome.Memory,
		Sequence:    last.Sequence,
		Published:   last.Published,
		Paused:      d.processor.Policy.Paused,
	}
	if outcome.Lag.Known() {
		d.state.PolledAt = now
	}
	d.state.Record(last.Recorded)
	if problem := outcome.Lag.Problem(); problem != "" {
		p.Log.Warn("the lag is not fully known", "processor", d.processor.Name, "error", problem)
	}
	if now := stalled(outcome.Lag); now > stalled(last.Lag) {
		p.Log.Warn("a processor is stalled", "processor", d.processor.Name, "partitions", now, "next", "look at the log of the owner: it holds the lease of pending changes, but its checkpoint does not move")
	}
	if !p.eventDue(d.state, now) {
		return
	}
	d.state.Sequence++
	event, err := report.NewEvent(d.state, d.processor.Target).Encode()
	if err != nil {
		d.err = err
		return
	}
	d.event = &state.Event{Processor: d.state.Processor, Sequence: d.state.Sequence, Body: event}
	d.state.Published = &state.Published{Time: now, Replicas: d.state.Decision.Replicas, Active: d.state.Decision.Active}
}

// stalled returns the number of stalled partitions.
func stalled(lag changefeed.ProcessorLag) int {
	n := 0
	for i := range lag.Partitions {
		if lag.Partitions[i].Status == changefeed.StatusStalled {
			n++
		}
	}
	return n
}

// eventDue reports whether a decision is to be published (docs/act.md, Scale events): the first one
// of a processor, one whose replicas or activity differ from what was published last, and at the
// heartbeat any.
func (p *Poller) eventDue(s state.State, now time.Time) bool {
	switch {
	case s.Decision == nil, s.Paused:
		return false
	case s.Published == nil:
		return true
	case s.Published.Replicas != s.Decision.Replicas, s.Published.Active != s.Decision.Active:
		return true
	default:
		return p.Heartbeat > 0 && now.Sub(s.Published.Time) >= p.Heartbeat
	}
}

// commit writes each State together with its event, in one atomic step per processor.
func (p *Poller) commit(ctx context.Context, due []*poll) {
	each(len(due), func(i int) {
		d := due[i]
		if d.err != nil {
			return
		}
		err := p.Store.Commit(ctx, d.record.Version, d.state, d.event)
		if err != nil {
			d.state.Sequence, d.state.Published = d.record.State.Sequence, d.record.State.Published
		}
		switch {
		case errors.Is(err, state.ErrConflict):
			p.Log.Info("another tick was faster: this one's result is dropped", "processor", d.state.Processor)
		case err != nil:
			d.err = err
			p.Log.Error("the decision cannot be committed", "processor", d.state.Processor, "error", err.Error())
		default:
			d.committed = true
		}
	})
}

// prune removes old samples of the processors for which this tick is the first of an hour. What
// fails is tried again an hour later.
func (p *Poller) prune(ctx context.Context, due []*poll) {
	each(len(due), func(i int) {
		d := due[i]
		now := d.state.AttemptedAt
		if p.Retention <= 0 || !d.committed || now.Truncate(time.Hour).Equal(d.record.State.AttemptedAt.Truncate(time.Hour)) {
			return
		}
		if err := p.Store.Prune(ctx, d.state.Processor, now.Add(-p.Retention)); err != nil {
			p.Log.Warn("old samples cannot be removed", "processor", d.state.Processor, "error", err.Error())
		}
	})
}

// publish delivers every pending event, those of earlier ticks first, and returns how many are
// left. After an event that cannot be delivered, no later one of its processor is tried; after a
// queue that cannot be reached, none at all.
func (p *Poller) publish(ctx context.Context, polls []*poll) (left int) {
	var pending [][]state.Event
	for _, d := range polls {
		outbox := d.record.Outbox
		if d.committed && d.event != nil {
			outbox = append(outbox, *d.event)
		}
		if len(outbox) > 0 {
			pending = append(pending, outbox)
		}
	}
	var unreachable atomic.Bool
	left = p.deliverAll(ctx, pending, &unreachable)
	// Those of removed processors come last, since finding them may take long.
	return left + p.publishOrphans(ctx, &unreachable)
}

// deliverAll delivers the events of several processors, each processor's in their order, and
// returns how many are left.
func (p *Poller) deliverAll(ctx context.Context, pending [][]state.Event, unreachable *atomic.Bool) (left int) {
	failed := make([]int, len(pending))
	each(len(pending), func(i int) {
		for n, event := range pending[i] {
			failed[i] = len(pending[i]) - n
			if unreachable.Load() {
				return
			}
			err := p.deliver(ctx, event)
			if errors.Is(err, events.ErrUnreachable) && unreachable.Swap(true) {
				return // logged already
			}
			if err != nil {
				p.Log.Error("a scale event cannot be published: it stays in the outbox for the next tick", "processor", event.Processor, "sequence", event.Sequence, "error", err.Error())
				return
			}
		}
		failed[i] = 0
	})
	for _, n := range failed {
		left += n
	}
	return left
}

func (p *Poller) deliver(ctx context.Context, e state.Event) error {
	if err := p.Publisher.Publish(ctx, e.Body); err != nil {
		return err
	}
	// Where this fails, the same bytes are published again under the same id, by which a consumer
	// knows them.
	if err := p.Store.Remove(ctx, e.Processor, e.Sequence); err != nil {
		p.Log.Warn("a published event cannot be removed from the outbox: it will be published again", "processor", e.Processor, "sequence", e.Sequence, "error", err.Error())
	}
	return nil
}

// publishOrphans delivers the pending events of processors that are no longer configured. Nothing
// adds to them, so once all are delivered the process does not look for more.
func (p *Poller) publishOrphans(ctx context.Context, unreachable *atomic.Bool) (left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drained {
		return 0
	}
	configured := make([]string, len(p.Processors))
	for i, processor := range p.Processors {
		configured[i] = processor.Name
	}
	removed, err := p.Store.Outbox(ctx, configured)
	if err != nil {
		p.Log.Warn("the outbox cannot be searched for events of removed processors", "error", err.Error())
		return 0
	}
	var orphans [][]state.Event
	for _, e := range removed {
		if last := len(orphans) - 1; last >= 0 && orphans[last][0].Processor == e.Processor {
			orphans[last] = append(orphans[last], e)
		} else {
			orphans = append(orphans, []state.Event{e})
		}
	}
	left = p.deliverAll(ctx, orphans, unreachable)
	p.drained = left == 0
	return left
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
	_ = calls.Wait() // none fails for all
}
