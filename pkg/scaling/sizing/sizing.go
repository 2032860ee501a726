// Package sizing computes from measured rates how many replicas a processor needs: step 3 of
// docs/decide.md, which has the formula and a worked example.
//
// It measures three things from poll to poll (measure.go): the arrivals, the capacity of a replica,
// and the backlog. This file turns them into a count. It is pure: it imports the domain, and no
// policies, events or stores. Start with [Size].
//
// The package is internal to the program: its API may change in any release.
package sizing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	// shortest time over which a rate is measured: three polls, so that one busy poll is no trend
	window   = 45 * time.Second
	longMean = 4 * time.Minute // mean of arrivals that evens out bursts of a minute
	// factor over the long mean at which only the latest arrivals count: the means would take
	// minutes to follow
	jump = 1.3
	// changes younger than this are normal for an owner that keeps up: three times the SDKs' feed
	// poll delay
	patience = 15 * time.Second
	// weight of the latest windows in the capacity: two of them make up three quarters of it
	follow = 0.5
	// how long a measured capacity counts, and how long a new memory does not know how the load
	// varies
	provenFor = time.Hour
	// share of its capacity that a replica keeps free at a scale-in: arrivals vary by about as much
	spare = 0.1
	// share of the fullest owner's work that a doubling must take over; otherwise the new replicas
	// would be idle
	worth = 0.2
	// from a decision until its replicas work: the start of a pod, and its first search for leases
	startUp = 45 * time.Second
	// share of the replicas that stays at a scale-in without a proven capacity
	slowScaleIn = 2.0 / 3
	// how long a slightly lower count must be enough: the period of short waves in a load
	levelHeld = 9 * time.Minute
	// standard deviations beyond which a difference is not chance: one in 80 still is
	chance    = 2.5
	effective = 0.1              // share of the expected gain that a scale-out must bring
	settling  = 3 * time.Minute  // from a scale-out until leases have moved and the rates show it
	notAgain  = 15 * time.Minute // how long a scale-out that did not help is not repeated
)

// Input is everything that a size depends on. Rates are in LSNs per second.
type Input struct {
	Now time.Time
	// assessed by package health, with at least one known partition
	Lag         changefeed.ProcessorLag
	Replicas    int // of the last decision; 0 also if there was none
	Owners      int // live owners of leases
	MaxReplicas int // upper bound, at least 1
	// count of step 2; 0 = the processor is inactive: rates are measured, and no count is computed
	Threshold       int
	Capacity        float64       // LSNs per second of a replica, from the last Answer; 0 = unknown
	CatchUpWithin   time.Duration // time in which a backlog should be drained; 0 = no limit
	Even            bool          // only counts that divide the number of partitions are used
	LeaseExpiration time.Duration // an owner is live if it renewed a lease within this time
	Partial         bool          // too much is unknown to scale in
	Memory          Memory        // of the last Answer; zero for the first
}

// Answer is how many replicas the measured rates need, with the memory for the next Answer.
type Answer struct {
	Known    bool     // the rates are known; otherwise Replicas and Needed mean nothing
	Needed   int      // result of the formula
	Replicas int      // to ask for: Needed, after the rules that follow the formula
	Reasons  []Reason // the first one explains the formula
	Arrival  *float64 // LSNs per second since the last poll, over all partitions; nil if unknown
	Capacity float64  // LSNs per second of a replica, or a lower bound; 0 = unknown
	Memory   Memory
}

// Reason is one step of a decision: its name in docs/decide.md, the replicas after it, and a
// sentence for the operator.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// Size computes how many replicas a processor needs, as docs/decide.md describes it. It is
// deterministic and does not change its Input.
func Size(in Input) Answer {
	m := in.Memory
	if m.Began.IsZero() {
		m.Began = in.Now
	}
	loads, arrival := in.loads(&m)
	a := Answer{Arrival: arrival, Capacity: in.capacity(&m, loads)}
	m.Time = in.Lag.Time
	if a.Known = a.Capacity > 0 && m.Known && in.Threshold > 0 && len(loads) > 0; a.Known {
		in.answer(&a, &m, in.demand(loads, &m, a.Capacity))
	}
	a.Memory = m
	return a
}

