package simulate

import (
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// now is the time at the beginning of a row.
func (f *fleet) now(row int) time.Time {
	return f.trace.Start.Add(time.Duration(row-f.trace.Backlog) * time.Second)
}

// poll is what a poll finds at the beginning of a row: lease documents as their owners wrote them
// last, and the feed behind each. It knows nothing of what a handler has in hand. It holds until the
// next one.
func (f *fleet) poll(row int) changefeed.ProcessorLag {
	f.measured.Time = f.now(row)
	for p := range f.leases {
		l := &f.leases[p]
		if l.positionOf != l.done {
			l.position, l.positionOf = strconv.FormatInt(l.done, 10), l.done
		}
		// LSNs begin at 1: 0 stands for none.
		f.lags[p], f.ages[p], f.sessions[p], f.done[p] = l.pending(), int64(row-l.head), l.arrived+1, l.done+1
		m := changefeed.Partition{
			Lease: l.name, Lag: &f.lags[p], Status: changefeed.StatusOK, LeaseTime: f.now(l.renewed(row)),
			SessionLSN: &f.sessions[p], CheckpointLSN: &f.done[p], Position: l.position,
		}
		if f.lags[p] > 0 {
			m.Age, m.Status = &f.ages[p], changefeed.StatusLagging
		}
		if l.owner != nil {
			m.Owner = l.owner.name
		}
		f.measured.Partitions[p] = m
	}
	return f.measured
}

// failedPoll is what a poll finds that cannot read the leases.
func (f *fleet) failedPoll(row int) changefeed.ProcessorLag {
	return changefeed.ProcessorLag{Time: f.now(row), Error: "simulated: the leases could not be read"}
}
