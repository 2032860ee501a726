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
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	window        = 45 * time.Second  // shortest time over which a rate is measured: three polls, so that one busy poll is no trend
	longMean      = 4 * time.Minute   // mean of arrivals that evens out bursts of a minute
	jump          = 1.3               // factor over the long mean above which the latest arrivals count: means take minutes to follow
	feedPollDelay = 5 * time.Second   // the SDKs' default: up to this age, a change only waits for the next look
	patience      = 3 * feedPollDelay // age that is normal if the owner keeps up: one look may be missed, and the poll is late
	batchKept     = 0.8               // share of a batch's length that is expected of the next: a poll may see a long one as short
	provenFor     = 4 * time.Hour     // how long a measured capacity counts at most: handlers and databases change within hours
	regain        = 30 * time.Minute  // mean over which a capacity returns to the best one: a database is often slow for about as long
	firstHour     = time.Hour         // from the first poll, or an upgrade, in which scale-ins are slow: a slow hour of the load may not have come yet
	spare         = 0.1               // share of its capacity that a replica keeps free at a scale-in: arrivals vary by about as much
	worth         = 0.2               // share of the fullest owner's work that a doubling must take over: else new replicas would be idle
	slowScaleIn   = 2.0 / 3           // share of the replicas that stays at a scale-in while the capacity is not proven: it may be too low
	levelHeld     = 9 * time.Minute   // how long a slightly lower count must be enough: the period of short waves in a load
	effective     = 0.1               // share of the expected gain that a scale-out must bring: rates vary by about as much
	settling      = 3 * time.Minute   // from a scale-out until leases have moved and the rates show it
	notAgain      = 15 * time.Minute  // how long a scale-out that did not help is not repeated: databases recover within minutes
)

// Input is everything that a size depends on. Rates are in LSNs per second.
type Input struct {
	Now             time.Time
	Lag             changefeed.ProcessorLag // assessed by package health, with at least one known partition
	Replicas        int                     // of the last decision; 0 also if there was none
	Threshold       int                     // count of step 2; 0 = inactive: rates are measured, and no count is computed
	Capacity        float64                 // LSNs per second of a replica, from the last Answer; 0 = unknown
	CatchUpWithin   time.Duration           // time in which a backlog should be drained; 0 = no limit
	Even            bool                    // only counts that divide the number of partitions are used
	LeaseExpiration time.Duration           // an owner is live if it renewed a lease within this time
	Partial         bool                    // too much is unknown to scale in
	Memory          Memory                  // of the last Answer; zero for the first
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
	m.Began = cmp.Or(m.Began, in.Now)
	loads, arrival, latest := in.loads(&m)
	a := Answer{Arrival: arrival, Capacity: in.capacity(&m, loads)}
	m.Time = in.Lag.Time
	if a.Known = a.Capacity > 0 && m.Known && in.Threshold > 0 && len(loads) > 0; a.Known {
		in.answer(&a, &m, in.demand(loads, m.Short, latest, a.Capacity))
	}
	a.Memory = m
	return a
}

// demand is what the partitions ask of their owners.
type demand struct {
	arrival  float64 // LSNs per second, over all partitions
	backlog  float64 // LSNs
	keepUp   work    // arrivals
	catchUp  work    // arrivals, and the backlog within CatchUpWithin; of no partition more than one replica does
	heaviest load    // the partition with most arrivals
	urgent   bool    // a change has waited too long, or arrivals have jumped
}

// work is in LSNs per second: of all partitions, and of the one with most.
type work struct{ total, most float64 }

func (w *work) add(partition float64) { w.total, w.most = w.total+partition, max(w.most, partition) }

// fullest returns the work of the owner of the partition with most, if n replicas share the leases evenly by
// count.
func (w work) fullest(n, partitions int) float64 {
	leases := (partitions + n - 1) / n
	return w.most + float64(leases-1)*(w.total-w.most)/float64(max(1, partitions-1))
}

// demand adds arrivals and backlogs. Arrivals are the greater of the two means and, after a jump,
// the latest value. No partition needs more than one replica.
func (in Input) demand(loads []load, short, latest, capacity float64) (d demand) {
	long := 0.0
	for _, l := range loads {
		long += l.Arrival
	}
	d.arrival = max(short, long)
	if d.urgent = latest > jump*long+1; d.urgent { // + 1: a few changes are no trend
		d.arrival = max(d.arrival, latest)
	}
	for _, l := range loads {
		if l.of.Stuck || l.of.Wakes() == changefeed.StatusUncheckpointed { // only its owner can help
			continue
		}
		l.Arrival *= d.arrival / cmp.Or(long, 1)
		ask := l.Arrival
		d.keepUp.add(ask)
		if in.CatchUpWithin > 0 {
			ask += l.backlog / in.CatchUpWithin.Seconds()
		}
		d.catchUp.add(min(ask, capacity))
		d.backlog, d.urgent = d.backlog+l.backlog, d.urgent || l.waited
		if l.Arrival >= d.heaviest.Arrival {
			d.heaviest = l
		}
	}
	return d
}

