package cosmosfake

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake/internal/epk"
)

// routing says which partition owns which part of the key space. It never changes; a split or a
// merge publishes another.
type routing struct {
	entries  []rangeEntry // by position
	revision uint64       // rises with every change
	merged   bool         // there was a merge: clients must say that they understand merges
}

// rangeEntry is a partition together with its place in the feed of partition key ranges.
type rangeEntry struct {
	*partition
	revision uint64 // of the routing that brought this entry
	changed  int64
	status   string
}

func (r *routing) byID(id string) (*partition, bool) {
	i := slices.IndexFunc(r.entries, func(e rangeEntry) bool { return e.id == id })
	if i < 0 {
		return nil, false
	}
	return r.entries[i].partition, true
}

func (r *routing) owner(position string) *partition {
	i, found := slices.BinarySearchFunc(r.entries, position, func(e rangeEntry, at string) int {
		return epk.Compare(e.span.low, at)
	})
	if !found {
		i--
	}
	return r.entries[max(i, 0)].partition
}

func (r *routing) overlapping(s span) []*partition {
	var found []*partition
	for _, e := range r.entries {
		if e.span.overlaps(s) {
			found = append(found, e.partition)
		}
	}
	return found
}

// after returns at most limit entries that came after a revision, in the order of their revisions,
// and the revision up to which they reach.
func (r *routing) after(revision uint64, limit int) ([]rangeEntry, uint64) {
	var found []rangeEntry
	for _, e := range r.entries {
		if e.revision > revision {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b rangeEntry) int { return cmp.Compare(a.revision, b.revision) })
	for limit < len(found) && found[limit].revision == found[limit-1].revision {
		limit++ // a revision is never split over two pages
	}
	if limit >= len(found) {
		return found, r.revision
	}
	return found[:limit], found[limit-1].revision
}

// publish replaces entries by others; the new ones, and those whose status is given, move to the
// end of the feed.
func (c *container) publish(remove []string, added []*partition, status string, merged bool) {
	old := c.routing.Load()
	next := &routing{revision: old.revision + 1, merged: old.merged || merged}
	for _, e := range old.entries {
		if !slices.Contains(remove, e.id) {
			next.entries = append(next.entries, e)
		}
	}
	for _, p := range added {
		next.entries = append(next.entries, rangeEntry{p, next.revision, c.server.now().Unix(), status})
	}
	slices.SortFunc(next.entries, func(a, b rangeEntry) int { return epk.Compare(a.span.low, b.span.low) })
	c.routing.Store(next)
}

// Split divides a partition key range in two halves, at once, and returns the ids of the children.
func (s *Server) Split(db, coll, rangeID string) (children []string, err error) {
	finish, err := s.StartSplit(db, coll, rangeID)
	if err != nil {
		return nil, err
	}
	return finish(), nil
}

