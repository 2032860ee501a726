package scaling

import (
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// slackLSNs is the number of LSNs by which what was processed between two polls may fall short of
// what arrived, besides a fifth of it, while the owners count as keeping up. Owners that find
// nothing wait some seconds before they read again, so that some changes are always in between.
const slackLSNs = 10

// drainRaiseRatio is the ratio by which a lower bound of the drain rate has to exceed the
// remembered rate in order to replace it.
const drainRaiseRatio = 1.1

// rates measures, from this poll and the last one: how fast changes arrive, how fast one live owner
// processes them, and whether the owners keep up. They keep up where nothing that was pending at
// the last poll is pending now, that poll is at most catchUpWithin ago, and about as much was
// processed as arrived.
//
// The drain rate of an owner is exact only where it had work all the time between the polls, that
// is where a change that was pending at the last poll still is. For any other owner it is a lower
// bound. Where leases changed owners, nothing tells who processed what, and the remembered rate
// stays. A carried reading is none of this poll.
func (s *steps) rates() {
	w := work{index: make(map[string]int)}
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		last, seen := s.Memory.Progress[p.Lease]
		if seen && p.Lag != nil && !p.Carried() && !(s.Policy.ExcludeStalled && last.Stalled) {
			w.add(p, last, s.Lag.Time.Sub(last.Time), s.live(p))
		}
	}
	s.next.Arrival = w.arrival
	switch drain, exact := w.drainPerReplica(); {
	case exact:
		s.next.DrainPerReplica, s.next.DrainOwners = drain, 0
	case drain > s.Memory.DrainPerReplica*drainRaiseRatio:
		s.next.DrainPerReplica, s.next.DrainOwners = drain, len(w.owners)
	}
	s.keepsUp = w.arrival != nil && !w.behind && w.longest <= s.Policy.CatchUpWithin && w.came-w.done <= w.came/5+slackLSNs
}

// work sums up what arrived and what was processed between two polls, over all partitions.
type work struct {
	arrival    *float64       // LSNs per second; nil where no partition was measured at both polls
	came, done int64          // LSNs that arrived, and LSNs that were processed
	behind     bool           // a change that was pending at the last poll still is, or was until just now
	moved      bool           // whether a lease has another owner than at the last poll
	longest    time.Duration  // the longest time between the two measurements of a partition
	owners     []ownerWork    // in the order of their leases, since the order of a map would change the last digits of a sum
	index      map[string]int // index in owners, by owner
}

// ownerWork is what one live owner processed between two polls.
type ownerWork struct {
	drained float64 // LSNs per second
	busy    bool    // whether it had work all the time
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
	// A checkpoint exactly at the newest LSN of the last poll shows an owner that had work all the
	// time, unless it moved by so little that this can be a coincidence.
	left := *p.CheckpointLSN < last.SessionLSN || *p.CheckpointLSN == last.SessionLSN && done > slackLSNs
	w.done += done
	w.behind = w.behind || left
	// Only with changes pending at both polls does an owner show what it can do.
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

// drainPerReplica returns the mean of what one owner processes, in LSNs per second: of the owners
// that had work all the time, which is exact, else of all, which is a lower bound. It is 0 where
// nothing is known.
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
