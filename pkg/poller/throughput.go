package poller

import (
	"context"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Want is what a processor asks for, for what provisions the request units of its replicas
// (docs/throughput.md).
type Want struct {
	Replicas   *int    // of its last decision, or of its group's; nil where that is not known
	Member     bool    // Replicas is what the processor alone asks for, and its group has yet to decide
	Paused     bool    // nothing is done for it
	PerReplica float64 // request units a second that one replica uses to read the monitored container; 0 where that was not measured
}

// Follow tells, as soon as a processor is decided, what its containers need for that: it reads those
// that were never read, and changes nothing. last is what stood in the State of the poll before.
type Follow func(ctx context.Context, now time.Time, processor string, w Want, last []state.ContainerThroughput) Followed

// Followed is what is known of the containers of a processor.
type Followed struct {
	Containers []state.ContainerThroughput
	Requests   int     // made for them since the poll before
	Charge     float64 // request units of those
}

// Provision provisions what the replicas of processors need, by their names, behind the tick.
type Provision func(ctx context.Context, now time.Time, wants map[string]Want) Provisioned

// Provisioned is what became of that, by the names of processors.
type Provisioned struct {
	Limits     map[string]scaling.Limit // of those with a container at its limit, which one that is
	Containers map[string][]state.ContainerThroughput
}

// provisionShare is the share of the tick's time that provisioning may take.
const provisionShare = 5

// want is what a processor asks for in a State, which may be gone.
func (d *poll) want(s *state.State) Want {
	w := Want{Replicas: d.replicas, Paused: d.processor.Policy.Paused, PerReplica: d.perReplica}
	if s != nil {
		w.Replicas = s.Memory.Replicas
	}
	return w
}

// follow adds to the State of a processor what its containers need.
func (t *tick) follow(ctx context.Context, d *poll) {
	if t.Follow == nil {
		return
	}
	w := d.want(d.state)
	w.Member = d.processor.Group != ""
	f := t.Follow(ctx, t.start, d.name, w, d.last.Containers)
	d.state.Containers = f.Containers
	d.state.Lag.Requests += f.Requests
	d.state.Lag.Charge += f.Charge
}

// followGroup adds to the State of a group what the containers of its members need for what it decided.
func (t *tick) followGroup(ctx context.Context, d *subject, members []*poll) {
	if t.Follow == nil {
		return
	}
	for _, m := range members {
		w := m.want(m.current())
		w.Replicas = d.state.Memory.Replicas
		for _, c := range t.Follow(ctx, t.start, m.name, w, m.current().Containers).Containers {
			if !slices.ContainsFunc(d.state.Containers, c.Same) {
				d.state.Containers = append(d.state.Containers, c)
			}
		}
	}
}

// provision hands the decisions of a tick over, keeps which containers are at their limit for the next
// one, and has the result of this one tell what became of them.
func (t *tick) provision(ctx context.Context, polls []*poll, groups []*subject) {
	if t.Provision == nil || t.stopping.Err() != nil {
		return
	}
	if t.mode.DryRun {
		for _, d := range polls {
			if d.due && d.err == nil {
				t.follow(ctx, d) // again, now that every processor has decided
			}
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.Timeout/provisionShare)
	defer cancel()
	wants := make(map[string]Want, len(polls))
	for _, d := range polls {
		w := d.want(d.current())
		for _, g := range groups {
			switch {
			case g.name != d.processor.Group:
			case g.due:
				w.Replicas = g.state.Memory.Replicas
			default:
				w.Replicas = g.last.Memory.Replicas
			}
		}
		if d.err != nil {
			w.Replicas = nil
		}
		wants[d.name] = w
	}
	done := t.Provision(ctx, t.start, wants)
	t.limits.Store(&done.Limits)
	for _, d := range polls {
		if containers := done.Containers[d.name]; d.state != nil && containers != nil {
			d.state.Containers = containers
		}
	}
}

// limitOf returns the limit that the last tick found for a processor, nil where there is none. Of a
// process that has not provisioned yet that is what the State of the last poll says.
func (p *Poller) limitOf(name string, last *state.State) *scaling.Limit {
	var limit scaling.Limit
	found := false
	if limits := p.limits.Load(); limits != nil {
		limit, found = (*limits)[name]
	} else {
		for _, c := range last.Containers {
			if c.AtLimit() && !found {
				limit, found = scaling.Limit{Container: c.Name(), RUPerSecond: c.Provisioned}, true
			}
		}
	}
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
