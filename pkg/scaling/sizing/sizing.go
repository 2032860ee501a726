// Package sizing computes how many replicas a processor needs: step 3 of docs/decide.md, which has the formula
// and an example. It is pure, and imports the domain alone. Start with [Size]. The API may change in any release.
package sizing

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

const (
	window      = 45 * time.Second // shortest time over which a rate is measured: three polls, so that one busy poll is no trend
	longMean    = 4 * time.Minute  // mean of arrivals that evens out bursts of a minute
	jump        = 1.3              // factor over the long mean above which the latest arrivals count: means take minutes to follow
	patience    = 10 * time.Second // age that is normal if the owner keeps up: two looks of the SDKs, since one may be missed
	batchKept   = 0.8              // share of a batch's length that is expected of the next: a poll may see a long one as short
	longestWait = 2 * time.Minute  // age above which a long batch is no excuse: the batches of an owner that falls behind get longer
	asKnown     = 0.95             // share of a known capacity that counts as the same: if only more did, chance would raise it for ever
	spare       = 1.25             // times its arrivals that the busiest partition asks of its owner: with less it may never catch up, with more it asks for a fleet
	worth       = 0.1              // share of the fullest owner's work that a doubling must take over: else replicas would be idle
	lasting     = 0.9              // share of polls with waiting changes above which more replicas do not help: 0.8 takes away slow ones that do
	careful     = 3                // replicas of which a scale-in of the first hour takes one: little is known yet, and leases move
	levelHeld   = 9 * time.Minute  // how long a slightly lower count must be enough: the period of short waves in a load
	effective   = 0.1              // share of the expected gain that a scale-out must bring: rates vary by about as much
	settling    = 3 * time.Minute  // from a scale-out, or a further one, until leases have moved
	notAgain    = 15 * time.Minute // how long a scale-out that did not help is not repeated: databases recover within minutes
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
	Needed   int      // result of the formula; 0 = the rates are not known, and there are no Reasons
	Replicas int      // to ask for: Needed, after the rules that follow the formula
	Reasons  []Reason // the first one explains the formula
	Arrival  *float64 // LSNs per second since the last poll, over all partitions; nil if unknown
	Capacity float64  // LSNs per second of a replica, or a lower bound; 0 = unknown
	Memory   Memory
}

// Reason is one step of a decision, as docs/decide.md names it, with the replicas after it.
type Reason struct {
	Step     string `json:"step"`
	Replicas int    `json:"replicas"`
	Why      string `json:"why"`
}

// Memory is what an Answer leaves for the next one, as JSON. Rates are in LSNs per second.
type Memory struct {
	Time       time.Time            `json:"time,omitzero"`       // time of the last measurement
	Careful    time.Time            `json:"careful,omitzero"`    // until when a scale-in takes a third: nothing was known of a fleet at work
	Known      bool                 `json:"known,omitempty"`     // arrivals were measured at least once
	Short      float64              `json:"short,omitempty"`     // arrivals over all partitions, mean over 45 s
	Done       float64              `json:"done,omitempty"`      // processed by all live owners together, mean over 45 s
	Threshold  float64              `json:"threshold,omitempty"` // count of step 2, mean over an hour that begins at zero
	Waiting    float64              `json:"waiting,omitempty"`   // share of polls with waiting changes or a jump, mean over half an hour that begins at zero
	Proven     bool                 `json:"proven,omitempty"`    // owners were seen to work at their full rate; else the capacity is a bound
	Enough     time.Time            `json:"enough,omitzero"`     // since when fewer replicas are enough; zero = they are not
	ScaleOut   ScaleOut             `json:"scaleOut,omitzero"`   // the last one whose effect is not known yet
	Owners     map[string]Owner     `json:"owners,omitzero"`     // by name, live ones only
	Partitions map[string]Partition `json:"partitions,omitzero"` // by lease token
}

