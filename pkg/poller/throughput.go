package poller

import (
	"context"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Want is what a processor asks for after a tick, for what provisions the request units of its replicas
// (docs/throughput.md).
type Want struct {
	Replicas   *int    // of its last decision, or of its group's; nil where that is not known
	Paused     bool    // nothing is done for it
	PerReplica float64 // request units a second that one replica uses to read the monitored container; 0 where that was not measured
}

// provision hands the decisions of a tick over, and keeps which containers are at their limit for the
// next one.
func (t *tick) provision(ctx context.Context, polls []*poll, groups []*subject) {
	if t.Provision == nil || t.mode.DryRun || t.stopping.Err() != nil {
		return
	}
	wants := make(map[string]Want, len(polls))
	for _, d := range polls {
		s := d.current()
		w := Want{Replicas: s.Memory.Replicas, Paused: d.processor.Policy.Paused, PerReplica: chargePerReplica(s)}
		for _, g := range groups {
			if g.name == d.processor.Group {
				w.Replicas = g.state.Memory.Replicas
			}
		}
		if d.err != nil {
			w.Replicas = nil
		}
		wants[d.name] = w
	}
	limits := t.Provision(ctx, t.start, wants)
	t.limits.Store(&limits)
}

// limitOf returns the limit that the last tick found for a processor, nil where there is none.
func (p *Poller) limitOf(name string, last *state.State) *scaling.Limit {
	limits := p.limits.Load()
	if limits == nil {
		return nil
	}
	limit, found := (*limits)[name]
	if !found {
		return nil
	}
	limit.LagBefore = last.Lag.Lag()
	return &limit
}

// chargePerReplica is what one replica uses to read the feed: what a page cost that was read here, which
// holds one transaction, for each transaction that a replica was seen to do in a second. It is an upper
// bound, since larger pages cost less for each; and it is nothing of what the replica does with them.
func chargePerReplica(s *state.State) float64 {
	sum, pages := 0.0, 0
	for i := range s.Lag.Partitions {
		if p := &s.Lag.Partitions[i]; p.ReadCharge > 0 && p.Status == changefeed.StatusLagging {
			sum, pages = sum+p.ReadCharge, pages+1
		}
	}
	if pages == 0 {
		return 0
	}
	return sum / float64(pages) * s.Memory.DrainPerReplica
}

// Provision provisions what the replicas of processors need, by their names, and returns for those with a
// container at its limit which one that is.
type Provision func(ctx context.Context, now time.Time, wants map[string]Want) map[string]scaling.Limit
