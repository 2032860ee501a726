package simulate

import (
	"math/rand/v2"
	"time"
)

// Conditions are what a replay meets beside the trace.
type Conditions struct {
	Acting      Acting        // who acts on what feedscale decides; "" = Consumer
	Delay       time.Duration // until what was decided takes effect, beside the way of acting's own loops; rounded up to seconds
	FailedPolls float64       // share of the polls that fail as a whole, feedscale's and those of KEDA's own trigger, 0..1
	Seed        uint64        // of what happens by chance: when the loops begin, which polls fail, which of two hosts gets a lease

	aligned bool // every loop begins in the first second, and a consumer acts at once
}

// phase is the second in which a loop goes round for the first time.
func (c Conditions) phase(every int, random *rand.Rand) int {
	if c.aligned {
		return 0
	}
	return random.IntN(every)
}
