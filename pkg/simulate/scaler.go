package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// Scaler is a way of deciding replicas: a policy of feedscale, KEDA, or a fixed count. It is a value
// that any number of replays may use.
type Scaler interface {
	// Name stands for it in results.
	Name() string
	// begin returns what is asked at the beginning of every second of one replay how many replicas
	// there are to be.
	begin(c Conditions, f *fleet, random *rand.Rand) replicas
}

// replicas returns the replicas wanted at a second, which counts from 0 at the start of the replay
// and which the fleet knows as row.
type replicas func(second, row int) int

// DefaultEvery is how often feedscale polls unless told otherwise (FEEDSCALE_TIMER_SCHEDULE).
const DefaultEvery = 15 * time.Second

type feedscale struct {
	name   string
	policy scaling.Policy
	every  int

	provisioning *Provisioning // nil = the throughput stays as it is
}

// Feedscale polls, and decides as scaling.Decide does, every so often (rounded up to seconds, at
// least one). Conditions say who acts on it; a policy that is paused changes nothing.
func Feedscale(name string, policy scaling.Policy, every time.Duration) Scaler {
	return feedscale{name: name, policy: policy, every: max(1, wholeSeconds(every))}
}

func (s feedscale) Name() string { return s.name }

func (s feedscale) begin(c Conditions, f *fleet, random *rand.Rand) replicas {
	var memory scaling.Memory
	first, act := c.phase(s.every, random), s.act(c, random)
	return func(second, row int) int {
		polled := (second-first)%s.every == 0 && second >= first
		if polled {
			lag := f.failedPoll(row)
			if random.Float64() >= c.FailedPolls {
				lag = f.poll(row)
			}
			memory = scaling.Decide(scaling.Input{Now: f.now(row), Lag: lag, Policy: s.policy, Memory: memory, Limit: f.limit()}).Memory
			f.follow(row, s.provisioning, memory)
		}
		return act(second, polled, &memory)
	}
}

type fixed int

// Fixed is a number of replicas that never changes.
func Fixed(count int) Scaler { return fixed(count) }

// Name is the same for every count: Result.Fixed says which.
func (fixed) Name() string { return "fixed" }

func (s fixed) begin(Conditions, *fleet, *rand.Rand) replicas {
	return func(int, int) int { return int(s) }
}
