package changefeed

import (
	"iter"
	"strings"
	"time"
)

// Coverage is what the polls so far know of the keys that no lease covers (docs/lag.md, Keys that no
// lease covers).
type Coverage struct {
	Holes     []Range   `json:"holes"`            // in key order; nil = unknown, since the ranges were never read; empty = every key is covered
	Uncertain []Range   `json:"-"`                // holes that the last poll saw, until more polls see them
	Polls     int       `json:"polls,omitempty"`  // in a row that saw the same leases, at most 3
	Failing   time.Time `json:"failing,omitzero"` // first of the reads of the ranges in a row that failed; zero = the last one did not
}

// Uncovered returns the keys of the container that no lease covers, in key order. A lease whose range is
// gone covers the ranges that replaced it. known is false if the ranges know nothing of the range of a
// lease: they are older than the lease, or the lease cannot be read.
func (rs Ranges) Uncovered(leases iter.Seq[*Lease]) (holes []Range, known bool) {
	if len(rs) == 0 {
		return nil, false
	}
	spans := make(map[string]Range, len(rs))
	var covered []Range
	for i, r := range rs {
		spans[r.ID] = r.Span()
		if i > 0 && CompareEPK(rs[i-1].Max, r.Min) < 0 {
			covered = append(covered, Range{Min: rs[i-1].Max, Max: r.Min}) // no key of the container
		}
	}
	for l := range leases {
		span, exists := spans[l.Token]
		switch {
		case l.Range != nil:
			covered = append(covered, *l.Range)
		case exists:
			covered = append(covered, span)
		default:
			shares, _ := rs.Shares(l)
			if len(shares) == 0 {
				return nil, false
			}
			for _, s := range shares {
				covered = append(covered, s.Keys)
			}
		}
	}
	return Range{Min: rs[0].Min, Max: rs[len(rs)-1].Max}.Gaps(covered), true
}

// Share is the part of a partition key range that a lease covers.
type Share struct {
	Of   PartitionKeyRange
	Keys Range
}

// Part returns the keys that a read of the share names beside the id of its range; zero if the share
// is all of the range.
func (s Share) Part() Range {
	if s.Keys.Equal(s.Of.Span()) {
		return Range{}
	}
	return s.Keys
}

// Shares returns what a lease covers, in key order. exists reports whether its own range still exists or,
// for an EPK lease, whether its keys are in one range. A PK-range lease whose range is gone covers the
// descendants of that range. After a merge these have keys of other ranges too; then it covers the part
// within its own bounds, if the lease holds these.
func (rs Ranges) Shares(l *Lease) (shares []Share, exists bool) {
	if l.Range != nil {
		shares = rs.Overlapping(*l.Range).clipped(l.Range)
		return shares, len(shares) == 1
	}
	if r, exists := rs.Find(l.Token); exists {
		return []Share{{r, r.Span()}}, true
	}
	children := rs.Children(l.Token)
	if shares = children.clipped(l.Bounds); len(shares) == 0 {
		shares = children.clipped(nil)
	}
	return shares, false
}

// clipped returns the parts of the ranges that lie within bounds, or the whole ranges if bounds is nil.
func (rs Ranges) clipped(bounds *Range) []Share {
	var shares []Share
	for _, r := range rs {
		switch {
		case bounds == nil:
			shares = append(shares, Share{r, r.Span()})
		case bounds.Overlaps(r.Span()):
			shares = append(shares, Share{r, r.Span().Clip(*bounds)})
		}
	}
	return shares
}

// markerEnding takes the place of the two dots and the lease token in the id of the document that the SDKs
// write once all leases exist (azure-cosmos-dotnet-v3, DocumentServiceLeaseStoreCosmos.cs).
const markerEnding = ".info"

// Marked reports whether every prefix of the leases has its marker, which says that the processor has
// created all of them. The leases are as Select returned them.
func (d Documents) Marked(leases []LeaseDocument) bool {
	last := ""
	for i := range leases {
		prefix := leases[i].ID[:max(0, strings.LastIndex(leases[i].ID, ".."))]
		if prefix == last {
			continue
		}
		if last = prefix; len(d.under(prefix+markerEnding)) == 0 {
			return false
		}
	}
	return last != ""
}
