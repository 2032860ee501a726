package broker

import "container/heap"

// ready is a heap of the messages that can be received, the lowest sequence number first. Entries
// that were taken out of turn (deferred, deleted) stay until they come up.
type ready []*entry

func (r ready) Len() int           { return len(r) }
func (r ready) Less(i, j int) bool { return r[i].sequence < r[j].sequence }
func (r ready) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ready) Push(x any)        { *r = append(*r, x.(*entry)) }
func (r *ready) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = nil
	*r = (*r)[:len(*r)-1]
	return last
}

func (r *ready) add(e *entry) {
	if e.inReady {
		return
	}
	e.inReady = true
	heap.Push(r, e)
}

// first is the next message to receive, or nil.
func (r *ready) first(q *Queue) *entry {
	for len(*r) > 0 {
		e := (*r)[0]
		if q.entries[e.sequence] == e && e.receivable() {
			return e
		}
		heap.Pop(r)
		e.inReady = false
	}
	return nil
}

func (r *ready) take(q *Queue) *entry {
	e := r.first(q)
	if e != nil {
		heap.Pop(r)
		e.inReady = false
	}
	return e
}
