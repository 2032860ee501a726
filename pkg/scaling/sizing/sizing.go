// Package sizing computes from measured rates how many replicas a processor needs: step 3 of
// docs/decide.md, which has the formula and a worked example.
//
// It measures three things from poll to poll (measure.go): what arrives, what one replica can do, and
// what has waited. This file turns them into a number. It is pure, and knows nothing of policies,
// events or stores. Start with [Rates.Size].
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
	window      = 45 * time.Second // for which a rate is measured, at least: three polls, so that one busy poll is no trend
	longMean    = 4 * time.Minute  // of arrivals: long enough to even out bursts of a minute
	jump        = 1.3              // times the long mean from which the latest arrivals count alone: the means would follow for minutes
	patience    = 15 * time.Second // age that an owner with short batches leaves no change: three times the SDKs' feed poll delay
	follow      = 0.5              // weight of the latest windows in the capacity: four fifths of a change count after two of them
	provenFor   = time.Hour        // for which a capacity counts once it was seen; as long, a new memory does not know how the load behaves
	spare       = 0.1              // share of its capacity that a replica keeps free at a scale-in: what arrives varies by about as much
	worth       = 0.2              // share of the fullest owner's work that as many replicas again have to take over: else they would stand idle
	startUp     = 45 * time.Second // from a decision until its replicas work: a pod's start, and its first look for leases
	slowScaleIn = 2.0 / 3          // of the replicas stay at a scale-in that nothing proven supports
	levelHeld   = 9 * time.Minute  // for which a slightly lower count has to be enough: the period of short waves in a load
	chance      = 2.5              // standard deviations beyond which a difference is none of chance: one in 80 is beyond it nevertheless
	effective   = 0.1              // share of what further replicas should have added that has to have come
	settling    = 3 * time.Minute  // from a scale-out until the leases are there and the rates show it
	notAgain    = 15 * time.Minute // for which a scale-out that did not help is not repeated
)

// Strategy computes how many replicas a processor needs. The same Input always gets the same Answer;
// it is not changed.
type Strategy interface {
	Size(Input) Answer
}

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
	Even            bool                    // only counts that divide the number of partitions are used
	LeaseExpiration time.Duration           // an owner is live while its lease was renewed within this time
	Partial         bool                    // too much is unknown to scale in
	Memory          Memory                  // of the last Answer; zero for the first
}

// Answer is how many replicas the measured rates need, and what the next one needs to know.
type Answer struct {
	Known    bool     // the rates are known; else Replicas and Needed mean nothing
	Needed   int      // replicas that the formula yields
	Replicas int      // replicas to ask for: Needed, or what the steps after the formula leave of it
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

// Rates is the Strategy of docs/decide.md.
type Rates struct{}

// Size measures, and answers.
func (Rates) Size(in Input) Answer {
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

// demand is what the partitions ask of their owners.
type demand struct {
	asks             []float64 // of each partition that asks for something, the highest first
	outrun           []load    // partitions of which more arrives than one replica does
	arrival, backlog float64
	waited, jumped   bool // a change has waited; arrivals have jumped
	capacity         float64
	partitions       int
	current          int // replicas, at least 1
}

// demand joins arrivals and backlogs. Arrivals are the greater of the two means and, if they jumped,
// of the latest value. No partition asks for more than one replica.
func (in Input) demand(loads []load, m *Memory, capacity float64) demand {
	d := demand{arrival: max(m.Short, m.Long), capacity: capacity, partitions: len(loads), current: max(1, in.Replicas)}
	if d.jumped = m.Latest > jump*m.Long+1; d.jumped { // a few changes are no trend
		d.arrival = max(d.arrival, m.Latest)
	}
	late := max(0, d.arrival-float64(in.Replicas)*capacity) * startUp.Seconds() // arrives until more replicas work
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

// fewest returns the fewest replicas at which, with leases spread evenly by count, neither all
// partitions together nor the owner of the heaviest one ask for more than a replica can do. What
// outruns a replica is left out of the second: its owner can do no more, whatever else it has.
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

// fullest is what the owner of the heaviest partition gets with so many leases.
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

// notEffective judges the last scale-out, or begins to watch this one. One that did not help is taken
// back, and not repeated for a while.
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
		if m.Done < (1-effective)*d.arrival && m.Done-s.Rate < effective*due { // what does all that arrives can do no more
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
	return text + fmt.Sprintf("; %s alone brings %.3g/s: more replicas do not help, spread its partition key", which, d.outrun[0].Arrival)
}
