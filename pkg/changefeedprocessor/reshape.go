package changefeedprocessor

import (
	"errors"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// replace puts other leases in the place of one whose range was split or merged, takes those of them
// that are new, and deletes the lease (PartitionControllerCore.HandlePartitionGoneAsync). If it fails
// in between, whoever takes the lease next finds those that are there already.
func (p *partition) replace() error {
	ranges, err := p.feed.ranges(p.owning, true)
	if err != nil {
		return err
	}
	// The lease is written first: a host that lost it unnoticed must not create others from an old
	// continuation.
	if err := p.insist(p.owning, func() error { return p.update(p.owning, p.leases.renew) }); err != nil {
		return err
	}
	p.mu.Lock()
	gone, continuation := p.lease, p.safe
	p.mu.Unlock()
	wanted, err := p.leases.Successors(ranges, gone.Lease, continuation, time.Now())
	if err != nil {
		return err
	}
	if len(wanted) == 0 {
		return errors.New("its partition key range is back, so that the lease fits again")
	}
	var created []*changefeed.Record
	for _, next := range wanted {
		if err := p.insist(p.owning, func() error {
			ok, err := p.leases.add(p.owning, next)
			if ok {
				created = append(created, next)
			}
			return err
		}); err != nil {
			return err
		}
	}
	removed := p.insist(p.owning, func() error { return p.update(p.owning, p.leases.drop) })
	for _, next := range created {
		p.take(next)
	}
	return removed
}
