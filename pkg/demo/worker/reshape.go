package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// overlapping reads which partition key ranges have keys of a lease by now, at least one.
func (h *host) overlapping(ctx context.Context, l leasefake.DotNetLease) ([]keyRange, error) {
	if l.FeedRange == nil {
		return nil, fmt.Errorf("lease %s dates from before leases said their range, and its range is no more", l.ID)
	}
	ranges, err := h.Account.ranges(ctx, h.Monitored)
	if err != nil {
		return nil, err
	}
	ranges = slices.DeleteFunc(ranges, func(r keyRange) bool { return !overlap(r.span(), l.FeedRange.Range) })
	if len(ranges) == 0 {
		return nil, fmt.Errorf("no partition key range of %s has keys of lease %s", h.Monitored, l.ID)
	}
	return ranges, nil
}

// locate finds where the changes of a lease are. The error wraps errGone where the lease has to be
// replaced: one of a range that is no more, and an EPK lease whose keys are in several ranges.
func (h *host) locate(ctx context.Context, l leasefake.DotNetLease) (place, error) {
	ranges, err := h.overlapping(ctx, l)
	if err != nil {
		return place{}, err
	}
	switch first := ranges[0]; {
	case len(ranges) > 1, l.Version == leasefake.PKVersion && first.ID != l.Token:
		return place{}, fmt.Errorf("locating lease %s: %w", l.ID, errGone)
	case first.span() == l.FeedRange.Range:
		return place{rangeID: first.ID}, nil
	default:
		return place{rangeID: first.ID, part: &l.FeedRange.Range}, nil
	}
}

// replace puts others in the place of a lease that has to be replaced, takes those of them that are
// new, and deletes the lease (PartitionControllerCore.HandlePartitionGoneAsync). Where the deletion
// fails the lease is left over, beside those that replaced it: whoever takes it next finds that
// they are there already, and tries to delete it again.
func (p *partition) replace(ctx context.Context) error {
	ranges, err := p.overlapping(ctx, p.lease)
	if err != nil {
		return err
	}
	wanted := successors(p.leases.processor, p.lease, p.position, ranges)
	var created []leasefake.DotNetLease
	for _, successor := range wanted {
		added, ok, err := p.leases.add(ctx, successor)
		if err != nil {
			return err
		}
		if ok {
			created = append(created, added)
		}
	}
	for _, successor := range created {
		p.take(ctx, successor)
	}
	if len(wanted) == 0 {
		return nil // a split came and went: the lease fits again
	}
	return p.leases.remove(ctx, p.id)
}

// successors are the leases that replace one (PartitionSynchronizerCore). They continue where it
// was read last, which may be behind its checkpoint. A range that was split is replaced by the
// ranges it became. Where it was merged, an EPK lease goes on with just the keys it had, since no
// single continuation fits those of the other ranges too. An EPK lease that lies in several ranges
// is cut at their bounds, and one that lies in a single range stays.
func successors(p leasefake.Processor, gone leasefake.DotNetLease, at position, ranges []keyRange) []leasefake.DotNetLease {
	split := len(ranges) > 1
	from := leasefake.Fields{Continuation: at.continuation}
	var leases []leasefake.DotNetLease
	switch {
	case gone.Version == leasefake.PKVersion && split:
		for _, r := range ranges {
			leases = append(leases, p.PKLease(r.ID, r.span(), from))
		}
	case gone.Version == leasefake.PKVersion:
		leases = append(leases, p.EPKLease(gone.FeedRange.Range, from))
	case split:
		for _, r := range ranges {
			leases = append(leases, p.EPKLease(clip(gone.FeedRange.Range, r.span()), from))
		}
	}
	return leases
}
