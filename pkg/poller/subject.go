package poller

import (
	"cmp"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/state"
)

// stage is how far a subject is in a tick.
type stage int

const (
	elsewhere stage = iota // another invocation polls it, or it is not asked for: nothing of it is touched
	resting                // it is not due: what waits in its outbox is published
	dropped                // the tick was told to stop before it was measured: the next tick polls it
	polling                // it is due
	unread                 // it is due, and its state could not be loaded
	decided                // but not stored: it is a dry run, the store failed, or another tick was faster
	committed
)

// polled reports whether the subject is in the result of the tick.
func (s stage) polled() bool { return s >= polling }

// subject is what a tick decides for: a processor, or a group of processors.
type subject struct {
	name   string
	target map[string]string
	signal string // its signal queue; "" = none
	stage  stage
	stored state.Entry  // as it was loaded
	last   *state.State // the State that is stored; before decode without its leases
	next   *state.State // of this tick, if it is polled
	event  *state.Event // committed with next; nil if none is due
	err    error        // why it could not be loaded, decided or committed
	left   int          // events that stay in the outbox

	saw, sees []sight // of the State that was loaded, and of the one that is stored now

	processor *Processor    // nil of a group, which has none of the fields below
	told      chan struct{} // closed once asks is known
	asks      ask
}

// leases is how many leases the processor had at its last poll, at least 1.
func (d *subject) leases() int { return max(1, d.last.Memory.Partitions) }

// ask is what a processor asks for at its last poll, of this tick if it is polled: its group needs
// that, and so do the containers that follow it.
type ask struct {
	state.Member
	stage      stage // polling at the most
	unread     bool  // its state could not be read
	known      bool  // something of its lag is known
	leases     int
	polledAt   time.Time
	want       throughput.Want // of its containers
	containers []state.Container
}

// tell notes what the processor asks for by a State.
func (d *subject) tell(s *state.State) {
	d.asks = ask{
		stage: min(d.stage, polling), unread: d.err != nil,
		Member: state.Member{Processor: d.name, Replicas: s.Memory.Replicas, Active: s.Memory.Active, Totals: s.Totals()},
		known:  s.Lag.Known(), leases: max(s.Memory.Partitions, s.Lag.PartitionCount()), polledAt: s.PolledAt, want: d.want(s), containers: s.Containers,
	}
	close(d.told)
}

// following returns the State of this tick without what the tick decided.
func (t *tick) following(d *subject) *state.State {
	last, now := d.last, t.scope.now
	s := &state.State{
		Processor: d.name, Epoch: last.Epoch, AttemptedAt: now, PolledAt: last.PolledAt, Since: last.Since,
		Sequence: last.Sequence, Published: last.Published,
	}
	if s.Epoch == 0 {
		s.Epoch = now.Unix()
	}
	if len(d.stored.Outbox) > 0 {
		s.Undelivered = cmp.Or(t.refused.Load(), last.Undelivered)
	}
	if s.PolledAt.After(now) { // by a clock that was ahead
		s.PolledAt = now
	}
	return s
}
