package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// overlapping reads which partition key ranges have keys of a lease by now, at least one.
func (h *host) overlapping(ctx context.Context, l leasefake.DotNetLease) ([]keyRange, error) {
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

// replace puts others in the place of a lease that has to be replaced, and returns those of them
// that are new. They continue where it was. Where there is nothing to replace any more the lease is
// given up for now. errLost says that another host has it, and may be further.
func (h *host) replace(ctx context.Context, id string) (created []leasefake.DotNetLease, err error) {
	gone, err := h.leases.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if !gone.OwnedBy(h.Host) {
		return nil, errLost
	}
	ranges, err := h.overlapping(ctx, gone)
	if err != nil {
		return nil, err
	}
	wanted := successors(h.leases.processor, gone, ranges)
	if len(wanted) == 0 {
		return nil, h.leases.release(ctx, id)
	}
	for _, successor := range wanted {
		added, ok, err := h.leases.add(ctx, successor)
		if err != nil {
			return nil, err
		}
		if ok {
			created = append(created, added)
		}
	}
	return created, h.leases.remove(ctx, id)
}

// successors are the leases that replace one, by the rules of the SDK. A range that was split is
// replaced by the ranges it became. Where it was merged, an EPK lease goes on with just the keys it
// had, since no single continuation fits those of the other ranges too. An EPK lease that lies in
// several ranges is cut at their bounds, and one that lies in a single range stays.
func successors(p leasefake.Processor, gone leasefake.DotNetLease, ranges []keyRange) []leasefake.DotNetLease {
	split := len(ranges) > 1
	from := leasefake.Fields{Continuation: gone.Continuation}
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
