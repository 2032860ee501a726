package demo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// Reshaping is when a partition is split and merged. Zero values are replaced by the defaults.
type Reshaping struct {
	// from the start, and from each merge, until a split begins; default 35 s
	SplitAfter time.Duration
	SplitTakes time.Duration // how long the partition cannot be read; default 2 s
	MergeAfter time.Duration // from the end of a split until the merge; default 35 s
}

func (r Reshaping) withDefaults() Reshaping {
	return Reshaping{
		SplitAfter: cmp.Or(r.SplitAfter, 35*time.Second),
		SplitTakes: cmp.Or(r.SplitTakes, 2*time.Second),
		MergeAfter: cmp.Or(r.MergeAfter, 35*time.Second),
	}
}

// reshaper splits one partition of a container and merges it again, repeatedly. It always cuts at
// the same key, so that the numbers of partitions and leases stay bounded.
type reshaper struct {
	account   *cosmosfake.Server
	container string
	rangeID   string // of the partition before the first split
	timing    Reshaping
	journal   *journal

	mu      sync.Mutex
	isSplit bool          // or the split has begun
	changed chan struct{} // has one element after somebody else changed isSplit
}

func newReshaper(account *cosmosfake.Server, timing Reshaping, j *journal) *reshaper {
	return &reshaper{account: account, container: troubled, rangeID: reshapedRange, timing: timing.withDefaults(), journal: j, changed: make(chan struct{}, 1)}
}

// split reports whether the partition is split, or is being split.
func (r *reshaper) split() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isSplit
}

// ask requests a split or a merge at once.
func (r *reshaper) ask(split bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if split == r.isSplit {
		return
	}
	r.isSplit = split
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// turn waits until the next split or merge is due or requested.
func (r *reshaper) turn(ctx context.Context, d time.Duration, split bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.changed:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isSplit = split
	select { // a request that came when the timer fired is done now
	case <-r.changed:
	default:
	}
}

// run splits and merges until ctx ends.
func (r *reshaper) run(ctx context.Context) error {
	for whole := r.rangeID; ; {
		children, err := r.cut(ctx, whole)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if r.turn(ctx, r.timing.MergeAfter, false); ctx.Err() != nil {
			return nil
		}
		if whole, err = r.account.Merge(database, r.container, children[0], children[1]); err != nil {
			return fmt.Errorf("merging partitions of the demo: %w", err)
		}
		r.journal.note("partitions %s and %s of %s were merged into %s", children[0], children[1], r.container, whole)
	}
}

// sleep waits, but not beyond the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// cut splits a partition in two, unless ctx ends first.
func (r *reshaper) cut(ctx context.Context, whole string) (children []string, err error) {
	if r.turn(ctx, r.timing.SplitAfter, true); ctx.Err() != nil {
		return nil, nil
	}
	finish, err := r.account.StartSplit(database, r.container, whole)
	if err != nil {
		return nil, fmt.Errorf("splitting a partition of the demo: %w", err)
	}
	r.journal.note("partition %s of %s is being split", whole, r.container)
	if sleep(ctx, r.timing.SplitTakes); ctx.Err() != nil {
		return nil, nil
	}
	children = finish()
	r.journal.note("partition %s of %s was split into %s and %s", whole, r.container, children[0], children[1])
	return children, nil
}