// demand is what the partitions need of their owners, in LSNs per second.
type demand struct {
	asks             []float64 // of each partition that needs something, highest first
	outrun           []load    // partitions with more arrivals than one replica can process
	arrival, backlog float64
	waited, jumped   bool // a change has waited too long; arrivals have jumped
	capacity         float64
	partitions       int
	current          int // replicas, at least 1
}

// demand adds arrivals and backlogs. Arrivals are the greater of the two means and, after a jump,
// the latest value. No partition needs more than one replica.
func (in Input) demand(loads []load, m *Memory, capacity float64) demand {
	d := demand{arrival: max(m.Short, m.Long), capacity: capacity, partitions: len(loads), current: max(1, in.Replicas)}
	if d.jumped = m.Latest > jump*m.Long+1; d.jumped { // + 1: a few changes are no trend
		d.arrival = max(d.arrival, m.Latest)
	}
	// arrives before more replicas work
	late := max(0, d.arrival-float64(in.Replicas)*capacity) * startUp.Seconds()
	for _, l := range loads {
		if l.excluded {
			continue
		}
		if m.Long > 0 {
			l.Arrival *= d.arrival / m.Long
		}
		d.backlog += l.backlog
		d.waited = d.waited || l.waited
		ask := l.Arrival
		if in.CatchUpWithin > 0 {
			ask += (l.backlog + late*l.Arrival/max(1, d.arrival)) / in.CatchUpWithin.Seconds()
		}
		d.asks = append(d.asks, min(ask, capacity))
		if l.Arrival >= capacity && m.proven(in.Now) {
			d.outrun = append(d.outrun, l)
		}
	}
	slices.SortFunc(d.asks, func(a, b float64) int { return cmp.Compare(b, a) })
	return d
}

// fewest returns the smallest count that is enough in two ways, with leases spread evenly by count:
// for all partitions together, and for the owner of the heaviest one. The second ignores partitions
// that outrun a replica: no other count helps their owners.
func (d demand) fewest() int {
	total := 0.0
	for _, ask := range d.asks {
		total += ask
	}
	shared := d.asks[min(len(d.outrun), len(d.asks)):]
	best, least := 0, math.Inf(1)
	for n := 1; n <= d.partitions; n++ {
		room := d.capacity
		if n < d.current {
			room *= 1 - spare
		}
		if least <= room {
			break
		}
		if total > float64(n)*room && n < d.partitions {
			continue
		}
		full := fullest(shared, (d.partitions+n-1)/n)
		if best == 0 || full <= least*(1-worth*float64(n-best)/float64(best)) {
			best, least = n, full
		}
	}
	return best
}

// fullest is the demand on the owner of the heaviest partition if it has so many leases.
func fullest(asks []float64, leases int) float64 {
	if len(asks) == 0 {
		return 0
	}
	others := 0.0
	for _, ask := range asks[1:] {
		others += ask
	}
	return asks[0] + float64(min(leases, len(asks))-1)*others/float64(max(1, len(asks)-1))
}

// answer decides which count to ask for.
func (in Input) answer(a *Answer, m *Memory, d demand) {
	proven := m.proven(in.Now)
	a.Needed = d.fewest()
	a.Replicas = a.Needed
	a.because("sizing", "%s", d.why(a.Needed, proven))
	enough := in.Threshold
	if !d.waited && !d.jumped && in.Threshold <= 2*in.Replicas {
		enough = min(enough, in.Replicas)
	}
	if !proven && enough < a.Replicas {
		a.Replicas = enough
		a.because("sizing", "a replica may do more than was seen: the lower count of step 2 is enough")
	}
	in.notEffective(a, m, d)
	if in.Replicas == 0 {
		m.Enough = time.Time{}
		return
	}
	in.level(a, m)
	slow := (!proven || in.Now.Sub(m.Began) < provenFor) && !m.ScaleOut.holds(in.Now)
	least := min(in.Replicas-1, int(math.Ceil(slowScaleIn*float64(in.Replicas))))
	for in.Even && least > a.Replicas && d.partitions%least != 0 {
		least-- // evenPartitions would raise it again
	}
	if slow && a.Replicas < least {
		a.Replicas = least
		a.because("sizing", "what a replica does is not proven for an hour yet: a scale-in leaves two thirds")
	}
}

