package scaling

import (
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// chance is how many LSNs less than came may be done between two polls by
// owners that keep up, beside a fifth of them: owners that find nothing wait
// for some seconds, and when a poll comes is chance.
const chance = 10

// noise is by how much more has to be seen of what an owner can do at least, to
// be news.
const noise = 1.1

// rates measures, from this sample and the last: how fast changes arrive, how
// fast one live owner works them off, and whether the owners keep up.
//
// What an owner did is what it can do only where it was never without work:
// where a change that was pending at the last poll still is. Any other can do at
// least as much as it did. Where leases moved nobody can tell who did what.
func (s *steps) rates() {
	w := work{index: make(map[string]int)}
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		last, seen := s.Memory.Progress[p.Lease]
		if seen && p.Lag != nil && !(s.Policy.ExcludeStalled && last.Stalled) {
			w.add(p, last, s.Lag.Time.Sub(last.Time), s.live(p))
		}
	}
	s.next.Arrival = w.arrival
	switch drain, exact := w.drainPerReplica(); {
	case exact:
		s.next.DrainPerReplica, s.next.DrainOwners = drain, 0
	case drain > s.Memory.DrainPerReplica*noise:
		s.next.DrainPerReplica, s.next.DrainOwners = drain, len(w.owners)
	}
	s.keepsUp = w.arrival != nil && !w.behind && w.longest <= s.Policy.CatchUpWithin && w.came-w.done <= w.came/5+chance
}

// work is what came and what was done between two polls, over all partitions.
type work struct {
	arrival    *float64      // LSNs per second; nil where nothing was measured twice
	came, done int64         // LSNs
	behind     bool          // a change that was pending at the last poll still is, or was until now
	moved      bool          // a lease has another owner than at the last poll
	longest    time.Duration // between the two polls; longer where a partition was unknown in between
	owners     []ownerWork   // in the order of their leases: that of a map would change the last digit of a sum
	index      map[string]int
}

// ownerWork is what one live owner did between two polls.
type ownerWork struct {
	drained float64 // LSNs per second
	busy    bool    // it had work all the while
}

// add adds a partition that was measured at both polls.
func (w *work) add(p *changefeed.Partition, last Progress, span time.Duration, live bool) {
	w.moved = w.moved || p.Owner != last.Owner
	if p.SessionLSN == nil || last.SessionLSN == 0 || span <= 0 {
		return
	}
	came := max(0, *p.SessionLSN-last.SessionLSN)
	w.came += came
	w.longest = max(w.longest, span)
	if w.arrival == nil {
		w.arrival = new(float64)
	}
	*w.arrival += float64(came) / span.Seconds()
	if p.CheckpointLSN == nil || last.CheckpointLSN == 0 {
		return
	}
	done := max(0, *p.CheckpointLSN-last.CheckpointLSN)
	// To be done with just that, and no more, is chance only where it is little.
	left := *p.CheckpointLSN < last.SessionLSN || *p.CheckpointLSN == last.SessionLSN && done > chance
	w.done += done
	w.behind = w.behind || left
	// Only where changes were pending does an owner show what it can do.
	if last.Pending && p.Pending() && live {
		owner := w.owner(p.Owner)
		owner.drained += float64(done) / span.Seconds()
		owner.busy = owner.busy || left
	}
}

func (w *work) owner(name string) *ownerWork {
	at, known := w.index[name]
	if !known {
		at, w.owners = len(w.owners), append(w.owners, ownerWork{})
		w.index[name] = at
	}
	return &w.owners[at]
}

// drainPerReplica is what one owner can do, in LSNs per second; at least that
// where it is not exact, and 0 where nobody showed it.
func (w *work) drainPerReplica() (drain float64, exact bool) {
	var all, busy float64
	count := 0
	for _, o := range w.owners {
		all += o.drained
		if o.busy {
			busy += o.drained
			count++
		}
	}
	switch {
	case w.moved:
		return 0, false
	case busy > 0:
		return busy / float64(count), true
	case all > 0:
		return all / float64(len(w.owners)), false
	}
	return 0, false
}