// Partition is the memory of one partition.
type Partition struct {
	Time       time.Time `json:"time,omitzero"`        // of its last measurement
	Known      bool      `json:"known,omitempty"`      // whether arrivals were measured
	Arrival    float64   `json:"arrival,omitempty"`    // mean over 4 minutes
	Session    int64     `json:"session,omitempty"`    // newest LSN at the last measurement
	Checkpoint int64     `json:"checkpoint,omitempty"` // LSN up to which changes were processed
	Waits      time.Time `json:"pending,omitzero"`     // first poll that found changes pending at this position; zero = nothing is
	Batch      float64   `json:"batch,omitempty"`      // seconds that a batch is expected to take; 0 = less than between two polls
}

// Owner is a window of a live owner: its work between two moves of its positions.
type Owner struct {
	Since   time.Time `json:"since,omitzero"`    // zero = none has begun
	Done    int64     `json:"done,omitempty"`    // LSNs
	Pending int64     `json:"pending,omitempty"` // LSNs when it began
	Largest int64     `json:"largest,omitempty"` // LSNs of its largest move
	Behind  bool      `json:"behind,omitempty"`  // at each poll, judged by ages
	Late    bool      `json:"late,omitempty"`    // at the last poll, by more than a batch may take
}

// ScaleOut is a scale-out whose effect is measured: replicas may share a limit, such as a database.
type ScaleOut struct {
	At    time.Time `json:"at,omitzero"`    // when the last replicas were added; zero = none
	From  int       `json:"from,omitempty"` // replicas before
	Rate  float64   `json:"rate,omitempty"` // processed by all owners before, in LSNs per second
	Until time.Time `json:"until,omitzero"` // until when it is not repeated; zero = it helped, or is not judged yet
}

// Size computes how many replicas a processor needs. It is deterministic and changes nothing of in.Memory.
func Size(in Input) Answer {
	m := in.Memory
	loads, arrival, latest := in.loads(&m)
	a := Answer{Arrival: arrival, Capacity: in.capacity(&m, loads)}
	if !m.Time.IsZero() { // the first count is left out: after a start it is high, and it would keep replicas for an hour
		m.Threshold = mean(m.Threshold, true, float64(in.Threshold), in.Lag.Time.Sub(m.Time), time.Hour)
	} else if len(m.Owners) > 0 { // after an upgrade, or with a lost State
		m.Careful = in.Now.Add(time.Hour)
	}
	if a.Capacity > 0 && m.Known && in.Threshold > 0 && len(loads) > 0 {
		in.answer(&a, &m, in.demand(loads, m.Short, latest, a.Capacity))
	} else {
		m.Waiting = 0
	}
	a.Memory, a.Memory.Time = m, in.Lag.Time
	return a
}

// load is the work of one partition, with its memory.
type load struct {
	Partition
	of      *changefeed.Partition
	rate    *float64 // LSNs per second that arrived since the last measurement; nil = unknown
	moved   int64    // LSNs that the position moved since then
	backlog float64  // LSNs that are older than an owner that keeps up would leave them
	waited  bool     // its oldest change is older than that
	late    bool     // it is older than the longest batch explains
}

// loads measures each partition. It returns LSNs that arrived per second, too: those measured (nil if none), and with
// what is expected of the other partitions.
func (in Input) loads(m *Memory) (loads []*load, arrived *float64, latest float64) {
	m.Partitions = make(map[string]Partition, len(in.Lag.Partitions))
	usual, known := 0.0, 0.0
	for i := range in.Lag.Partitions {
		p := &in.Lag.Partitions[i]
		l := &load{Partition: in.Memory.Partitions[p.Lease], of: p}
		if p.Lag != nil && !p.Carried() && p.SessionLSN != nil {
			l.read(in.Lag.Time)
		}
		loads = append(loads, l)
		if m.Partitions[p.Lease] = l.Partition; l.Known {
			usual, known = usual+l.Arrival, known+1
		}
	}
	for _, l := range loads {
		if !l.Known && known > 0 {
			l.Arrival = usual / known
		}
		if l.rate != nil {
			arrived = new(*cmp.Or(arrived, new(0.0)) + *l.rate)
		}
		latest += *cmp.Or(l.rate, &l.Arrival)
		if l.of.Lag != nil && l.of.Age != nil {
			l.late = float64(*l.of.Age) > longestWait.Seconds()
			keepsUp := min(longestWait.Seconds(), patience.Seconds()+2*l.Batch) // two: a change may come just after a batch began
			if l.waited = float64(*l.of.Age) > keepsUp; l.waited {
				l.backlog = max(0, float64(*l.of.Lag)-2*keepsUp*l.Arrival)
			}
		}
	}
	if arrived != nil {
		m.Short, m.Known = mean(m.Short, m.Known, latest, in.Lag.Time.Sub(m.Time), window), true
	}
	return loads, arrived, latest
}

