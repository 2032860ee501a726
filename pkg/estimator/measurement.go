package estimator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// measurement is what is known about one processor in the course of a tick.
type measurement struct {
	index     int // in the arguments of Estimate
	processor Processor
	now       func() time.Time
	described cosmos.Description        // of the monitored container, as its leases were looked up by
	ranges    *cache[changefeed.Ranges] // of it, which all processors share that monitor it
	prefixes  []string
	leases    []measuredLease
	marked    bool // a marker says that the processor has created all of its leases
	coverage  changefeed.Coverage
	nearest   string // what the lease container holds, if the processor has no leases
	usage     cosmos.Usage
	err       error                            // why the whole processor is unknown
	lastLag   changefeed.ProcessorLag          // of the last tick
	last      map[string]*changefeed.Partition // its partitions by lease
	replaced  bool                             // a lease of the last tick is no longer there
}

// measuredLease is one lease, and the pages that say how far behind it is.
type measuredLease struct {
	changefeed.LeasePlan         // Readings and Errs are filled in last
	pages                []*page // of its shares
}

// planned returns the leases as package changefeed plans them.
func (m *measurement) planned() []*changefeed.LeasePlan {
	all := make([]*changefeed.LeasePlan, len(m.leases))
	for i := range m.leases {
		all[i] = &m.leases[i].LeasePlan
	}
	return all
}

// source is the monitored container.
func (m *measurement) source() source {
	return source{m.processor.Account, m.processor.Container}
}

// leaseSource is the lease container.
func (m *measurement) leaseSource() source {
	return source{m.processor.LeaseAccount, m.processor.LeaseContainer}
}

// those returns the processors for which nothing has failed and a condition holds; nil is none.
func those(processors []*measurement, holds func(*measurement) bool) (some []*measurement) {
	for _, m := range processors {
		if m.err == nil && (holds == nil || holds(m)) {
			some = append(some, m)
		}
	}
	return some
}

// gone reports whether a lease's range was split or merged, as far as was read.
func (l *measuredLease) gone() bool {
	return l.Splitting || slices.ContainsFunc(l.pages, (*page).gone)
}

// lag returns what the tick measured of the processor.
func (m *measurement) lag() changefeed.ProcessorLag {
	lag := changefeed.ProcessorLag{Time: m.now(), Charge: m.usage.Charge, Requests: m.usage.Requests, Coverage: m.coverage}
	if m.err != nil {
		lag.Error, lag.Causes = m.err.Error(), changefeed.AddCause(nil, m.err)
		return lag
	}
	lag.Bootstrap, lag.Nearest = len(m.leases) == 0, m.nearest
	m.settle()
	lag.Partitions = slices.Grow(lag.Partitions, len(m.leases)) // nil without any
	for i := range m.leases {
		l := &m.leases[i]
		if l.Leftover {
			lag.Leftover = append(lag.Leftover, l.Token)
			continue
		}
		lag.Partitions = append(lag.Partitions, m.partition(l))
		for _, p := range l.pages {
			lag.Causes = changefeed.AddCause(lag.Causes, p.err)
		}
		if l.Mode == changefeed.FullFidelity {
			lag.Retention = m.described.Retention()
		}
	}
	if lag.Retention == 0 {
		lag.Retention = m.described.TTL()
	}
	return lag
}

