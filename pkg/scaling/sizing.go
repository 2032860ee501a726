package scaling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// The shares and times of step 3. They were chosen with `feedscale simulate`
// (docs/decisions/0011-default-policy.md).
const (
	spare        = 0.05             // share of what a replica can do that has to be left for a scale-in
	overdrawn    = 0.03             // share by which a replica may have more than it can do before that asks for another
	unproven     = 0.1              // the same, where no owner was seen to do all it can: the next one may do more
	helpsLittle  = 0.05             // share by which the fullest replica has to have less for more replicas to count as a help
	drainsLittle = 0.1              // the same, of the time in which a backlog is gone
	aloneRatio   = 4                // of the backlog of a partition to the others', from which on it is that partition's alone
	aloneLittle  = 2.0              // drainsLittle of such a backlog
	jump         = 1.3              // ratio to the long mean from which on what arrived between the last two polls counts
	jumpLeast    = 1.0              // LSNs per second that it takes beside that
	firstDoubt   = 0.2              // share by which a replica may do more than it did in the first moments of a backlog
	doubtMean    = 45 * time.Second // of a backlog, over which that doubt goes
	takeInterval = 13 * time.Second // in which a further replica takes one lease (docs/tune.md, What the model believes)
	notEnough    = time.Hour        // for which more replicas are asked for than were not enough
	settled      = 3 * time.Minute  // of takeIntervals, from which on uneven arrivals count in full
	leap         = 1.4              // jump from which on step 2 counts, too
	levelHeld    = 10 * time.Minute // for which a count that is more than half of the replicas has to be enough, before the window of step 9
)

// demand is what one partition asks of its owner.
type demand struct {
	arrival float64 // LSNs per second
	backlog float64 // LSNs beyond what waits for its turn anyway
}

// load is what the partitions ask for together, the heaviest first, but for those in outrun.
type load struct {
	demands []demand
	outrun  []int // partitions of which more arrive than one owner can do
	arrival float64
	backlog float64 // but of those in outrun
	leapt   bool    // whether arrivals have just multiplied
}

// sizing is step 3 of docs/decide.md: the fewest replicas at which, with the leases spread evenly by
// count, no owner gets more than one was seen to do, and the backlog is gone within catchUpWithin.
//
// With SizingAuto it replaces step 2. Where no owner was ever seen to do all it can, the rates are
// lower bounds, and it only lowers. With SizingThreshold it only raises.
func (s *steps) sizing() {
	auto := s.Policy.Sizing == SizingAuto
	if !s.active {
		s.next.Rates.Backlog.none()
	}
	if !s.active || !auto && s.Policy.CatchUpWithin <= 0 || s.next.DrainPerReplica <= 0 {
		return
	}
	l, known := s.load()
	if !known {
		return
	}
	exact, current := s.proven(), max(1, s.currentReplicas())
	over, under := overdrawn, -spare+s.doubt()
	if !exact {
		over, under = unproven, unproven
	}
	n := s.fewest(l, under)
	if n > current {
		n = max(current, s.fewest(l, over))
	}
	if within := s.Policy.CatchUpWithin.Seconds(); n > current && l.backlog > 0 && within > 0 {
		// Leases move one by one: more replicas take more of them at once.
		n = max(n, min(len(s.flows), int(math.Ceil(takeInterval.Seconds()*float64(len(s.flows))/within))))
	}
	if !exact && l.backlog == 0 && len(l.outrun) == 0 {
		n = min(n, current)
	}
	step2 := s.replicas
	leapt := l.leapt && len(l.outrun) == 0 && n < step2
	if leapt {
		n = step2 // it happened somewhere between two polls, of which the last one saw a part
	}
	since, lasting := s.Memory.Rates.Backlog.Since, s.lasting(l, n, current)
	if least := s.next.Rates.Backlog.Replicas; lasting || least > 0 && n < least {
		n = max(n, least)
		if lasting {
			n = max(n, step2)
		}
	}
	why := fmt.Sprintf("%.3g changes arrive per second and %.0f are a backlog; a replica does %s%.3g", l.arrival, l.backlog, atLeast(exact), s.next.DrainPerReplica)
	if count := len(l.outrun); count > 0 {
		why += s.outrunReason(l)
	}
	if leapt {
		why += "; that is many more than lately, so that step 2 counts, too"
	}
	switch {
	case auto && (exact || lasting || n <= s.replicas):
		held := s.effective(n)
		s.replicas, s.usage = held, usage{float64(held), 1}
		s.because("sizing", "%s", why)
		if lasting {
			s.because("backlog", "it has lasted for %s with %d replicas, which should have been enough: the leases may lie unevenly", s.Now.Sub(since).Round(time.Second), current)
		}
		if held < n {
			s.because("notEffective", "%s", s.next.Rates.Trial.reason(n))
		} else {
			s.level(n)
		}
	case auto:
		s.level(s.replicas) // step 2 asks for fewer than anybody was seen to do with
	case !auto && s.raise(float64(n)):
		s.because("catchUpWithin", "%s", why)
	}
}