// read updates the memory of the partition from a measurement.
func (l *load) read(now time.Time) {
	p, last := l.of, l.Partition
	if span := now.Sub(last.Time); !last.Time.IsZero() && span > 0 {
		l.rate = new(float64(max(0, *p.SessionLSN-last.Session)) / span.Seconds())
		l.Arrival, l.Known = mean(last.Arrival, last.Known, *l.rate, span, longMean), true
	}
	if l.Time, l.Session = now, *p.SessionLSN; p.CheckpointLSN == nil {
		return
	}
	l.Checkpoint = *p.CheckpointLSN
	l.moved = max(0, l.Checkpoint-cmp.Or(last.Checkpoint, l.Checkpoint))
	switch {
	case !p.Pending():
		l.Waits, l.Batch = time.Time{}, 0
	case l.moved > 0: // a batch has ended; if it also began since the last poll, earlier ones show its length
		l.Waits, l.Batch = now, batchKept*last.Batch
		if last.Waits.Before(last.Time) && !last.Waits.IsZero() {
			l.Batch = max(l.Batch, now.Sub(last.Waits).Seconds())
		}
	case l.Checkpoint < last.Checkpoint, last.Waits.IsZero(): // the position was set back, or changes have come
		l.Waits = now
	}
}

// capacity returns how many LSNs per second a replica can process: what owners did in windows in which they were always
// behind. Clearly less than was known is proven only if a change is late: no poll sees a batch that begins and ends between
// two of them, and an owner that keeps up looks as if it were behind. Else it is a lower bound, less a batch.
func (in Input) capacity(m *Memory, loads []*load) float64 {
	now, span := in.Lag.Time, in.Lag.Time.Sub(m.Time)
	polled, working, done := make(map[string]Owner), 0, 0.0 // each owner's work since the last poll
	for _, l := range loads {
		if !l.of.Live(in.Now, in.LeaseExpiration) {
			continue
		}
		o := polled[l.of.Owner]
		o.Done, o.Largest = o.Done+l.moved, max(o.Largest, l.moved)
		o.Behind, o.Late = o.Behind || l.waited, o.Late || l.late
		o.Pending += *cmp.Or(l.of.Lag, new(int64))
		polled[l.of.Owner], done = o, done+float64(l.moved)
	}
	// A batch that ends between two short polls may have begun long before: there the mean begins at zero.
	m.Done = mean(m.Done, m.Done > 0 || span < patience, done/max(1, span.Seconds()), span, window)
	m.Owners = make(map[string]Owner, len(polled))
	work, within, proofs, bound := int64(0), time.Duration(0), 0, in.Capacity
	for name, o := range polled {
		working += min(1, int(o.Done))
		next, w := in.Memory.Owners[name].add(now, o)
		if m.Owners[name] = next; w.Since.IsZero() {
			continue
		}
		took := now.Sub(w.Since)
		bound = max(bound, float64(w.Done-min(w.Largest, w.Pending))/took.Seconds()) // a part of one batch may have been done before
		if w.Behind && (w.Late || float64(w.Done)/took.Seconds() >= asKnown*in.Capacity) {
			work, within, proofs = work+w.Done, within+took, proofs+1
		}
	}
	if proofs > 0 {
		m.Proven = true
		rate := float64(work) / within.Seconds()
		// The rate counts by the share of owners that show it: batches of one may have begun before, or its leases have moved.
		return in.Capacity + (rate-in.Capacity)*float64(proofs)/float64(1+len(polled))
	}
	return cmp.Or(bound, m.Done/float64(max(1, working))) // until a window is full, the work between two polls
}

