package simulate

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// Scaler is a way of deciding replicas: Feedscale or KEDA. It is a value that
// any number of replays may use.
type Scaler interface {
	// Name stands for it in results.
	Name() string
	// begin returns what is asked at the beginning of every second of one
	// replay how many replicas there are to be. second counts from 0 at the
	// start of the trace, row is what the fleet knows it by.
	begin() func(second, row int, f *fleet) int
}

// DefaultEvery is how often feedscale polls unless told otherwise.
const DefaultEvery = 30 * time.Second

type feedscale struct {
	name   string
	policy scaling.Policy
	every  int
}

// Feedscale polls, and decides as scaling.Decide does, every so often (rounded
// up to seconds, at least one). What it decides is done at once; a policy that is
// paused changes nothing.
func Feedscale(name string, policy scaling.Policy, every time.Duration) Scaler {
	return feedscale{name: name, policy: policy, every: max(1, wholeSeconds(every))}
}

func (s feedscale) Name() string { return s.name }

func (s feedscale) begin() func(second, row int, f *fleet) int {
	var memory scaling.Memory
	return func(second, row int, f *fleet) int {
		if second%s.every == 0 {
			memory = scaling.Decide(scaling.Input{Now: f.now(row), Lag: f.measure(row), Policy: s.policy, Memory: memory}).Memory
		}
		if memory.Replicas == nil {
			return f.desired
		}
		return *memory.Replicas
	}
}
