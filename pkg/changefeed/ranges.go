package changefeed

import (
	"cmp"
	"slices"
)

// Range is a span of effective partition keys, in the service's hexadecimal
// form: Min is inclusive, Max exclusive; "" is the lowest bound and "FF" the
// highest.
type Range struct {
	Min string `json:"min"`
	Max string `json:"max"`
}

// PartitionKeyRange is one physical partition of a container, as its
// partition key range feed describes it.
type PartitionKeyRange struct {
	ID      string   `json:"id"`
	Min     string   `json:"minInclusive"`
	Max     string   `json:"maxExclusive"`
	Parents []string `json:"parents"` // every range it came from, through all splits and merges
}

// Ranges is the partition key ranges of a container.
type Ranges []PartitionKeyRange

// NewRanges builds the Ranges from every revision that the feed delivered, in
// its order: of several for one id the last counts, and a range that another
// one names as its parent is gone.
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
		return cmp.Or(cmp.Compare(a.Min, b.Min), compareTokens(a.ID, b.ID))
	})
	return ranges
}

// Children returns the ranges that stand for a range that is gone, in key order.
func (rs Ranges) Children(id string) Ranges {
	var children Ranges
	for _, r := range rs {
		if slices.Contains(r.Parents, id) {
			children = append(children, r)
		}
	}
	return children
}

// Has tells whether a range is still there.
func (rs Ranges) Has(id string) bool {
	return slices.ContainsFunc(rs, func(r PartitionKeyRange) bool { return r.ID == id })
}
