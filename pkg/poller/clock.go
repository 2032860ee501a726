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

// Clock is the clock of this machine, corrected by what the last polls saw of the clocks of the accounts.
type Clock struct {
	machine func() time.Time

	mu      sync.Mutex
	looks   []time.Duration // of the last polls: the accounts' clock minus the machine's
	applied time.Duration   // that is added to what the machine says
}

// NewClock corrects the clock of a machine.
func NewClock(machine func() time.Time) *Clock { return &Clock{machine: machine} }

// Now returns the corrected time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.machine().Add(c.applied)
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
	if c.applied = slices.Sorted(slices.Values(c.looks))[len(c.looks)/2]; c.applied.Abs() <= clockTolerance {
		c.applied = 0
	}
}

// causes says what is wrong with the clock.
func (c *Clock) causes() []changefeed.Cause {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied == 0 {
		return nil
	}
	return []changefeed.Cause{{
		Beside: true, Of: "the clock of this machine", Says: "differs by more than a minute from that of Cosmos DB", Effect: "followed the corrected time",
		Remedy: "run feedscale check: it shows by how much. Synchronize the clock of this machine with NTP, unless it is right",
	}}
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
