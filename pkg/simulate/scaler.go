package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// Scaler is a way of deciding replicas: a policy of feedscale, KEDA, or a fixed count. It is a value that
// any number of replays may use.
type Scaler interface {
	Name() string // in results
	// Begin joins a replay. What it returns is called at the beginning of every second, from 0 on, and
	// returns the replicas that there are to be.
	Begin(r *Replay) func(second int) int
}

// Replay is what a Scaler has of the replay that it joined.
type Replay struct {
	Decide func(scaling.Input) scaling.Memory // takes the decisions of feedscale

	fleet  *fleet
	row    int
	random *rand.Rand // nil: every loop begins in the first second, and a consumer acts at once
}

// Phase draws the second in which a loop goes round for the first time.
func (r *Replay) Phase(every int) int {
	if r.random == nil {
		return 0
	}
	return r.random.IntN(every)
}

// SetLeaseLimit sets the transactions per second by which each lease can be worked off from now on.
func (r *Replay) SetLeaseLimit(rate float64) {
	r.fleet.leaseSpeed = max(1, min(r.fleet.speed, perSecond(rate)))
}

// SetThroughput sets the transactions per second that one replica does from now on, and ends a lease
// limit.
func (r *Replay) SetThroughput(rate float64) {
	r.fleet.speed = max(1, perSecond(rate))
	r.fleet.leaseSpeed = r.fleet.speed
}

// SetSharedLimit sets the transactions per second that all replicas do together from now on, as a
// database behind their handlers does; 0 = no limit.
func (r *Replay) SetSharedLimit(rate float64) { r.fleet.shared = perSecond(rate) }

// Rewind sets every position back by so many seconds, to have changes delivered again.
func (r *Replay) Rewind(seconds int) { r.fleet.rewind(r.row, max(0, r.row-seconds)) }

// DefaultEvery is how often feedscale polls unless told otherwise (FEEDSCALE_TIMER_SCHEDULE).
const DefaultEvery = 15 * time.Second

// consumerSeconds is how long a scale event takes to the replicas.
const consumerSeconds = 2

// Policy is a policy of feedscale as a Scaler. A consumer of the scale events acts on its decisions.
type Policy struct {
	scaling.Policy
	name  string
	every int // seconds
}

// Feedscale polls, and decides as scaling.Decide does, every so often (rounded up to seconds, at
// least one). A policy that is paused changes nothing.
func Feedscale(name string, policy scaling.Policy, every time.Duration) Policy {
	return Policy{policy, name, max(1, wholeSeconds(every))}
}

// Name is that of the policy.
func (p Policy) Name() string { return p.name }

// Begin has a consumer act on the decisions.
func (p Policy) Begin(r *Replay) func(second int) int {
	decisions, wanted, act := p.Decisions(r), 0, Delay(consumerSeconds)
	if r.random == nil {
		act = Delay(0)
	}
	return func(second int) int {
		if m, _ := decisions(second); m.Replicas != nil {
			wanted = *m.Replicas
		}
		return act(wanted)
	}
}

// Decisions polls and decides. What it returns is called at the beginning of every second, and returns
// the memory after the last decision, and whether a poll has just been made.
func (p Policy) Decisions(r *Replay) func(second int) (m *scaling.Memory, polled bool) {
	var memory scaling.Memory
	first := r.Phase(p.every)
	return func(second int) (*scaling.Memory, bool) {
		polled := second >= first && (second-first)%p.every == 0
		if polled {
			lag := r.fleet.poll(r.row)
			memory = r.Decide(scaling.Input{Now: lag.Time, Lag: lag, Policy: p.Policy, Memory: memory})
		}
		return &memory, polled
	}
}

// Delay takes a number in at each second, and returns the one of so many seconds ago.
func Delay(seconds int) func(n int) int {
	waiting := make([]int, seconds)
	return func(n int) int {
		waiting = append(waiting, n)
		n, waiting = waiting[0], waiting[1:]
		return n
	}
}

// FixedCount is a number of replicas that never changes.
type FixedCount int

// Name is the same for every count: Result.Fixed says which.
func (FixedCount) Name() string { return "fixed" }

// Begin asks for the count from the first second on.
func (f FixedCount) Begin(*Replay) func(second int) int { return func(int) int { return int(f) } }
