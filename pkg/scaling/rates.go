package scaling

import (
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// The times and shares by which rates are measured. They were chosen with `feedscale simulate`
// (docs/decisions/0011-default-policy.md).
const (
	shortMean      = 45 * time.Second // over which the short mean of arrivals is taken
	longMean       = 4 * time.Minute  // and the long one, and the standing delay where it gets shorter
	standingMean   = 15 * time.Minute // over which the standing delay follows one that is longer
	unevenMean     = 30 * time.Minute // over which it is measured how uneven arrivals are
	standingRatio  = 2                // of the standing delay, up to which what is pending is no backlog
	longBatch      = 30.0             // seconds between two moves from which on it is the handler that takes so long
	standingRise   = 5.0              // seconds by which the standing delay can be exceeded at first, and count
	shortestWindow = 30 * time.Second // in which the work of an owner is measured
	shortestBusy   = 45 * time.Second // the same, where it is to be all that the owner can do
	provenFor      = 4 * time.Hour    // for which that counts
	longestWindow  = 5 * time.Minute  // after which that begins anew
	usualError     = 0.5              // of √leases for each move: by how much a rate may be too high, since a window begins and ends within batches
	highestError   = 1.25             // the same, that hardly any window has
	windowMoves    = 4                // moves of positions in a window, per square root of the owner's leases, for it to count
	drainMean      = 2 * time.Minute  // over which a drain rate that is exact is taken
	drainStep      = 15 * time.Second // that one sample counts for in that mean, however far apart polls are
	limitShare     = 0.85             // an owner with a backlog that does less than this share of what a replica can do is limited by something else
	limitPolls     = 4                // that have to find that it is a partition which limits its owner
	lateRatio      = 3                // of the usual time between two moves, after which a position is behind
	lateAfter      = 2 * time.Minute  // at least
	slackLSNs      = 10               // by which a position may fall short of what it had to reach, for changes on their way
)

// Rates is what was measured over several polls of all partitions together. Rates are in LSNs per
// second.
type Rates struct {
	At             time.Time       `json:"at,omitzero"`              // of the last measurement
	Standing       float64         `json:"standing,omitempty"`       // seconds that a change waits while the owners keep up: lag over arrivals
	Uneven         float64         `json:"uneven,omitempty"`         // mean deviation of arrivals from their long mean, as a share of it
	ProvenAt       time.Time       `json:"provenAt,omitzero"`        // when an owner was last seen to do all it can; zero where none was
	Partition      float64         `json:"partition,omitempty"`      // most that was done of one partition that had a backlog; 0 where none had
	PartitionPolls int             `json:"partitionPolls,omitempty"` // polls since that found as much, and an owner that could have done more
	Limited        float64         `json:"limited,omitempty"`        // the most that such an owner did at the last of them
	Glimpse        float64         `json:"glimpse,omitempty"`        // what an owner did between the last two polls, to be shown while nothing better is known
	Drained        float64         `json:"drained,omitempty"`        // by all live owners together, over about a minute
	Backlog        Backlog         `json:"backlog,omitzero"`         // that lasts
	Trial          Trial           `json:"trial,omitzero"`           // the last scale-out that has to show whether it helps
	Level          Level           `json:"level,omitzero"`           // what has stood
	Proof          float64         `json:"proof,omitempty"`          // seconds for which owners were seen to do all they can, up to ProvenAt
	StartUp        StartUp         `json:"startUp,omitzero"`         // how long replicas take to come
	LookedAt       time.Time       `json:"lookedAt,omitzero"`        // when the owners were measured last
	Owners         map[string]Work `json:"owners,omitempty"`         // live ones
}

// Work is what a live owner did in a window. A position moves once per batch of its handler, which may
// take far longer than the time between two polls: a window is as long as it takes to see several
// moves, in all of the owner's partitions together, since leases may come and go meanwhile.
type Work struct {
	Since time.Time `json:"since"`
	Done  int64     `json:"done,omitempty"`  // LSNs
	Moves int       `json:"moves,omitempty"` // of positions
	Moved int       `json:"moved,omitempty"` // leases that it got or lost: what it did of those is not all in Done
	Busy  bool      `json:"busy,omitempty"`  // whether the owner has had a backlog since then, else whether it has had none
}

// Flow is what was measured of one partition over several polls. Rates are in LSNs per second.
type Flow struct {
	Known  bool    `json:"known,omitempty"`  // whether arrivals were measured at all
	Behind bool    `json:"behind,omitempty"` // whether changes that were pending at one move of the position still were at the next, or nobody owns it
	Last   float64 `json:"last,omitempty"`   // arrivals between the last two polls
	Short  float64 `json:"short,omitempty"`  // arrivals, over about 45 s
	Long   float64 `json:"long,omitempty"`   // arrivals, over about 4 minutes
	Reach  int64   `json:"reach,omitempty"`  // LSN that the next move has to reach for the owner to keep up
	Since  Moment  `json:"since,omitzero"`   // first move since which it has been behind with the same owner; zero where it is not
	From   int64   `json:"from,omitempty"`   // position at that move
	Moves  int     `json:"moves,omitempty"`  // since then
	Moved  Moment  `json:"moved,omitzero"`   // the last move
	Every  float64 `json:"every,omitempty"`  // seconds between the last two moves
	Before float64 `json:"before,omitempty"` // seconds between the two before
}

// owned is what a poll finds of a live owner.
type owned struct {
	leases  int
	lag     float64 // LSNs
	arrival float64 // LSNs per second
	behind  bool    // whether one of its partitions is
	every   float64 // most seconds between two moves of one of its partitions
	moved   int     // leases that it has got or lost since the last poll
	done    int64   // LSNs since the last poll
	moves   int     // positions that moved since then
	whole   bool    // whether each of its leases was read at this poll
}

// rates measures how fast changes arrive, and how much one partition and one replica can do.
func (s *steps) rates() {
	owners, lost := make(map[string]*owned), make(map[string]int)
	var names []string // of the owners, by their first partition: sums are to be the same each time
	var arrival *float64
	s.flows = make([]Flow, len(s.Lag.Partitions))
	now := MomentOf(s.Lag.Time)
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		last, seen := s.Memory.Progress[p.Lease]
		f := &s.flows[i]
		*f = last.Flow
		live := s.live(p)
		var o *owned
		if live {
			if o = owners[p.Owner]; o == nil {
				o = &owned{whole: true}
				owners[p.Owner] = o
				names = append(names, p.Owner)
			}
			o.leases++
			if p.Owner != last.Owner {
				o.moved++
			}
		}
		if p.Owner != last.Owner {
			lost[last.Owner]++
		}
		if p.Lag == nil || p.Carried() || p.SessionLSN == nil {
			if live {
				o.whole = false
			}
			continue
		}
		if span := now.Sub(last.Time); seen && last.SessionLSN != 0 && span > 0 {
			came := float64(max(0, *p.SessionLSN-last.SessionLSN)) / span.Seconds()
			f.arrived(came, span)
			if arrival == nil {
				arrival = new(float64)
			}
			*arrival += came
		}
		moved := f.follow(p, last, live, now)
		if live {
			o.lag += float64(*p.Lag)
			o.arrival += f.Long
			o.behind = o.behind || f.Behind
			o.every = max(o.every, f.usually())
			if moved > 0 && p.Owner == last.Owner {
				o.done += moved
				o.moves++
			}
		}
	}
	for name, o := range owners {
		o.moved += lost[name]
	}
	s.next.Arrival = arrival
	s.measureArrivals()
	s.measureOwners(owners, names)
	s.started()
}

