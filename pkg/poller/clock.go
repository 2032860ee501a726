package poller

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	clockTolerance = time.Minute // clocks may differ by this
	clockLooks     = 3           // an offset is the median of so many polls, so that one odd answer does no harm
)

// Clock is the clock of this machine, corrected if it differs from that of the accounts when the
// process starts, or if it jumps later. If the clock of the accounts drifts from it instead, that
// is a cause that is told, and nothing is corrected.
type Clock struct {
	machine func() time.Time
	between func(from, to time.Time) time.Duration // by the monotonic clock, whatever is done to the other one

	mu      sync.Mutex
	asked   time.Time          // what the machine said last, with its monotonic reading
	applied time.Duration      // that is added to what the machine says
	settled bool               // applied is what several polls measured
	looks   []time.Duration    // of the last polls: the accounts' clock minus the machine's
	wrong   []changefeed.Cause // what is wrong with the clocks, by these looks
}

// NewClock corrects the clock of a machine. Jumps are seen only if its times have a monotonic
// reading.
func NewClock(machine func() time.Time) *Clock {
	return &Clock{machine: machine, between: func(from, to time.Time) time.Duration { return to.Sub(from) }}
}

// Now returns the corrected time, also right after a jump of the machine's clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.machine()
	wall := now.Round(0).Sub(c.asked.Round(0))
	if jump := wall - c.between(c.asked, now); !c.asked.IsZero() && jump.Abs() > clockTolerance {
		c.applied, c.settled, c.looks, c.wrong = c.applied-jump, false, nil, nil
	}
	c.asked = now
	return now.Add(c.applied)
}

// look takes what a tick measured of each account: its clock minus the machine's. If accounts
// disagree, the one that differs least from the machine counts.
func (c *Clock) look(offsets []time.Duration) {
	if len(offsets) == 0 {
		return
	}
	least := slices.MinFunc(offsets, func(a, b time.Duration) int { return cmp.Compare(a.Abs(), b.Abs()) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks = append(c.looks, least)
	c.looks = c.looks[max(0, len(c.looks)-clockLooks):]
	offset, complete := slices.Sorted(slices.Values(c.looks))[len(c.looks)/2], len(c.looks) == clockLooks
	if offset.Abs() <= clockTolerance {
		offset = 0
	}
	if !c.settled {
		c.applied, c.settled = offset, complete
	}
	c.wrong = nil
	if complete && offset != 0 {
		cause := changefeed.Cause{
			Beside: true, Of: "the clock of this machine", Says: "differs by more than a minute from that of Cosmos DB", Effect: "followed the corrected time",
			Remedy: "run feedscale check: it shows by how much. Synchronize the clock of this machine with NTP, unless it is right",
		}
		if c.applied == 0 {
			cause.Effect = "may show a wrong age"
		}
		c.wrong = []changefeed.Cause{cause}
	}
}

// causes says what is wrong with the clocks.
func (c *Clock) causes() []changefeed.Cause {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong
}

// compare takes the offsets of the accounts that a tick has asked.
func (c *Clock) compare(polls []*subject) {
	if c == nil {
		return
	}
	var offsets []time.Duration
	for _, d := range polls {
		if at, known := d.processor.Account.Clock(); known && d.stage.polled() {
			offsets = append(offsets, at.Sub(c.machine()))
		}
	}
	c.look(offsets)
}