// partition applies the table of docs/lag.md (What each answer counts) to one lease.
func (m *measurement) partition(l *measuredLease) changefeed.Partition {
	p := changefeed.Partition{
		Lease: l.Token, Range: l.Range, Owner: l.Owner, LeaseTime: l.Time, BadTime: l.BadTime, Position: l.Continuation,
		Status: changefeed.StatusUnknown,
	}
	if lsn, ok := changefeed.ContinuationLSN(l.Continuation); ok {
		p.CheckpointLSN = &lsn
	}
	last, gone := m.last[l.Token], l.gone()
	switch {
	case l.Err != nil && !l.Splitting:
		p.Error = fmt.Sprintf("lease %s: %v", l.ID, l.Err)
	case slices.ContainsFunc(l.pages, func(p *page) bool { return p.leftOut }): // by the budget
		m.carry(&p, last)
	case l.Uncheckpointed(m.processor.StartFrom) && !gone && l.pages[0].err == nil:
		p.Lag, p.Approximate, p.Status = new(int64), true, changefeed.StatusUncheckpointed
		p.SessionLSN = l.pages[0].reading.SessionLSN
	case gone:
		apply(&p, *l.Reading(), 0)
		p.Status, p.Ranges = changefeed.StatusSplitting, len(l.pages)
		for _, child := range l.pages {
			if child.err != nil {
				p.Error = child.err.Error()
			}
		}
	case l.pages[0].err != nil:
		p.Error = l.pages[0].err.Error()
	default:
		apply(&p, l.Readings[0], l.pages[0].charge)
		p.Unchanged = last != nil && last.Position == p.Position && last.SessionLSN != nil && p.SessionLSN != nil && *last.SessionLSN == *p.SessionLSN
	}
	p.Part = !gone && len(l.pages) == 1 && l.pages[0].err == nil && l.pages[0].position.Part != changefeed.Range{}
	p.Inherited = !p.Part && m.inherited(l, last)
	p.Approximate = p.Approximate || p.Inherited && p.Pending()
	return p
}

// apply gives a partition what was read, at a charge in request units.
func apply(p *changefeed.Partition, r changefeed.Reading, charge float64) {
	p.Lag, p.Age, p.Approximate, p.SessionLSN, p.ReadCharge = &r.Lag, r.Age, r.Approximate, r.SessionLSN, charge
	p.Status = changefeed.StatusOK
	if r.Lag > 0 {
		p.Status = changefeed.StatusLagging
	}
}

// inherited reports whether the position of a lease is one that it began with after a split or
// merge. Its range then begins with the LSNs of the one that is gone, so that what was pending
// before counts in each (docs/lag.md, Splits and merges).
func (m *measurement) inherited(l *measuredLease, last *changefeed.Partition) bool {
	switch {
	case l.Continuation == "":
		return false
	case last == nil:
		return m.replaced
	}
	return last.Position == l.Continuation && (last.Inherited || last.Part || last.Count() > 1)
}

// carry takes over what an earlier tick measured of a lease, with its time.
func (m *measurement) carry(p, last *changefeed.Partition) {
	if last == nil || !last.Known() && last.Ahead == nil {
		p.Error = "the RU budget has not allowed to read it yet: raise FEEDSCALE_RU_BUDGET, or poll less often"
		return
	}
	apply(p, m.again(last), last.ReadCharge)
	p.Approximate, p.Unchanged, p.Ranges = true, true, last.Ranges
	p.Measured = cmp.Or(last.Measured, m.lastLag.Time)
	if last.Status == changefeed.StatusUncheckpointed && p.Position == "" {
		p.Status = changefeed.StatusUncheckpointed
	}
}

// again returns the reading of the last tick, of which only the age can have changed.
func (m *measurement) again(last *changefeed.Partition) changefeed.Reading {
	r := changefeed.Reading{SessionLSN: last.SessionLSN, Approximate: last.Approximate}
	if last.Lag != nil { // nil if it is ahead
		r.Lag = *last.Lag
	}
	if last.Age != nil {
		r.Age = new(*last.Age + max(0, int64(m.now().Sub(m.lastLag.Time)/time.Second)))
	}
	return r
}

// settle hands the readings of the pages to the leases, and divides those of the parts of a range.
func (m *measurement) settle() {
	here := 0 // leases of the last tick
	for i := range m.leases {
		l := &m.leases[i]
		if !l.Leftover && m.last[l.Token] != nil {
			here++
		}
		for _, p := range l.pages {
			l.Readings = append(l.Readings, p.reading)
			if p.gone() {
				l.Errs = append(l.Errs, p.err)
			}
		}
	}
	m.replaced = here < len(m.lastLag.Partitions)
	changefeed.Settle(m.planned())
}
