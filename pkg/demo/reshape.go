package demo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// Reshaping is when a partition is split and merged again. Zero stands for the default.
type Reshaping struct {
	SplitAfter time.Duration // from the start, and again from each merge, until a split begins; default 35 s
	SplitTakes time.Duration // during which the partition cannot be read; default 2 s
	MergeAfter time.Duration // from the end of a split until its children are merged; default 35 s
}

func (r Reshaping) withDefaults() Reshaping {
	return Reshaping{
		SplitAfter: cmp.Or(r.SplitAfter, 35*time.Second),
		SplitTakes: cmp.Or(r.SplitTakes, 2*time.Second),
		MergeAfter: cmp.Or(r.MergeAfter, 35*time.Second),
	}
}

// Happening is something that the account did to a container of the world by itself.
type Happening struct {
	Time time.Time
	Text string // for people, such as "partition 2 of orders was split into 6 and 7"
}

// recentHappenings is how many happenings are kept.
const recentHappenings = 5

// reshaper splits one partition of a container and merges it, again and again. It always cuts the
// same keys, so that neither the partitions nor the leases become more and more in a demo that is
// left running.
type reshaper struct {
	account   *cosmosfake.Server
	container string
	rangeID   string // of the partition, before the first split
	timing    Reshaping
	now       func() time.Time

	mu     sync.Mutex
	recent []Happening // the oldest first
}

// run splits and merges until ctx ends.
func (r *reshaper) run(ctx context.Context) error {
	for whole := r.rangeID; ; {
		children, err := r.split(ctx, whole)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if sleep(ctx, r.timing.MergeAfter); ctx.Err() != nil {
			return nil
		}
		if whole, err = r.account.Merge(database, r.container, children[0], children[1]); err != nil {
			return fmt.Errorf("merging partitions of the demo: %w", err)
		}
		r.note("partitions %s and %s of %s were merged into %s", children[0], children[1], r.container, whole)
	}
}

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// split splits a partition in two, unless ctx ends first.
func (r *reshaper) split(ctx context.Context, whole string) (children []string, err error) {
	if sleep(ctx, r.timing.SplitAfter); ctx.Err() != nil {
		return nil, nil
	}
	finish, err := r.account.StartSplit(database, r.container, whole)
	if err != nil {
		return nil, fmt.Errorf("splitting a partition of the demo: %w", err)
	}
	r.note("partition %s of %s is being split", whole, r.container)
	if sleep(ctx, r.timing.SplitTakes); ctx.Err() != nil {
		return nil, nil
	}
	children = finish()
	r.note("partition %s of %s was split into %s and %s", whole, r.container, children[0], children[1])
	return children, nil
}

func (r *reshaper) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = append(r.recent, Happening{Time: r.now(), Text: fmt.Sprintf(format, args...)})
	r.recent = r.recent[max(0, len(r.recent)-recentHappenings):]
}

// happenings returns a copy of the last happenings, the oldest first.
func (r *reshaper) happenings() []Happening {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Happening(nil), r.recent...)
}
