package estimator_test

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// flavour is what kind of leases a processor keeps.
type flavour struct {
	name    string
	epk     bool // for every range from the first; else only for what was merged
	java    bool // ids by names for PK-range leases, wrapped continuations for EPK leases
	v2      bool // PartitionId in place of LeaseToken
	bounds  bool // PK-range leases say what their range is
	merging bool // knows what to do after a merge
}

func flavours() []flavour {
	return []flavour{
		{name: ".NET", bounds: true, merging: true},
		{name: ".NET before FeedRange", merging: true},
		{name: ".NET EPK", epk: true, merging: true},
		{name: "Java", java: true},
		{name: "Java EPK", epk: true, java: true, merging: true},
		{name: "V2", v2: true},
	}
}

// lease is what a processor knows of one of its leases.
type lease struct {
	token    string
	epk      *changefeed.Range // nil for a PK-range lease
	was      changefeed.Range  // keys of the range it was made for
	position int64             // LSN of the checkpoint; unset before the first
	renewed  time.Time
}

const unset = -1

// simulated is a processor that keeps leases as its SDK does.
type simulated struct {
	flavour
	processor estimator.Processor
	writer    leasefake.Processor
	leases    []*lease
}

// document is the lease as its SDK writes it.
func (s *simulated) document(l *lease) map[string]any {
	f := leasefake.Fields{Owner: "worker", Updated: l.renewed}
	if l.position != unset {
		f.Continuation = leasefake.At(l.position)
	}
	switch keys := leasefake.Range(l.was); {
	case s.java && l.epk != nil:
		return s.writer.JavaEPK(keys, s.from(), f)
	case s.java:
		return s.writer.JavaPK(l.token, f)
	case l.epk != nil:
		return s.writer.DotNetEPK(keys, f)
	case s.v2:
		return s.writer.V2Gremlin(l.token, f)
	case s.bounds:
		return s.writer.DotNetPK(l.token, keys, f)
	default:
		return s.writer.DotNetPKOld(l.token, f)
	}
}

// from is where the processor starts, as the Java SDK keeps it.
func (s *simulated) from() leasefake.StartFrom {
	if s.processor.StartFrom.Beginning {
		return leasefake.FromBeginning()
	}
	return leasefake.FromNow()
}

func etag(lsn int64) string { return fmt.Sprintf("%q", fmt.Sprint(lsn)) }

// find returns the lease with a token, nil where there is none.
func (s *simulated) find(token string) *lease {
	for _, l := range s.leases {
		if l.token == token {
			return l
		}
	}
	return nil
}

// newLease is a lease of a range.
func (s *simulated) newLease(of shard, position int64) *lease {
	if s.epk {
		return epkLease(of.span(), position)
	}
	return &lease{token: of.ID, was: of.span(), position: position}
}

func epkLease(span changefeed.Range, position int64) *lease {
	return &lease{token: span.Min + "-" + span.Max, epk: &span, was: span, position: position}
}

// replacements are the leases that take the place of one whose range was split or merged: after a
// split one for each child, at the parent's position; after a merge, one with the keys of before.
func (s *simulated) replacements(l *lease, m *model) []*lease {
	var replacing []*lease
	overlapping := m.overlapping(l.was)
	for _, child := range overlapping {
		switch {
		case l.epk != nil:
			replacing = append(replacing, epkLease(clip(child.span(), l.was), l.position))
		case len(overlapping) == 1 && s.merging:
			replacing = append(replacing, epkLease(l.was, l.position))
		default:
			replacing = append(replacing, s.newLease(child, l.position))
		}
	}
	return replacing
}
