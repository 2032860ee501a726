package simulate

import "math/rand/v2"

// Fleet is a processor that a test moves second by second.
type Fleet struct {
	*fleet
	Row int
}

func NewFleet(t Trace, w Workers, seed uint64) *Fleet {
	f := newFleet(t, w, rand.New(rand.NewPCG(seed, 1)))
	f.steps = 1
	return &Fleet{fleet: f}
}

// Scale asks for a number of replicas.
func (f *Fleet) Scale(replicas int) { f.scale(f.Row, replicas) }

// Second lets a second pass.
func (f *Fleet) Second() {
	f.second(f.Row)
	f.Row++
}

// Held is how many leases each working host has, by the leases' own owners.
func (f *Fleet) Held() map[string]int {
	held := make(map[string]int)
	for _, h := range f.hosts {
		held[h.name] = 0
	}
	for p := range f.leases {
		if owner := f.leases[p].owner; owner != nil {
			held[owner.name]++
		}
	}
	return held
}

// Listed is how many leases each working host has, by what it works on.
func (f *Fleet) Listed() map[string]int {
	listed := make(map[string]int)
	for _, h := range f.hosts {
		listed[h.name] = len(h.leases)
	}
	return listed
}

// Counts are the transactions so far.
func (f *Fleet) Counts() (arrived, processed, pending int64) {
	for p := range f.leases {
		arrived += f.leases[p].arrived
		processed += f.leases[p].done
	}
	return arrived, processed, f.pending
}
