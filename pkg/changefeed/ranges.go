package changefeed

import (
	"cmp"
	"slices"
	"strings"
)

// Range is a span of effective partition keys (EPK), as the service's hexadecimal text: Min is
// inclusive, Max exclusive; "" is the lowest bound and "FF" the highest.
type Range struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// CompareEPK orders two effective partition keys. Those of hierarchical partition keys may differ
// in trailing zeros and be equal; azcosmos compares alike (azure-sdk-for-go,
// azcosmos/internal/epk).
func CompareEPK(a, b string) int {
	n := min(len(a), len(b))
	if c := cmp.Compare(a[:n], b[:n]); c != 0 {
		return c
	}
	return cmp.Compare(len(strings.TrimRight(a[n:], "0")), len(strings.TrimRight(b[n:], "0")))
}

// valid reports whether the bounds are hexadecimal and Min is below Max.
func (r Range) valid() bool {
	const digits = "0123456789ABCDEFabcdef"
	return strings.Trim(r.Min, digits) == "" && strings.Trim(r.Max, digits) == "" && CompareEPK(r.Min, r.Max) < 0
}

// Equal reports whether two ranges cover the same keys.
func (r Range) Equal(o Range) bool {
	return CompareEPK(r.Min, o.Min) == 0 && CompareEPK(r.Max, o.Max) == 0
}

// Overlaps reports whether two ranges have a key in common.
func (r Range) Overlaps(o Range) bool {
	return CompareEPK(r.Min, o.Max) < 0 && CompareEPK(o.Min, r.Max) < 0
}

// Within reports whether all keys of the range are in the other.
func (r Range) Within(o Range) bool {
	return CompareEPK(o.Min, r.Min) <= 0 && CompareEPK(r.Max, o.Max) <= 0
}

// Clip returns the intersection of two ranges, which must overlap.
func (r Range) Clip(o Range) Range {
	if CompareEPK(r.Min, o.Min) < 0 {
		r.Min = o.Min
	}
	if CompareEPK(r.Max, o.Max) > 0 {
		r.Max = o.Max
	}
	return r
}

// Gaps returns the keys of the range that none of the others has, in key order.
func (r Range) Gaps(others []Range) []Range {
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b Range) int { return CompareEPK(a.Min, b.Min) })
	var gaps []Range
	at := r.Min
	for _, o := range others {
		if CompareEPK(o.Min, r.Max) >= 0 {
			break
		}
		if CompareEPK(at, o.Min) < 0 {
			gaps = append(gaps, Range{Min: at, Max: o.Min})
		}
		if CompareEPK(at, o.Max) < 0 {
			at = o.Max
		}
	}
	if CompareEPK(at, r.Max) < 0 {
		gaps = append(gaps, Range{Min: at, Max: r.Max})
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
	ranges := make(Ranges, 0, len(latest))
	for id, r := range latest {
		if !gone[id] {
			ranges = append(ranges, r)
		}
	}
	slices.SortFunc(ranges, func(a, b PartitionKeyRange) int {
		return cmp.Or(CompareEPK(a.Min, b.Min), compareTokens(a.ID, b.ID))
	})
	return ranges
}

// Children returns the ranges that replaced a range that is gone, in the order of their keys.
func (rs Ranges) Children(id string) Ranges {
	var children Ranges
	for _, r := range rs {
		if slices.Contains(r.Parents, id) {
			children = append(children, r)
		}
	}
	return children
}

// Overlapping returns the ranges that have keys of a span, in the order of their keys.
func (rs Ranges) Overlapping(span Range) Ranges {
	first, _ := slices.BinarySearchFunc(rs, span.Min, func(r PartitionKeyRange, key string) int {
		if CompareEPK(r.Max, key) <= 0 {
			return -1
		}
		return 1
	})
	end := first
	for end < len(rs) && CompareEPK(rs[end].Min, span.Max) < 0 {
		end++
	}
	return rs[first:end:end]
}

// Find returns the range with an id; ok is false if there is none.
func (rs Ranges) Find(id string) (r PartitionKeyRange, ok bool) {
	i := slices.IndexFunc(rs, func(r PartitionKeyRange) bool { return r.ID == id })
	if i < 0 {
		return PartitionKeyRange{}, false
	}
	return rs[i], true
}