// arrived takes a rate over some time into the means. The first one counts in full.
func (f *Flow) arrived(rate float64, span time.Duration) {
	f.Last = rate
	if !f.Known {
		f.Short, f.Long, f.Known = rate, rate, true
		return
	}
	f.Short += weight(span, shortMean) * (rate - f.Short)
	f.Long += weight(span, longMean) * (rate - f.Long)
}

// weight is that of the newest value in an exponential mean over some time.
func weight(span, mean time.Duration) float64 {
	return 1 - math.Exp(-max(0, span.Seconds())/mean.Seconds())
}

// usually is the time between two moves, in seconds: the shorter of the last two, so that one pause is
// not taken for a long batch.
func (f *Flow) usually() float64 { return min(f.Every, f.Before) }

// follow takes in where a position is at this poll, and returns by how much it has moved.
//
// Its owner keeps up where each batch ends behind all that was pending when the batch was read, which
// is when the one before ended.
func (f *Flow) follow(p *changefeed.Partition, last Progress, live bool, now Moment) (moved int64) {
	if !live || p.Owner != last.Owner {
		f.Reach = last.SessionLSN // whoever takes the lease reads all that is pending
		f.Since = 0
	}
	if p.CheckpointLSN != nil && last.CheckpointLSN != 0 {
		moved = max(0, *p.CheckpointLSN-last.CheckpointLSN)
	}
	if moved > 0 {
		if f.Reach > 0 {
			f.Behind = *p.CheckpointLSN+slackLSNs < f.Reach
		}
		f.Reach = last.SessionLSN
		if f.Before, f.Every = f.Every, 0; !f.Moved.IsZero() {
			f.Every = now.Sub(f.Moved).Seconds()
		}
		f.Moved = now
	}
	late := max(lateAfter, time.Duration(lateRatio*f.usually()*float64(time.Second)))
	f.Behind = p.Pending() && (f.Behind || !live || !f.Moved.IsZero() && now.Sub(f.Moved) > late)
	switch {
	case !f.Behind || !live:
		f.Since = 0
	case moved > 0 && f.Since.IsZero():
		f.Since, f.From, f.Moves = now, *p.CheckpointLSN, 0
	case moved > 0:
		f.Moves++
	}
	return moved
}