// add adds an owner's work since the last poll to its window. A full one begins and ends with a move of a position:
// else it misses what was done of long batches.
func (w Owner) add(now time.Time, o Owner) (next, full Owner) {
	if o.Done > 0 {
		next = Owner{Since: now, Pending: o.Pending, Behind: o.Behind}
	}
	if w.Since.IsZero() {
		return next, Owner{}
	}
	w.Done, w.Largest, w.Behind, w.Late = w.Done+o.Done, max(w.Largest, o.Largest), w.Behind && o.Behind, o.Late
	if o.Done == 0 || now.Sub(w.Since) < window {
		return w, Owner{}
	}
	return next, w
}

// mean updates an exponential mean. The first value counts in full.
func mean(last float64, known bool, value float64, span, over time.Duration) float64 {
	if !known {
		return value
	}
	return last + (1-math.Exp(-max(0, span.Seconds())/over.Seconds()))*(value-last)
}

// demand is what the partitions ask for in LSNs per second, none for more than one replica can do.
type demand struct {
	arrival float64 // over all partitions
	backlog float64 // LSNs
	total   float64 // of all partitions
	fullest float64 // of the partition that asks for most of its owner, of those that bring less than a replica does
	outruns *load   // the partition with most arrivals of those that bring more than a replica does; nil = none
	urgent  bool    // a change has waited too long, or arrivals have jumped
}

// demand sums up. Arrivals are the greater of the two means or, after a jump, the latest value.
func (in Input) demand(loads []*load, short, latest, capacity float64) (d demand) {
	long, within := 0.0, cmp.Or(in.CatchUpWithin.Seconds(), math.Inf(1))
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
		ask := min(capacity, l.Arrival+l.backlog/within)
		d.total += ask
		if l.Arrival < capacity {
			d.fullest = max(d.fullest, min(ask, spare*l.Arrival))
		} else if d.outruns == nil || l.Arrival > d.outruns.Arrival {
			d.outruns = l
		}
		d.backlog, d.urgent = d.backlog+l.backlog, d.urgent || l.waited
	}
	return d
}

// fewest returns the smallest count that is enough for all partitions together. Replicas are added until it is enough for
// the fullest owner, too, as long as they take enough from that owner.
func (in Input) fewest(d demand, capacity float64) (best int) {
	partitions, least := len(in.Lag.Partitions), math.Inf(1)
	for n := 1; n <= partitions && least > capacity; n++ {
		others := float64((partitions+n-1)/n-1) / float64(max(1, partitions-1)) // share of the others that the fullest owner has: the mean
		fullest := d.fullest + others*(d.total-d.fullest)
		switch {
		case d.total > float64(n)*capacity && n < partitions:
		case best == 0, fullest <= least*(1-worth*float64(n-best)/float64(best)):
			best, least = n, fullest
		}
	}
	return best
}