// notEffective judges the last scale-out, or starts to watch this one. A scale-out that did not
// help is undone and not repeated for a while.
func (in Input) notEffective(a *Answer, m *Memory, d demand) {
	s, asked := m.ScaleOut, min(a.Replicas, in.MaxReplicas)
	switch {
	case s.holds(in.Now):
	case !s.Until.IsZero(), !s.At.IsZero() && d.backlog == 0:
		s = ScaleOut{} // the hold is over, or the scale-out was enough
	case s.At.IsZero():
		if asked > in.Replicas && in.Replicas > 0 && in.Owners >= in.Replicas && d.backlog > 0 && m.Done > 0 {
			s = ScaleOut{At: in.Now, From: in.Replicas, To: asked, Rate: m.Done}
		}
	case asked > s.To:
		s.At, s.To = in.Now, asked
	case in.Owners >= s.To && in.Now.Sub(s.At) >= settling:
		due := s.Rate * float64(s.To-s.From) / float64(s.From)
		// if nearly all arrivals are processed, there was no more to gain
		if m.Done < (1-effective)*d.arrival && m.Done-s.Rate < effective*due {
			s.Until = in.Now.Add(notAgain)
		} else {
			s = ScaleOut{}
		}
	}
	if m.ScaleOut = s; s.holds(in.Now) && a.Replicas > s.From {
		asked, a.Replicas = a.Replicas, s.From
		a.because("notEffective", "%d replicas did no more than %d (%.3g/s): %d are not asked for before %s; look at what the handler waits for",
			s.To, s.From, s.Rate, asked, s.Until.UTC().Format("15:04"))
	}
}

func (s ScaleOut) holds(now time.Time) bool { return now.Before(s.Until) }

// level holds the replicas until a lower count, but more than half of them, has been enough for
// levelHeld. Otherwise a load that varies around the limit of one replica would start and stop it
// every few minutes.
func (in Input) level(a *Answer, m *Memory) {
	switch {
	case in.Partial:
		return
	case a.Replicas >= in.Replicas:
		m.Enough = time.Time{}
		return
	case m.Enough.IsZero():
		m.Enough = in.Now
	}
	enough := in.Now.Sub(m.Enough)
	if 2*a.Replicas <= in.Replicas || enough >= levelHeld || m.ScaleOut.holds(in.Now) {
		return
	}
	fewer := a.Replicas
	a.Replicas = in.Replicas
	a.because("level", "%d would do, for %s of %s: what was needed may be needed again", fewer, enough.Round(time.Second), levelHeld)
}

func (a *Answer) because(step, why string, args ...any) {
	a.Reasons = append(a.Reasons, Reason{Step: step, Replicas: a.Replicas, Why: fmt.Sprintf(why, args...)})
}

// why explains the formula's inputs.
func (d demand) why(n int, proven bool) string {
	does := "one replica does"
	if !proven {
		does = "one replica does at least"
	}
	text := fmt.Sprintf("needs %d: %.3g/s arrive and %.0f have waited; %s %.3g/s", n, d.arrival, d.backlog, does, d.capacity)
	if len(d.outrun) == 0 {
		return text
	}
	which := "partition " + d.outrun[0].lease
	if more := len(d.outrun) - 1; more > 0 {
		which += fmt.Sprintf(" (and %d more)", more)
	}
	return text + fmt.Sprintf("; %s alone brings %.3g/s: more replicas do not help, spread its partition key", which, d.outrun[0].Arrival)
}
