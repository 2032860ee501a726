package changefeed

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Range is a span of effective partition keys (EPK), as the service's hexadecimal text: Min is
// inclusive, Max exclusive; "" is the lowest bound and "FF" the highest.
type Range struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// CompareEPK orders two effective partition keys. Those of hierarchical partition keys may differ
// in trailing zeros and be equal, as for azcosmos.
func CompareEPK(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	return cmp.Compare(len(strings.TrimRight(a[n:], "0")), len(strings.TrimRight(b[n:], "0")))
}

// valid reports whether there is a range, its bounds are hexadecimal and Min is below Max.
func (r *Range) valid() bool {
	const digits = "0123456789ABCDEFabcdef"
	return r != nil && strings.Trim(r.Min, digits) == "" && strings.Trim(r.Max, digits) == "" && CompareEPK(r.Min, r.Max) < 0
}

// Equal reports whether two ranges cover the same keys.
func (r Range) Equal(o Range) bool {
	return CompareEPK(r.Min, o.Min) == 0 && CompareEPK(r.Max, o.Max) == 0
}

// Gaps returns the keys of the range that none of the others has, in key order.
func (r Range) Gaps(others []Range) (gaps []Range) {
	others = append(slices.Clone(others), Range{Min: r.Max, Max: r.Max}) // where the last gap ends
	slices.SortFunc(others, func(a, b Range) int { return CompareEPK(a.Min, b.Min) })
	at := r.Min
	for _, o := range others {
		if CompareEPK(at, o.Min) < 0 && CompareEPK(o.Min, r.Max) <= 0 {
			gaps = append(gaps, Range{Min: at, Max: o.Min})
		}
		at = slices.MaxFunc([]string{at, o.Max}, CompareEPK)
	}
	return gaps
}

// PartitionKeyRange is one physical partition of a container, as the container's partition key
// range feed describes it.
type PartitionKeyRange struct {
	ID      string   `json:"id"`
	Min     string   `json:"minInclusive"`
	Max     string   `json:"maxExclusive"`
	Parents []string `json:"parents"` // ids of every range it came from, through all splits and merges
}

// Span returns the range of keys.
func (r PartitionKeyRange) Span() Range { return Range{Min: r.Min, Max: r.Max} }

// Ranges are the partition key ranges of a container, in the order of their keys.
type Ranges []PartitionKeyRange

// NewRanges makes the Ranges from every revision that the feed delivered, in its order: of several
// with one id the last counts, and a range that another one has as a parent no longer exists.
func NewRanges(revisions []PartitionKeyRange) Ranges {
	latest := make(map[string]PartitionKeyRange, len(revisions))
	gone := make(map[string]bool)
	for _, r := range revisions {
		latest[r.ID] = r
		for _, parent := range r.Parents {
			gone[parent] = true
		}
	}
	maps.DeleteFunc(latest, func(id string, _ PartitionKeyRange) bool { return gone[id] })
	return slices.SortedFunc(maps.Values(latest), func(a, b PartitionKeyRange) int {
		return cmp.Or(CompareEPK(a.Min, b.Min), compareTokens(a.ID, b.ID))
	})
}

// Children returns the ranges that replaced a range that is gone, in the order of their keys.
func (rs Ranges) Children(id string) Ranges {
	return slices.DeleteFunc(slices.Clone(rs), func(r PartitionKeyRange) bool { return !slices.Contains(r.Parents, id) })
}

// Find returns the range with an id; ok is false if there is none.
func (rs Ranges) Find(id string) (r PartitionKeyRange, ok bool) {
	if i := slices.IndexFunc(rs, func(r PartitionKeyRange) bool { return r.ID == id }); i >= 0 {
		return rs[i], true
	}
	return r, false
}

// Share is the part of a partition key range that a lease covers.
type Share struct {
	Of   PartitionKeyRange
	Keys Range
}

func (s Share) String() string {
	return fmt.Sprintf("%q to %q of range %s", s.Keys.Min, s.Keys.Max, s.Of.ID)
}

// Part returns the keys that a read of the share names beside the id of its range; zero if the share
// is all of the range.
func (s Share) Part() Range {
	if s.Keys.Equal(s.Of.Span()) {
		return Range{}
	}
	return s.Keys
}

// Shares returns what a lease covers, in key order. exists reports whether its range still exists or, for
// an EPK lease, whether its keys are in one range. A PK-range lease whose range is gone covers the
// descendants of that range, which after a merge have other keys too, within the bounds that it holds.
func (rs Ranges) Shares(l *Lease) (shares []Share, exists bool) {
	if l.Range != nil {
		shares = rs.within(*l.Range)
		return shares, len(shares) == 1
	}
	if r, exists := rs.Find(l.Token); exists {
		return []Share{{r, r.Span()}}, true
	}
	children := rs.Children(l.Token)
	if l.Bounds != nil {
		shares = children.within(*l.Bounds)
	}
	if len(shares) == 0 {
		shares = children.within(Range{Max: "FF"})
	}
	return shares, false
}

// within returns the parts of the ranges that have keys of a span, in key order.
func (rs Ranges) within(span Range) (shares []Share) {
	first, _ := slices.BinarySearchFunc(rs, span.Min, func(r PartitionKeyRange, key string) int {
		return cmp.Or(CompareEPK(r.Max, key), -1)
	})
	for _, r := range rs[first:] {
		if CompareEPK(r.Min, span.Max) >= 0 {
			break
		}
		shares = append(shares, Share{r, Range{
			Min: slices.MaxFunc([]string{r.Min, span.Min}, CompareEPK),
			Max: slices.MinFunc([]string{r.Max, span.Max}, CompareEPK),
		}})
	}
	return shares
}

// Coverage is what the polls so far know of the keys that no lease covers (docs/lag.md, Keys that no
// lease covers).
type Coverage struct {
	Holes   []Range   `json:"holes"`            // in key order; nil = unknown, since the ranges were never read; empty = every key is covered
	Polls   int       `json:"polls,omitempty"`  // in a row that saw the same leases, at most 3
	Failing time.Time `json:"failing,omitzero"` // first of the reads of the ranges in a row that failed; zero = the last one did not
}

// Uncovered returns the keys of the container that no lease covers, in key order. known is false if the
// ranges know nothing of a lease: they are older than it, or it cannot be read.
func (rs Ranges) Uncovered(leases []*Lease) (holes []Range, known bool) {
	if len(rs) == 0 {
		return nil, false
	}
	var covered []Range
	for i, r := range rs[1:] {
		if CompareEPK(rs[i].Max, r.Min) < 0 {
			covered = append(covered, Range{Min: rs[i].Max, Max: r.Min}) // no key of the container
		}
	}
	for _, l := range leases {
		shares, _ := rs.Shares(l)
		if len(shares) == 0 {
			return nil, false
		}
		for _, s := range shares {
			covered = append(covered, s.Keys)
		}
	}
	return Range{Min: rs[0].Min, Max: rs[len(rs)-1].Max}.Gaps(covered), true
}