// StartSplit begins a split that goes on until finish is called: the range appears in the feed of
// ranges again, with another status, and requests that name it are answered 410 with substatus
// 1007. Documents can be written all the while.
func (s *Server) StartSplit(db, coll, rangeID string) (finish func() (children []string), err error) {
	c, err := s.container(db, coll)
	if err != nil {
		return nil, err
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	parent, ok := c.routing.Load().byID(rangeID)
	if !ok {
		return nil, fmt.Errorf("splitting partition key range %s of %s/%s: there is no such range", rangeID, db, coll)
	}
	middle, ok := epk.Middle(parent.span.low, parent.span.high)
	if !ok {
		return nil, fmt.Errorf("splitting partition key range %s of %s/%s: it is too narrow", rangeID, db, coll)
	}
	if parent.splitting.Swap(true) {
		return nil, fmt.Errorf("splitting partition key range %s of %s/%s: it is being split already", rangeID, db, coll)
	}
	c.publish([]string{parent.id}, []*partition{parent}, "splitting", false)
	var done []string
	return func() []string {
		c.shape.Lock()
		defer c.shape.Unlock()
		if done == nil {
			done = c.finishSplit(parent, middle)
		}
		return done
	}, nil
}

func (c *container) finishSplit(parent *partition, middle string) (ids []string) {
	parent.mu.Lock()
	defer parent.mu.Unlock()
	lineage := append(slices.Clone(parent.parents), parent.id)
	var children []*partition
	for _, s := range []span{{parent.span.low, middle}, {middle, parent.span.high}} {
		child := c.newRange(s, lineage, parent.lsn)
		child.inherit(parent)
		children, ids = append(children, child), append(ids, child.id)
	}
	parent.closed = true
	c.publish([]string{parent.id}, children, "online", false)
	return ids
}

// inherit copies what of a parent lies in the span. The caller holds the parent's mu.
func (p *partition) inherit(parents ...*partition) {
	var documents []*document
	var log []version
	for _, parent := range parents {
		p.merged = p.merged || parent.merged || len(parents) > 1
		for d := range parent.changes.from(0) {
			if p.span.contains(d.epk) {
				documents = append(documents, d)
			}
		}
		for _, v := range parent.versions.log {
			if p.span.contains(v.epk) {
				log = append(log, v)
			}
		}
		p.versions.dropped = max(p.versions.dropped, parent.versions.dropped)
	}
	p.adopt(documents, log)
}

// Merge unites two neighbouring partition key ranges and returns the id of the child. Documents
// keep their LSNs, so that a reader of either half goes on where it was; the child's own LSN is
// above both.
func (s *Server) Merge(db, coll, rangeA, rangeB string) (child string, err error) {
	c, err := s.container(db, coll)
	if err != nil {
		return "", err
	}
	c.shape.Lock()
	defer c.shape.Unlock()
	routes := c.routing.Load()
	a, aok := routes.byID(rangeA)
	b, bok := routes.byID(rangeB)
	if aok && bok && epk.Compare(b.span.high, a.span.low) == 0 {
		a, b = b, a
	}
	switch {
	case !aok || !bok:
		return "", fmt.Errorf("merging partition key ranges %s and %s of %s/%s: there is no such range", rangeA, rangeB, db, coll)
	case epk.Compare(a.span.high, b.span.low) != 0:
		return "", fmt.Errorf("merging partition key ranges %s and %s of %s/%s: they are no neighbours", rangeA, rangeB, db, coll)
	case a.splitting.Load() || b.splitting.Load():
		return "", fmt.Errorf("merging partition key ranges %s and %s of %s/%s: one is being split", rangeA, rangeB, db, coll)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	lineage := slices.Clone(a.parents)
	for _, id := range slices.Concat(b.parents, []string{a.id, b.id}) {
		if !slices.Contains(lineage, id) {
			lineage = append(lineage, id)
		}
	}
	merged := c.newRange(span{a.span.low, b.span.high}, lineage, max(a.lsn, b.lsn)+1)
	merged.inherit(a, b)
	a.closed, b.closed = true, true
	c.publish([]string{a.id, b.id}, []*partition{merged}, "online", true)
	return merged.id, nil
}

// newRange makes a partition under the next id. The caller holds shape.
func (c *container) newRange(s span, parents []string, lsn uint64) *partition {
	id := c.nextRange
	c.nextRange++
	return newPartition(c, strconv.Itoa(id), uint64(id)+1, s, parents, lsn)
}

// write runs a transaction on the partition that owns a position, following splits and merges.
func (c *container) write(position string, now time.Time, fn func(*transaction) error) (*partition, error) {
	for {
		p := c.routing.Load().owner(position)
		if ok, err := p.write(now, fn); ok {
			return p, err
		}
	}
}

// read runs fn on the partition that owns a position, following splits and merges.
func (c *container) read(position string, now time.Time, fn func(*partition)) *partition {
	for {
		p := c.routing.Load().owner(position)
		if p.read(now, func() { fn(p) }) {
			return p
		}
	}
}