// Level is how long the last decision has stood.
type Level struct {
	Replicas int       `json:"replicas,omitempty"`
	Since    time.Time `json:"since,omitzero"`  // when it was first seen
	Needed   time.Time `json:"needed,omitzero"` // when step 3 last asked for as many
}

// level holds the replicas where a few less have been enough for less time than they were needed
// before, and levelHeld at most: a load that stays about where one replica more is needed would
// otherwise start and stop that time and again. A burst leaves nothing behind: no more than half of the
// replicas wait for nothing here, and what was needed for a moment is held for no longer. What an
// incomplete poll asks for is not known to be enough.
func (s *steps) level(n int) {
	l, current := &s.next.Rates.Level, s.currentReplicas()
	if l.Replicas != current {
		*l = Level{Replicas: current, Since: s.Now}
	}
	if n >= current {
		l.Needed = s.Now
		return
	}
	enough, needed := s.Now.Sub(l.Needed), min(levelHeld, l.Needed.Sub(l.Since))
	if 2*n > current && !l.Needed.IsZero() && enough < needed && s.gaps() == "" && s.raise(float64(current)) {
		s.because("level", "%d would do, for %s of %s: what was needed for longer may be needed again", n, enough.Round(time.Second), needed.Round(time.Second))
	}
}

// Backlog is one that replicas should have worked off.
type Backlog struct {
	Since    time.Time `json:"since,omitzero"`     // when it was seen first, or had last become half as much, or the replicas changed
	LSNs     float64   `json:"lsns,omitempty"`     // then
	Count    int       `json:"count,omitempty"`    // replicas asked for then
	Replicas int       `json:"replicas,omitempty"` // the least to be asked for, since one less was not enough; 0 where nothing is known
	Until    time.Time `json:"until,omitzero"`     // for which that counts
}

// none says that there is none now.
func (b *Backlog) none() { b.Since, b.LSNs, b.Count = time.Time{}, 0, 0 }

// lasting reports whether a backlog has outlasted the time in which it should have been gone: the leases
// may be spread so that one owner has more than its share of what arrives, or the rates are wrong.
// Step 2 holds then, and for some time one replica more than there were.
func (s *steps) lasting(l load, n, current int) bool {
	b := &s.next.Rates.Backlog
	if !b.Until.IsZero() && !s.Now.Before(b.Until) {
		b.Replicas, b.Until = 0, time.Time{}
	}
	if l.backlog <= 0 || s.Policy.CatchUpWithin <= 0 {
		b.none()
		return false
	}
	if b.Since.IsZero() || l.backlog < b.LSNs/2 || b.Count != current {
		b.Since, b.LSNs, b.Count = s.Now, l.backlog, current
	}
	due := s.effectTime() + s.Policy.CatchUpWithin
	if s.liveOwners() < current || !s.spread(current) {
		due += takeInterval * time.Duration((len(s.flows)+current-1)/current)
	}
	if s.Now.Sub(b.Since) < due || current >= len(s.flows) {
		return false
	}
	b.Since = s.Now
	b.Replicas, b.Until = min(len(s.flows), max(b.Replicas, min(n, current))+1), s.Now.Add(notEnough)
	return true
}

func atLeast(exact bool) string {
	if exact {
		return ""
	}
	return "at least "
}

// outrunReason says that more replicas do not help some partitions.
func (s *steps) outrunReason(l load) string {
	count, most := len(l.outrun), s.most()
	if 2*count > len(s.flows) {
		return fmt.Sprintf("; %d of %d partitions bring more than the %.3g that one owner does: more than an owner for each does not help", count, len(s.flows), most)
	}
	i := l.outrun[0]
	which := "partition " + s.Lag.Partitions[i].Lease
	if count > 1 {
		which = fmt.Sprintf("%s (and %d more)", which, count-1)
	}
	return fmt.Sprintf("; %s alone brings %.3g, and one owner does %.3g of it: more replicas do not help, spread its partition key", which, s.arrivalOf(i), most)
}

// doubt is the share by which a replica may do more than it was seen to: positions move once per batch,
// and leases by the way, so that the first moments of a backlog show less than it can do.
func (s *steps) doubt() float64 {
	return firstDoubt * math.Exp(-s.next.Rates.Proof/doubtMean.Seconds())
}

func (s *steps) currentReplicas() int {
	n, _ := s.current()
	return n
}

// most is how much one owner can do of one partition, in LSNs per second.
func (s *steps) most() float64 {
	if s.partitionLimits() {
		return s.next.Rates.Partition
	}
	return s.next.DrainPerReplica
}

func (s *steps) arrivalOf(i int) float64 { return max(s.flows[i].Long, s.flows[i].Short) }

