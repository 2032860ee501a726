package simulate

import (
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// Scaler is a way to decide replicas: Feedscale or KEDA. It has no state, so that any number of
// replays may use it at once.
type Scaler interface {
	// Name is its name in results.
	Name() string
	// begin returns the function that decides, for one replay, how many replicas there are to be.
	// It is called at the beginning of every second: second counts from 0 at the start of the
	// replay, row is the same second as an index of the trace.
	begin() func(second, row int, f *fleet) int
}

// DefaultEvery is the default time between two polls of feedscale.
const DefaultEvery = 30 * time.Second

type feedscale struct {
	name   string
	policy scaling.Policy
	every  int
}

// Feedscale returns the Scaler that polls at an interval (rounded up to whole seconds, at least 1
// s) and decides with scaling.Decide. A decision takes effect at once; a paused policy changes
// nothing.
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
