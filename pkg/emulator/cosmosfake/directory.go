package cosmosfake

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// resource has a name its owner chose and a resource id (RID) that the service chose; links use
// either.
type resource interface {
	names() (id, rid string)
}

// directory holds resources by name and by RID. Reading takes no lock: one container's traffic
// never waits for another's.
type directory[T resource] struct {
	mu      sync.Mutex
	current atomic.Pointer[index[T]]
}

// index is never changed once published.
type index[T resource] struct{ byID, byRID map[string]T }

func (d *directory[T]) load() index[T] {
	if i := d.current.Load(); i != nil {
		return *i
	}
	return index[T]{}
}

// find looks a resource up by its name, then by its RID.
func (d *directory[T]) find(name string) (found T, ok bool) {
	i := d.load()
	if found, ok = i.byID[name]; !ok {
		found, ok = i.byRID[name]
	}
	return found, ok
}

// list returns all resources in the order of their names.
func (d *directory[T]) list() []T {
	return slices.SortedFunc(maps.Values(d.load().byID), func(a, b T) int {
		x, _ := a.names()
		y, _ := b.names()
		return cmp.Compare(x, y)
	})
}

// add returns false if the name is taken.
func (d *directory[T]) add(v T) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, rid := v.names()
	i := d.load()
	if _, taken := i.byID[id]; taken {
		return false
	}
	next := index[T]{byID: map[string]T{id: v}, byRID: map[string]T{rid: v}}
	maps.Copy(next.byID, i.byID)
	maps.Copy(next.byRID, i.byRID)
	d.current.Store(&next)
	return true
}

// remove returns false if the resource does not exist any more.
func (d *directory[T]) remove(v T) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, rid := v.names()
	i := d.load()
	if _, ok := i.byRID[rid]; !ok {
		return false
	}
	next := index[T]{byID: maps.Clone(i.byID), byRID: maps.Clone(i.byRID)}
	delete(next.byID, id)
	delete(next.byRID, rid)
	d.current.Store(&next)
	return true
}