// load returns what the partitions ask for; not known where no arrivals were measured. Arrivals are
// the greater of their short and their long mean, and those of the last two polls where they jumped.
// A partition that was not measured counts as the mean of the others.
func (s *steps) load() (l load, known bool) {
	var last, short, long, lag, behind, every float64
	measured := 0
	for i, f := range s.flows {
		p := &s.Lag.Partitions[i]
		if s.excluded(p) {
			continue
		}
		if f.Known {
			last, short, long = last+f.Last, short+f.Short, long+f.Long
			measured++
		}
		every = max(every, f.usually())
		if p.Lag != nil {
			lag += float64(*p.Lag)
			if f.Behind {
				behind += float64(*p.Lag)
			}
		}
	}
	if measured == 0 {
		return l, false
	}
	l.arrival = max(short, long)
	jumped := last > jump*long+jumpLeast
	l.leapt = last > leap*long+jumpLeast
	if jumped {
		l.arrival = max(l.arrival, last)
	}
	// What is pending in partitions that are behind is a backlog; of the others together, what exceeds
	// the usual.
	rest := max(0, lag-s.explained(long, s.liveOwners(), every)-behind)
	most := s.most()
	arrival := func(i int) float64 {
		each := long / float64(measured)
		if f := &s.flows[i]; f.Known {
			each = f.Long
		}
		if long > 0 {
			each *= l.arrival / long
		}
		return each
	}
	coming := 0.0 // until more replicas work
	if s.proven() || jumped {
		coming = s.shortfall(arrival, most) * s.effectTime().Seconds()
	}
	for i, f := range s.flows {
		p, d := &s.Lag.Partitions[i], demand{arrival: arrival(i), backlog: coming / float64(len(s.flows))}
		if s.excluded(p) {
			continue // it asks for nobody but its owner
		}
		switch {
		case p.Lag == nil:
		case f.Behind:
			d.backlog += float64(*p.Lag)
		case lag > behind:
			d.backlog += rest * float64(*p.Lag) / (lag - behind)
		}
		if d.arrival >= most {
			l.outrun = append(l.outrun, i)
			continue
		}
		l.backlog += d.backlog
		l.demands = append(l.demands, d)
	}
	within := cmp.Or(s.Policy.CatchUpWithin.Seconds(), math.Inf(1))
	slices.SortFunc(l.demands, func(a, b demand) int {
		return cmp.Compare(b.arrival+b.backlog/within, a.arrival+a.backlog/within)
	})
	return l, true
}

// fewest returns the fewest replicas that do for a load: all of it together, each partition for no
// more than one owner can do of it, and the owner with the most leases, the heaviest one among them.
// over is the share by which an owner may get more than it can do; below 0 it has to be left free.
func (s *steps) fewest(l load, over float64) int {
	replica, most, within := s.next.DrainPerReplica, s.most(), s.Policy.CatchUpWithin.Seconds()
	partitions := len(s.flows)
	whole := float64(len(l.outrun)) * most
	var arrival, backlog float64 // of all but the heaviest
	for i, d := range l.demands {
		asked := d.arrival
		if within > 0 {
			asked += d.backlog / within
		}
		whole += min(asked, most)
		if i > 0 {
			arrival, backlog = arrival+d.arrival, backlog+d.backlog
		}
	}
	heaviest := demand{}
	if len(l.demands) > 0 {
		heaviest = l.demands[0]
	}
	others := float64(max(1, len(l.demands)-1))
	// fullest is what the owner with the most leases gets per second, and in how many seconds its
	// backlog is gone.
	fullest := func(n int) (gets, gone float64) {
		beside := min(float64((partitions+n-1)/n-1), float64(len(l.demands)-1))
		gets = heaviest.arrival + beside*arrival/others
		pending := heaviest.backlog + beside*backlog/others
		switch {
		case pending <= 0:
			return gets, 0
		case gets >= replica:
			return gets, math.Inf(1)
		}
		return gets, pending / (replica - gets)
	}
	// A backlog that is one partition's alone is not gone much sooner where that has an owner of its own.
	little := drainsLittle
	if heaviest.backlog > aloneRatio*backlog/others {
		little = aloneLittle
	}
	leastGets, leastGone := fullest(partitions)
	for n := 1; n < partitions; n++ {
		// The longer leases take to move, the longer uneven arrivals pile up.
		moving := takeInterval * time.Duration((partitions+n-1)/n)
		uneven := 1 + s.next.Rates.Uneven*min(1, moving.Seconds()/settled.Seconds())
		gets, gone := fullest(n)
		switch {
		case whole > float64(n)*replica*(1+max(0, over)):
		case gets*uneven > max((1+over)*replica, min(replica, (1+helpsLittle)*leastGets)):
		case within > 0 && gone > max(within, (1+little)*leastGone):
		default:
			return n
		}
	}
	return partitions
}
