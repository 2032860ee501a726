package estimator

import (
	"context"
	"slices"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// inherit finds the leases that have replaced one of the last tick whose range was split. Each of them
// begins with the LSNs of that range, so that what was pending then would count in each
// (docs/lag.md, Splits and merges).
func (t *tick) inherit(ctx context.Context, unit []*measured) {
	var unknown []*measured
	for _, m := range unit {
		if m.err != nil {
			continue
		}
		ranges := t.rangesOf(m)
		replaced := m.replaced()
		for i := range m.leases {
			l := &m.leases[i]
			if last := m.before(l); last != nil {
				l.split = last.Split
				continue
			}
			if len(replaced) == 0 || l.Err != nil || l.Range != nil {
				continue
			}
			if _, known := ranges.Find(l.Token); !known {
				unknown = append(unknown, m)
				break
			}
		}
	}
	t.refreshParents(ctx, unknown)
	for _, m := range unit {
		if m.err == nil {
			m.inherit(m.replaced(), t.rangesOf(m))
		}
	}
}

// refreshParents reads the partition key ranges, which name their parents. Without them nothing but the
// split is unknown.
func (t *tick) refreshParents(ctx context.Context, processors []*measured) {
	if len(processors) == 0 {
		return
	}
	t.refreshRanges(ctx, processors[:1])
	processors[0].err = nil
}

// replaced returns what the last tick measured of leases that are no longer there.
func (m *measured) replaced() (replaced []*changefeed.Partition) {
	known := 0
	for i := range m.leases {
		if l := &m.leases[i]; !l.leftover && m.before(l) != nil {
			known++
		}
	}
	if known == len(m.lastLag.Partitions) {
		return nil // as at nearly all times: tokens are unique
	}
	there := make(map[string]bool, len(m.leases))
	for i := range m.leases {
		if l := &m.leases[i]; !l.leftover {
			there[l.Token] = true
		}
	}
	for i := range m.lastLag.Partitions {
		if p := &m.lastLag.Partitions[i]; p.SessionLSN != nil && !there[p.Lease] {
			replaced = append(replaced, p)
		}
	}
	return replaced
}

// inherit gives each new lease the split that it comes from.
func (m *measured) inherit(replaced []*changefeed.Partition, ranges changefeed.Ranges) {
	if len(replaced) == 0 {
		return
	}
	for i := range m.leases {
		l := &m.leases[i]
		if l.Err != nil || m.before(l) != nil {
			continue
		}
		for _, p := range replaced {
			of := false
			switch {
			case l.Range != nil && p.Range != nil:
				of = l.Range.Within(*p.Range)
			case l.Range == nil:
				r, known := ranges.Find(l.Token)
				of = known && slices.Contains(r.Parents, p.Lease)
			}
			if of {
				l.split = &changefeed.Split{From: p.Lease, LSN: *p.SessionLSN}
				break
			}
		}
	}
}

// countOnce takes from the leases of one split what was pending before it, but for the one that has the
// most of that: it is in none of the others twice, and together they have no more of it than that one
// says.
func countOnce(partitions []changefeed.Partition, firsts []*int64) {
	type share struct {
		partition *changefeed.Partition
		before    int64
	}
	splits := make(map[changefeed.Split][]share)
	for i := range partitions {
		p := &partitions[i]
		if p.Split == nil || !p.Known() || p.SessionLSN == nil {
			continue
		}
		first := *p.SessionLSN - *p.Lag + 1 // LSN of the oldest pending change
		if firsts[i] != nil {
			first = *firsts[i] // of a lease whose range was split again
		}
		if before := min(*p.Lag, p.Split.LSN-first+1); before > 0 {
			splits[*p.Split] = append(splits[*p.Split], share{p, before})
		}
	}
	for _, shares := range splits {
		if len(shares) < 2 {
			continue
		}
		most := 0
		for i, s := range shares {
			if s.before > shares[most].before {
				most = i
			}
		}
		for i, s := range shares {
			s.partition.Approximate = true
			if i != most {
				s.partition.Whole = s.partition.Lag
				s.partition.Lag = new(max(1, *s.partition.Lag-s.before))
			}
		}
	}
}
