// Package sizing computes from measured rates how many replicas a processor needs: step 3 of
// docs/decide.md, which has the formula and a worked example.
//
// It measures three things from poll to poll: what arrives, what one replica can do (capacity.go),
// and what waits (arrival.go). This file turns them into a number. It is pure, and knows nothing of
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
	spare       = 0.1              // share of its capacity that a replica keeps free: what arrives varies by about as much from poll to poll
	uncertainty = 0.05             // share by which a capacity may be wrong: so much more replicas have to relieve the fullest one
	startUp     = 45 * time.Second // from a decision until its replicas work: a pod's start, and its first look for leases
	slowScaleIn = 2.0 / 3          // of the replicas stay at a scale-in that no proven capacity supports
	slowFor     = time.Hour        // after the first measurement, in which every scale-in is slow: a day's pattern is not known yet
	levelHeld   = 6 * time.Minute  // for which a slightly lower count has to be enough: the period of short waves in a load
)

// Input is everything that a size depends on. Rates are in LSNs per second.
type Input struct {
	Now             time.Time
	Lag             changefeed.ProcessorLag // as assessed, with at least one known partition
	Replicas        int                     // of the last decision; 0 = none, or there was none
	Owners          int                     // live ones, of the leases
	MaxReplicas     int                     // that there can be; at least 1
	Threshold       int                     // replicas that step 2 asks for; 0 = the processor is inactive: it is measured alone
	Capacity        float64                 // of a replica, as the last Answer has it; 0 = unknown
	CatchUpWithin   time.Duration           // in which a backlog should be gone; 0 = it may stay
	LeaseExpiration time.Duration           // an owner is live while its lease was renewed within this time
	Partial         bool                    // too much is unknown to scale in
	Memory          Memory                  // of the last Answer; zero for the first
}

// Answer is how many replicas the measured rates need, and what the next one needs to know.
type Answer struct {
	Known    bool     // the rates are known; else Replicas and Needed mean nothing
	Needed   int      // replicas that the formula yields
	Replicas int      // replicas to ask for: Needed, or what step 2, a trial or a slow scale-in leaves of it
	Reasons  []Reason // why; the first one is of the formula
	Arrival  *float64 // that arrived since the last poll, over all partitions; nil if that cannot be told
	Capacity float64  // of a replica, or a lower bound of it; 0 = unknown
	Memory   Memory
}

// Reason is one step that had a say, with the replicas after it.
type Reason struct {
	Step     string
	Replicas int
	Why      string
}

// Size measures, and answers. The same Input always gets the same Answer; it is not changed.
func Size(in Input) Answer {
	m := in.Memory
	if m.Began.IsZero() {
		m.Began = in.Now
	}
	loads, arrival := in.arrivals(&m)
	a := Answer{Arrival: arrival, Capacity: in.capacity(&m, loads)}
	a.Known = a.Capacity > 0 && m.Known && in.Threshold > 0 && len(loads) > 0
	if a.Known {
		in.answer(&a, &m, in.demand(loads, &m, a.Capacity))
	}
	a.Memory = m
	return a
}

// demand is what the partitions ask of their owners.
type demand struct {
	asks     []float64 // of the partitions that one replica can serve, the highest first
	outrun   []load    // partitions of which more arrives than one replica does
	arrival  float64
	backlog  float64
	waited   bool // an owner has fallen behind
	jumped   bool // arrivals have jumped
	capacity float64
	count    int // partitions
	current  int // replicas, at least 1
}

// demand joins arrivals and backlogs. Arrivals are the greater of the two means and, if they jumped,
// of the latest value. A stalled partition asks for nothing beyond its owner.
func (in Input) demand(loads []load, m *Memory, capacity float64) demand {
	d := demand{arrival: max(m.Short, m.Long), capacity: capacity, count: len(loads), current: max(1, in.Replicas)}
	if d.jumped = m.Latest > jump*m.Long+jumpLeast; d.jumped {
		d.arrival = max(d.arrival, m.Latest)
	}
	scale := 1.0
	if m.Long > 0 {
		scale = d.arrival / m.Long
	}
	late := max(0, d.arrival-float64(in.Replicas)*capacity) * startUp.Seconds() // arrives until more replicas work
	for _, l := range loads {
		l.arrival *= scale
		if l.excluded {
			continue
		}
		d.backlog += l.backlog
		d.waited = d.waited || l.waited
		if l.arrival >= capacity && m.proven(in.Now) {
			d.outrun = append(d.outrun, l)
			continue
		}
		ask := l.arrival
		if d.arrival > 0 {
			l.backlog += late * l.arrival / d.arrival
		}
		if in.CatchUpWithin > 0 {
			ask += l.backlog / in.CatchUpWithin.Seconds()
		}
		d.asks = append(d.asks, min(ask, capacity))
	}
	slices.SortFunc(d.asks, func(a, b float64) int { return cmp.Compare(b, a) })
	return d
}

// fewest returns the fewest replicas at which, with leases spread evenly by count, neither all
// partitions together nor the owner of the heaviest one ask for more than a replica can do.
func (d demand) fewest() int {
	total := float64(len(d.outrun)) * d.capacity
	for _, ask := range d.asks {
		total += ask
	}
	best, least := 0, math.Inf(1)
	for n := 1; n <= d.count; n++ {
		room := d.capacity
		if n < d.current {
			room *= 1 - spare
		}
		if total > float64(n)*room && n < d.count {
			continue
		}
		if full := d.fullest(n); full <= (1-uncertainty)*least {
			best, least = n, full
		}
		if least <= room {
			break
		}
	}
	return best
}

// fullest is what the owner of the heaviest partition gets with n replicas.
func (d demand) fullest(n int) float64 {
	if len(d.asks) == 0 {
		return 0
	}
	others := 0.0
	for _, ask := range d.asks[1:] {
		others += ask
	}
	leases := (d.count + n - 1) / n
	return d.asks[0] + float64(min(leases, len(d.asks))-1)*others/float64(max(1, len(d.asks)-1))
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
	m.Trial, a.Replicas = in.try(m, d, a)
	if in.Replicas == 0 {
		m.Enough = time.Time{}
		return
	}
	in.level(a, m)
	slow := (!proven || in.Now.Sub(m.Began) < slowFor) && !m.Trial.holds(in.Now)
	if least := min(in.Replicas-1, int(math.Ceil(slowScaleIn*float64(in.Replicas)))); slow && a.Replicas < least {
		a.Replicas = least
		a.because("sizing", "what a replica does is not proven for an hour yet: a scale-in leaves two thirds")
	}
}

// level holds the replicas until a lower count, but more than half of them, has been enough for a
// while: a load that stays about where one more replica is needed would otherwise start and stop it
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
	if 2*a.Replicas <= in.Replicas || enough >= levelHeld || m.Trial.holds(in.Now) {
		return
	}
	fewer := a.Replicas
	a.Replicas = in.Replicas
	a.because("level", "%d would do, for %s of %s: what was needed may be needed again", fewer, enough.Round(time.Second), levelHeld)
}

func (a *Answer) because(step, why string, args ...any) {
	a.Reasons = append(a.Reasons, Reason{Step: step, Replicas: a.Replicas, Why: fmt.Sprintf(why, args...)})
}

// why says what the formula saw.
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
	return text + fmt.Sprintf("; %s alone brings %.3g/s: more replicas do not help, spread its partition key", which, d.outrun[0].arrival)
}
