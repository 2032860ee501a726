package poller

import (
	"cmp"
	"context"
	"slices"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

// want is what a processor asks its containers for by a State.
func (d *subject) want(s *state.State) throughput.Want {
	return throughput.Want{
		Replicas: s.Memory.Replicas, Member: d.processor.Group != "", Paused: d.processor.Policy.Paused, PerReplica: chargePerReplica(s),
	}
}

// followGroup adds to the State of a group what the containers of its members need for what it
// decided.
func (t *tick) followGroup(d *subject, members []*subject) {
	if t.containers == nil {
		return
	}
	for _, m := range members {
		w := m.asks.want
		w.Replicas, w.Member = d.next.Memory.Replicas, false
		for _, c := range t.containers.Follow(m.name, w, m.asks.containers) {
			if !slices.ContainsFunc(d.next.Containers, c.Same) {
				d.next.Containers = append(d.next.Containers, c)
			}
		}
	}
}

// provision has the containers follow what the tick decided, and puts what became of them into its
// result. A dry run changes no container.
func (t *tick) provision(ctx context.Context, polls []*subject, groups []*subject) {
	if t.containers == nil || t.stopping.Err() != nil {
		return
	}
	if !t.scope.DryRun {
		ctx, cancel := context.WithTimeout(ctx, t.budget.containers)
		defer cancel()
		t.containers.Settle(ctx, wants(polls, groups))
	}
	for _, d := range polls {
		if containers := t.containers.Shown(d.name); d.next != nil && containers != nil {
			d.next.Containers = containers
		}
	}
}

// wants is what each processor asks for; of a member, what its group asks for.
func wants(polls []*subject, groups []*subject) map[string]throughput.Want {
	all := make(map[string]throughput.Want, len(polls))
	for _, d := range polls {
		w := d.asks.want
		if i := slices.IndexFunc(groups, func(g *subject) bool { return g.name == d.processor.Group }); i >= 0 {
			w.Replicas = cmp.Or(groups[i].next, groups[i].last).Memory.Replicas
		}
		if d.err != nil {
			w.Replicas = nil
		}
		all[d.name] = w
	}
	return all
}

// chargePerReplica is how many RU/s one replica takes to read the feed: the mean charge of the
// pages that were read here, which hold one transaction each, times the transactions per second of
// a replica. It is an upper bound, since larger pages cost less per transaction. What the handler
// does is not in it.
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
