package console

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// Listing selects and sorts processors.
type Listing struct {
	Sort     string              // one of Sorts; "" = as they come
	Statuses []changefeed.Status // none = any
	All      bool                // also those that a status of many processors leaves out
}

// Sorts are the orders of a Listing: status, then lag, the worst first; the greatest number first;
// or name.
func Sorts() []string { return []string{"status", "lag", "age", "replicas", "name"} }

// Arrange returns the values that a listing shows, in its order. of returns the processor of a
// value.
func Arrange[T any](l Listing, all []T, of func(T) report.Processor) []T {
	type entry struct {
		value T
		report.Processor
	}
	var shown []entry
	for _, value := range all {
		e := entry{value, of(value)}
		if len(l.Statuses) == 0 || slices.Contains(l.Statuses, e.Status) {
			shown = append(shown, e)
		}
	}
	slices.SortStableFunc(shown, func(a, b entry) int {
		switch l.Sort {
		case "status":
			return cmp.Or(cmp.Compare(severity(a.Status), severity(b.Status)), descending(a.Lag, b.Lag))
		case "lag":
			return descending(a.Lag, b.Lag)
		case "age":
			return descending(age(a.Processor), age(b.Processor))
		case "replicas":
			return descending(a.DesiredReplicas, b.DesiredReplicas)
		case "name":
			return strings.Compare(a.Name, b.Name)
		}
		return 0
	})
	values := make([]T, len(shown))
	for i, e := range shown {
		values[i] = e.value
	}
	return values
}

// age is that of the oldest change: 0 if nothing is pending, nil if it is unknown.
func age(r report.Processor) *int64 {
	if r.ChangeAgeSeconds == nil && r.Lag != nil {
		return new(int64)
	}
	return r.ChangeAgeSeconds
}

// severity is the place of a status among all, the worst first.
func severity(s changefeed.Status) int {
	all := changefeed.Statuses()
	return slices.Index(all[:], s)
}

// descending sorts unknown values first, then the greatest.
func descending[N int | int64](a, b *N) int {
	most := func(n *N) int64 {
		if n == nil {
			return math.MaxInt64
		}
		return int64(*n)
	}
	return cmp.Compare(most(b), most(a))
}
