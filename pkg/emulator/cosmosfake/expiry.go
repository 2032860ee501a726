package cosmosfake

import (
	"container/heap"
	"time"
)

// expiry is the queue of documents that expire. Replaced versions stay in it until they are due or
// compact drops them, so a version taken out may no longer be the current one.
type expiry struct{ heap expiryHeap }

func (e *expiry) add(d *document) {
	if d.expires > 0 {
		heap.Push(&e.heap, d)
	}
}

func (e *expiry) due(now time.Time) bool {
	return len(e.heap) > 0 && e.heap[0].expires <= now.Unix()
}

func (e *expiry) pop() *document { return heap.Pop(&e.heap).(*document) }

// compact keeps the memory bounded by the live documents: a lock document that is renewed every
// second would otherwise leave a trail.
func (e *expiry) compact(live map[documentName]*document) {
	if len(e.heap) <= 2*len(live)+64 {
		return
	}
	var current expiryHeap
	for _, d := range e.heap {
		if live[d.name] == d {
			current = append(current, d)
		}
	}
	heap.Init(&current)
	e.heap = current
}

type expiryHeap []*document

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].expires < h[j].expires }
func (h expiryHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *expiryHeap) Push(x any)        { *h = append(*h, x.(*document)) }
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