// answer decides which count to ask for.
func (in Input) answer(a *Answer, m *Memory, d demand) {
	a.Needed = in.fewest(d, a.Capacity)
	does := map[bool]string{true: "does", false: "does at least"}[m.Proven]
	why := fmt.Sprintf("needs %d: %.3g/s arrive and %.0f have waited; one replica %s %.3g/s",
		a.Needed, d.arrival, d.backlog, does, a.Capacity)
	if m.Proven && d.outruns != nil {
		why += fmt.Sprintf("; partition %s alone brings %.3g/s: no number of replicas is enough, spread its partition key",
			d.outruns.of.Lease, d.outruns.Arrival)
	}
	a.ask(a.Needed, "sizing", "%s", why)
	waits, times := map[bool]float64{true: 1}[d.urgent], 2 // a capacity that was measured too low asks for more
	limit, allowed := in.Threshold, "while no change has waited for long, no more than step 2 asks for"
	if m.Waiting = mean(m.Waiting, true, waits, in.Lag.Time.Sub(m.Time), time.Hour/2); m.Waiting > lasting {
		times, allowed = 1, "changes have waited at nearly every poll for an hour, whatever the replicas: no more than step 2 asks for"
	}
	if may := min(in.Replicas, int(math.Ceil(float64(times)*m.Threshold))); may > limit {
		limit, allowed = may, fmt.Sprintf("no more than now, nor than %d × the mean of step 2 over an hour", times)
	}
	if may := times * in.Threshold; d.urgent && may > limit {
		limit, allowed = may, "while changes have waited for long, or suddenly more arrive, no more than twice what step 2 asks for"
	}
	if !m.Proven {
		limit, allowed = in.Threshold, "a replica may do more than was seen: the lower count of step 2 is enough"
		if !d.urgent && in.Replicas < limit && limit <= 2*in.Replicas {
			limit, allowed = in.Replicas, "a replica may do more than was seen, and no change has waited for long: no more than now"
		}
	}
	if a.Replicas > limit {
		a.ask(limit, "sizing", "%s", allowed)
	}
	if a.Replicas >= in.Replicas && !in.Partial {
		m.Enough = time.Time{}
	} else if !in.Partial {
		m.Enough = cmp.Or(m.Enough, in.Now)
		if held := in.Now.Sub(m.Enough); 2*a.Replicas > in.Replicas && held < levelHeld {
			a.ask(in.Replicas, "level", "%d would do, for %s of %s: what was needed may be needed again",
				a.Replicas, held.Round(time.Second), levelHeld)
		}
	}
	part, parts := 2, "half"
	if in.Now.Before(m.Careful) {
		part, parts = careful, "a third in the first hour with a fleet at work"
	}
	least := min(in.Replicas-1, in.Replicas-in.Replicas/part)
	for in.Even && least > a.Replicas && len(in.Lag.Partitions)%least != 0 {
		least-- // evenPartitions would raise it again
	}
	if a.Replicas < least {
		a.ask(least, "sizing", "a scale-in takes no more than %s: the load may come back", parts)
	}
	in.notEffective(a, m, d)
}

// notEffective watches an urgent scale-out. One that did not help is undone, and not repeated for a while.
func (in Input) notEffective(a *Answer, m *Memory, d demand) {
	s, live := &m.ScaleOut, len(m.Owners) >= in.Replicas
	settled, more := in.Now.Sub(s.At) >= settling, float64(in.Replicas-s.From)
	switch {
	case in.Now.Before(s.Until): // not repeated yet
	case s.At.IsZero() && (a.Replicas <= in.Replicas || in.Replicas == 0 || !live || !d.urgent || m.Done == 0): // nothing to watch
	case s.At.IsZero():
		*s = ScaleOut{At: in.Now, From: in.Replicas, Rate: m.Done}
	case !s.Until.IsZero(), !d.urgent, settled && more <= 0, // the hold is over; or the scale-out was enough, is undone,
		settled && live && m.Done-s.Rate >= effective*s.Rate*more/float64(s.From): // or helped
		*s = ScaleOut{}
	case a.Replicas > in.Replicas: // leases will move again
		s.At = in.Now
	case settled && live:
		s.Until, m.Proven = in.Now.Add(notAgain), false
	}
	if in.Now.Before(s.Until) && a.Replicas > s.From {
		a.ask(s.From, "notEffective", "more than %d replicas did no more than %d (%.3g/s): %d are not asked for before %s; "+
			"look at what the handler waits for", s.From, s.From, s.Rate, a.Replicas, s.Until.UTC().Format("15:04"))
	}
}

// ask sets the count, and says why.
func (a *Answer) ask(replicas int, step, why string, args ...any) {
	a.Replicas = replicas
	a.Reasons = append(a.Reasons, Reason{Step: step, Replicas: replicas, Why: fmt.Sprintf(why, args...)})
}
