package changefeed_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// cells is how many cells the keys of the random test are divided into.
const cells = 64

// bound is the key at which a cell begins.
func bound(cell int) string {
	switch cell {
	case 0:
		return ""
	case cells:
		return "FF"
	}
	return fmt.Sprintf("%02X", cell*255/cells)
}

func span(from, to int) changefeed.Range { return changefeed.Range{Min: bound(from), Max: bound(to)} }

// piece is a partition key range of the random test, or one that is gone.
type piece struct {
	id       string
	from, to int
	parents  []string
}

// container is the ranges of a container through random splits and merges, and the leases of a processor
// that replaces what is gone, in steps, as the SDKs do.
type container struct {
	random *rand.Rand
	live   []piece          // in key order
	all    map[string]piece // those that are gone, too
	bounds bool             // PK-range leases hold the bounds of their range
	leases []claim
}

// claim is a lease: of a range, or, without one, of keys.
type claim struct {
	id       string
	from, to int
}

func (c *container) add(at, gone int, made ...piece) {
	for i := range made {
		made[i].id = fmt.Sprint(len(c.all))
		c.all[made[i].id] = made[i]
	}
	c.live = slices.Replace(c.live, at, at+gone, made...)
}

func (c *container) reshape() {
	at := c.random.IntN(len(c.live))
	p := c.live[at]
	if middle := p.from + 1 + c.random.IntN(max(1, p.to-p.from-1)); c.random.IntN(2) == 0 && p.to-p.from > 1 {
		parents := append(slices.Clone(p.parents), p.id)
		c.add(at, 1, piece{"", p.from, middle, parents}, piece{"", middle, p.to, parents})
	} else if at > 0 {
		o := c.live[at-1]
		c.add(at-1, 2, piece{"", o.from, p.to, slices.Concat(o.parents, p.parents, []string{o.id, p.id})})
	}
}

// ranges returns what the service says of the ranges.
func (c *container) ranges() changefeed.Ranges {
	var revisions []changefeed.PartitionKeyRange
	for _, p := range c.live {
		revisions = append(revisions, changefeed.PartitionKeyRange{ID: p.id, Min: bound(p.from), Max: bound(p.to), Parents: p.parents})
	}
	return changefeed.NewRanges(revisions)
}

// covers marks the cells that a lease covers.
func (c *container) covers(l claim, mark *[cells]bool) {
	for _, p := range c.live {
		whole := p.id == l.id || l.id != "" && !c.bounds && slices.Contains(p.parents, l.id)
		for cell := p.from; cell < p.to; cell++ {
			if whole || (l.id == "" || slices.Contains(p.parents, l.id)) && cell >= l.from && cell < l.to {
				mark[cell] = true
			}
		}
	}
}

// step lets the processor do one step: it adds the leases that replace one whose range is gone, one at a
// time, and deletes that one last. After a merge a lease keeps the keys that it had, as in .NET.
func (c *container) step() {
	for i, l := range c.leases {
		if l.id == "" || slices.ContainsFunc(c.live, func(p piece) bool { return p.id == l.id }) {
			continue
		}
		for _, p := range c.live {
			if !slices.Contains(p.parents, l.id) || p.to <= l.from || l.to <= p.from {
				continue
			}
			made := claim{p.id, p.from, p.to}
			if p.from < l.from || p.to > l.to { // merged with others
				made = claim{"", max(p.from, l.from), min(p.to, l.to)}
			}
			if !slices.Contains(c.leases, made) {
				c.leases = append(c.leases, made)
				return
			}
		}
		c.leases = slices.Delete(c.leases, i, i+1)
		return
	}
}

func (c *container) uncovered(t *testing.T) []changefeed.Range {
	leases := func(yield func(*changefeed.Lease) bool) {
		for _, l := range c.leases {
			keys := span(l.from, l.to)
			lease := changefeed.Lease{Token: l.id}
			switch {
			case l.id == "":
				lease.Token, lease.Range = keys.Min+"-"+keys.Max, &keys
			case c.bounds:
				lease.Bounds = &keys
			}
			if !yield(&lease) {
				return
			}
		}
	}
	holes, known := c.ranges().Uncovered(slices.Collect(leases))
	if !known {
		t.Fatalf("%v of %v are not known", c.leases, c.live)
	}
	return holes
}

// TestNoHoleIsMissedAndNoneInvented holds what Uncovered finds against cells that are marked one by one:
// while a processor replaces its leases through random splits and merges, and after some are lost.
func TestNoHoleIsMissedAndNoneInvented(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	found := 0
	var c *container
	for round := range 100_000 {
		if round%40 == 0 {
			c = &container{random: random, all: make(map[string]piece), bounds: random.IntN(2) == 0}
			at := random.IntN(cells-1) + 1
			c.add(0, 0, piece{"", 0, at, nil}, piece{"", at, cells, nil})
			for _, p := range c.live {
				l := claim{p.id, p.from, p.to}
				if random.IntN(3) == 0 {
					l.id = "" // a processor with EPK leases
				}
				c.leases = append(c.leases, l)
			}
		}
		switch lost := round%40 > 30; {
		case lost && len(c.leases) > 1 && random.IntN(3) == 0:
			at := random.IntN(len(c.leases))
			c.leases = slices.Delete(c.leases, at, at+1)
		case random.IntN(4) == 0:
			c.reshape()
		default:
			c.step()
		}
		var mark [cells]bool
		for _, l := range c.leases {
			c.covers(l, &mark)
		}
		var want []changefeed.Range
		for cell := 0; cell < cells; cell++ {
			from := cell
			for cell < cells && !mark[cell] {
				cell++
			}
			if cell > from {
				want = append(want, span(from, cell))
			}
		}
		if got := c.uncovered(t); !slices.Equal(got, want) {
			t.Fatalf("round %d: ranges %v, leases %v (bounds %t): %v, want %v", round, c.live, c.leases, c.bounds, got, want)
		}
		if round%40 <= 30 && len(want) > 0 && c.bounds {
			t.Fatalf("round %d: the processor itself left a hole", round)
		}
		found += len(want)
	}
	if found < 1000 {
		t.Errorf("only %d holes were looked for", found)
	}
}

func TestALeaseOfAnUnknownRangeLeavesTheHolesUnknown(t *testing.T) {
	t.Parallel()
	ranges := changefeed.NewRanges([]changefeed.PartitionKeyRange{{ID: "0", Max: "FF"}})
	for _, c := range []struct {
		rule   string
		ranges changefeed.Ranges
		token  string
		known  bool
	}{
		{"the range exists", ranges, "0", true},
		{"the ranges are older than the lease", ranges, "7", false},
		{"the ranges were never read", nil, "0", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if _, known := c.ranges.Uncovered([]*changefeed.Lease{{Token: c.token}}); known != c.known {
				t.Errorf("known: %t", known)
			}
		})
	}
}