// measureArrivals measures how uneven arrivals are, and the delay that changes have while the owners
// keep up. A longer delay than that is taken for a backlog, and counts slowly.
func (s *steps) measureArrivals() {
	r := &s.next.Rates
	var lag, last, long float64
	for i, f := range s.flows {
		if p := &s.Lag.Partitions[i]; p.Lag != nil && !p.Carried() && f.Known && !f.Behind {
			lag, last, long = lag+float64(*p.Lag), last+f.Last, long+f.Long
		}
	}
	if long <= 0 {
		return
	}
	span := s.Lag.Time.Sub(r.At)
	delay, mean := lag/long, longMean
	if delay > r.Standing {
		delay, mean = min(delay, standingRatio*r.Standing+standingRise), standingMean
	}
	r.Standing += weight(span, mean) * (delay - r.Standing)
	r.Uneven += weight(span, unevenMean) * (min(1, math.Abs(last-long)/long) - r.Uneven)
	r.At = s.Lag.Time
}

// explained is how much may be pending at so many owners, where so many changes arrive per second,
// and be no backlog: what waits for its turn anyway, and what the threshold allows. A handler whose
// batches take long, with so many seconds between its moves, has as much in hand at all times.
func (s *steps) explained(arrival float64, owners int, every float64) float64 {
	waits := s.next.Rates.Standing
	if every > longBatch {
		waits = max(waits, every)
	}
	usual := standingRatio*waits*arrival + slackLSNs
	if s.Policy.Sizing != SizingAuto {
		return usual // the threshold has asked for its replicas already
	}
	return max(usual, float64(s.Policy.Threshold)*float64(owners+1))
}

// measureOwners measures what a replica can do. What an owner does is all that it can where it has had
// a backlog all the time, unless it is its partitions that limit it; else it is a lower bound.
func (s *steps) measureOwners(owners map[string]*owned, names []string) {
	r := &s.next.Rates
	works := make(map[string]Work, len(owners))
	doing := make(map[string]float64) // by owner, where that can be told
	var exact, least, done float64
	samples, tooHigh := 0, usualError
	if s.proven() {
		tooHigh = highestError // what was seen exactly is not to drift with the highest of many errors
	}
	for name, o := range owners {
		if w, known := s.Memory.Rates.Owners[name]; known && o.whole {
			span, moves := s.Lag.Time.Sub(w.Since), w.Moves+o.moves
			if span >= shortestWindow && float64(moves) >= windowMoves*math.Sqrt(float64(o.leases)) {
				doing[name] = float64(w.Done+o.done) / span.Seconds()
			}
		}
	}
	limiting := s.measurePartitions(doing)
	working := 0 // owners whose positions moved, of which something is pending still
	for _, name := range names {
		o := owners[name]
		done += float64(o.done)
		if o.moves > 0 && o.lag > 0 && !s.Memory.Rates.LookedAt.IsZero() && s.Lag.Time.After(s.Memory.Rates.LookedAt) {
			working++
		}
		busy := o.behind || o.every > 0 && o.lag > s.explained(o.arrival, 1, o.every)
		w, known := s.Memory.Rates.Owners[name]
		if !known || !o.whole {
			works[name] = Work{Since: s.Lag.Time, Busy: busy}
			continue
		}
		w.Done += o.done
		w.Moves += o.moves
		w.Moved += o.moved
		span, leases := s.Lag.Time.Sub(w.Since), math.Sqrt(float64(o.leases))
		if rate, told := doing[name]; told && o.moves > 0 {
			least = max(least, rate*(1-tooHigh*leases/float64(w.Moves)))
			if w.Busy && busy && span >= shortestBusy && w.Moved <= max(1, o.leases/8) && !(limiting && o.behind && rate < limitShare*s.next.DrainPerReplica) {
				exact += rate
				samples++
			}
		}
		if busy != w.Busy || span > longestWindow || w.Moved > max(1, o.leases/8) && span >= shortestBusy {
			w = Work{Since: s.Lag.Time, Busy: busy}
		}
		works[name] = w
	}
	if span := s.Lag.Time.Sub(s.Memory.Rates.LookedAt); !s.Memory.Rates.LookedAt.IsZero() && span > 0 {
		r.Drained += weight(span, drainedMean) * (done/span.Seconds() - r.Drained)
	}
	replica := &s.next.DrainPerReplica
	if samples > 0 {
		exact /= float64(samples)
		if !r.ProvenAt.IsZero() {
			exact = *replica + weight(drainStep, drainMean)*(exact-*replica)
		}
		if !r.ProvenAt.IsZero() {
			r.Proof += min(drainStep, s.Now.Sub(r.ProvenAt)).Seconds()
		}
		*replica, r.ProvenAt = exact, s.Now
	}
	if working > 0 {
		r.Glimpse = done / s.Lag.Time.Sub(s.Memory.Rates.LookedAt).Seconds() / float64(working)
	}
	r.LookedAt = s.Lag.Time
	*replica = max(*replica, least)
	r.Owners = works
}

