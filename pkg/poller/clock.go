package poller

import (
	"cmp"
	"maps"
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
	asked   time.Time                  // what the machine said last, with its monotonic reading
	applied time.Duration              // that is added to what the machine says
	settled bool                       // applied is what several polls measured
	looks   []map[string]time.Duration // of the last polls: the accounts' clocks minus the machine's, by host
	wrong   []changefeed.Cause         // what is wrong with the clocks, by these looks
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

// look takes what a tick measured of each account: its clock minus the machine's.
func (c *Clock) look(offsets map[string]time.Duration) {
	if len(offsets) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks = append(c.looks, offsets); len(c.looks) > clockLooks {
		c.looks = c.looks[1:]
	}
	by, all := make(map[string][]time.Duration), []time.Duration(nil)
	for _, look := range c.looks {
		for host, offset := range look {
			by[host], all = append(by[host], offset), append(all, offset)
		}
	}
	offset := median(all)
	hosts := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Compare(median(by[a]), median(by[b])) })
	least, most := hosts[0], hosts[len(hosts)-1]
	if median(by[most])-median(by[least]) > clockTolerance {
		c.applied, c.settled = 0, false
		c.say("the clock of account "+most, "is more than a minute ahead of that of account "+least, "followed the clock of this machine",
			"run feedscale check: it compares the clock of each account with this machine's")
		return
	}
	if !c.settled {
		if c.applied, c.settled = offset, len(c.looks) == clockLooks; offset.Abs() <= clockTolerance {
			c.applied = 0
		}
	}
	const machine, corrected = "the clock of this machine", "followed the corrected time"
	const remedy = "synchronize the clock of this machine with NTP; feedscale check shows by how much it is wrong"
	switch {
	case len(c.looks) < clockLooks || offset.Abs() <= clockTolerance:
		c.wrong = nil
	case c.applied == 0:
		c.say("the clock of Cosmos DB", "is no longer that of this machine", "may show a wrong age",
			"run feedscale check: it shows by how much they differ. If this machine's clock is right, nothing is to be done")
	case offset > 0:
		c.say(machine, "is more than a minute behind that of Cosmos DB", corrected, remedy)
	default:
		c.say(machine, "is more than a minute ahead of that of Cosmos DB", corrected, remedy)
	}
}

func (c *Clock) say(of, says, effect, remedy string) {
	c.wrong = []changefeed.Cause{{Beside: true, Of: of, Says: says, Effect: effect, Remedy: remedy}}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
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
	offsets := make(map[string]time.Duration)
	for _, d := range polls {
		if at, known := d.processor.Account.Clock(); known && d.stage.polled() {
			offsets[d.processor.Account.Host()] = at.Sub(c.machine())
		}
	}
	c.look(offsets)
}