// fewest returns the smallest count that is enough in two ways, with leases spread evenly by count:
// for all partitions together, and for the owner of the one that asks for most. If no count is enough for
// that owner, it returns one with which the owner keeps up, or a further replica relieves it too little.
func (in Input) fewest(d demand, capacity float64) (best int) {
	partitions, least, keptUp := len(in.Lag.Partitions), math.Inf(1), false
	for n := 1; n <= partitions; n++ {
		room := capacity
		if n < in.Replicas {
			room *= 1 - spare
		}
		if least <= room {
			break
		}
		if d.catchUp.total > float64(n)*room && n < partitions {
			continue
		}
		fullest, keepsUp := d.catchUp.fullest(n, partitions), d.keepUp.fullest(n, partitions) <= room
		if best == 0 || keepsUp && !keptUp || fullest <= least*(1-worth*float64(n-best)/float64(best)) {
			best, least = n, fullest
		}
		keptUp = keepsUp
	}
	return best
}

// answer decides which count to ask for.
func (in Input) answer(a *Answer, m *Memory, d demand) {
	a.Needed = in.fewest(d, a.Capacity)
	// If a capacity asks for more replicas than step 2, it has to be proven again sooner.
	counts := provenFor.Seconds() * min(1, float64(in.Threshold)/float64(a.Needed))
	proven, atLeast := in.Now.Sub(m.ProvenAt).Seconds() < counts, ""
	if !proven {
		atLeast = " at least"
	}
	why := fmt.Sprintf("needs %d: %.3g/s arrive and %.0f have waited; one replica does%s %.3g/s", a.Needed, d.arrival, d.backlog, atLeast, a.Capacity)
	if proven && d.heaviest.Arrival >= a.Capacity {
		why += fmt.Sprintf("; partition %s alone brings %.3g/s: more replicas do not help, spread its partition key", d.heaviest.of.Lease, d.heaviest.Arrival)
	}
	a.ask(a.Needed, "sizing", "%s", why)
	enough := in.Threshold
	if !d.urgent && in.Threshold <= 2*in.Replicas {
		enough = min(enough, in.Replicas)
	}
	if !proven && enough < a.Replicas {
		a.ask(enough, "sizing", "a replica may do more than was seen: the lower count of step 2 is enough")
	}
	if most := max(in.Replicas, 2*in.Threshold); a.Replicas > most {
		a.ask(most, "sizing", "a scale-out asks for no more than twice the count of step 2")
	}
	in.level(a, m)
	least := min(in.Replicas-1, int(math.Ceil(slowScaleIn*float64(in.Replicas))))
	for in.Even && least > a.Replicas && len(in.Lag.Partitions)%least != 0 {
		least-- // evenPartitions would raise it again
	}
	if (!proven || in.Now.Sub(m.Began) < firstHour) && a.Replicas < least {
		a.ask(least, "sizing", "what a replica does is not proven, or sizing began within the hour: a scale-in leaves two thirds")
	}
	in.notEffective(a, m, d)
}

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
	if enough := in.Now.Sub(m.Enough); 2*a.Replicas > in.Replicas && enough < levelHeld {
		a.ask(in.Replicas, "level", "%d would do, for %s of %s: what was needed may be needed again", a.Replicas, enough.Round(time.Second), levelHeld)
	}
}

// notEffective judges the last scale-out, or starts to watch this one. A scale-out that did not
// help is undone and not repeated for a while.
func (in Input) notEffective(a *Answer, m *Memory, d demand) {
	s, settled := &m.ScaleOut, in.Now.Sub(m.ScaleOut.At) >= settling
	live := len(m.Owners) >= in.Replicas
	switch {
	case in.Now.Before(s.Until):
	case !s.Until.IsZero(), !s.At.IsZero() && d.backlog == 0, settled && in.Replicas <= s.From:
		*s = ScaleOut{} // the hold is over, or the scale-out was enough, or it is undone
	case s.At.IsZero():
		if a.Replicas > in.Replicas && in.Replicas > 0 && live && d.backlog > 0 && m.Done > 0 {
			// After a pause m.Done is low, and any later rate would look like a gain.
			*s = ScaleOut{At: in.Now, From: in.Replicas, Rate: max(m.Done, min(m.Short, float64(in.Replicas)*a.Capacity)), Backlog: d.backlog}
		}
	case settled && live:
		due := s.Rate * float64(in.Replicas-s.From) / float64(s.From)
		if 2*d.backlog <= s.Backlog || m.Done-s.Rate >= effective*due {
			*s = ScaleOut{}
		} else {
			s.Until, m.ProvenAt = in.Now.Add(notAgain), time.Time{}
		}
	}
	if in.Now.Before(s.Until) && a.Replicas > s.From {
		a.ask(s.From, "notEffective", "more than %d replicas did no more than %d (%.3g/s): %d are not asked for before %s; look at what the handler waits for",
			s.From, s.From, s.Rate, a.Replicas, s.Until.UTC().Format("15:04"))
	}
}

// ask sets the count, and says why.
func (a *Answer) ask(replicas int, step, why string, args ...any) {
	a.Replicas = replicas
	a.Reasons = append(a.Reasons, Reason{Step: step, Replicas: replicas, Why: fmt.Sprintf(why, args...)})
}