// proven reports whether an owner was lately seen to do all it can.
func (s *steps) proven() bool {
	at := s.next.Rates.ProvenAt
	return !at.IsZero() && s.Now.Sub(at) < provenFor
}

// measurePartitions measures the most that is done of one partition, given what the owners do. It is the
// partition that limits its owner where that could do more, time and again, and this is about as much as
// was ever seen. It reports whether that is so.
func (s *steps) measurePartitions(doing map[string]float64) (limiting bool) {
	r, now := &s.next.Rates, MomentOf(s.Lag.Time)
	var highest, kept, limited float64 // the most that was done of one that was behind, of one that was not, and by an owner that could do more
	for i := range s.Lag.Partitions {
		p, f := &s.Lag.Partitions[i], &s.flows[i]
		if f.Known && !f.Behind && f.Before > 0 && s.live(p) {
			kept = max(kept, min(f.Short, f.Long))
		}
		span := now.Sub(f.Since)
		if f.Since.IsZero() || f.Moves < windowMoves || span < shortestWindow || p.CheckpointLSN == nil {
			continue
		}
		rate := float64(*p.CheckpointLSN-f.From) / span.Seconds()
		if owner, known := doing[p.Owner]; known && owner < limitShare*s.next.DrainPerReplica && rate >= limitShare*r.Partition {
			limiting, limited = true, max(limited, owner)
		}
		highest = max(highest, rate)
		if span > longestWindow {
			f.Since, f.From, f.Moves = now, *p.CheckpointLSN, 0
		}
	}
	switch {
	case highest > r.Partition/limitShare:
		r.Partition, r.PartitionPolls = highest, 0
	case kept > r.Partition && s.partitionLimits(): // more is done of one than was taken for the limit
		r.Partition, r.PartitionPolls = kept, 0
	case limiting:
		r.Partition += weight(drainStep, drainMean) * (highest - r.Partition)
		r.PartitionPolls, r.Limited = r.PartitionPolls+1, limited
	}
	return limiting || s.partitionLimits()
}

// partitionLimits reports whether it is known that partitions limit their owners. Where a replica turns
// out to do no more than an owner that was taken to be limited, it was the replica that was slow.
func (s *steps) partitionLimits() bool {
	r := &s.next.Rates
	return r.PartitionPolls >= limitPolls && max(r.Partition, r.Limited) < limitShare*s.next.DrainPerReplica
}

// until is Memory.until for the rates. A window that a clock which was ahead has begun, or has counted
// into, begins anew; what is known until a time ahead is known no more.
func (r Rates) until(now time.Time) Rates {
	r.At, r.LookedAt, r.ProvenAt = earlier(r.At, now), earlier(r.LookedAt, now), earlier(r.ProvenAt, now)
	r.Backlog.Since, r.Trial.At, r.StartUp.At = earlier(r.Backlog.Since, now), earlier(r.Trial.At, now), earlier(r.StartUp.At, now)
	r.Level.Since, r.Level.Needed = earlier(r.Level.Since, now), earlier(r.Level.Needed, now)
	r.Backlog.Until, r.Trial.Until = earlier(r.Backlog.Until, now.Add(notEnough)), earlier(r.Trial.Until, now.Add(longestHold))
	owners := make(map[string]Work, len(r.Owners))
	for name, w := range r.Owners {
		if !w.Since.After(now) {
			owners[name] = w
		}
	}
	r.Owners = owners
	return r
}
