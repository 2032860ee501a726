package poller

import (
	"context"
	"slices"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// provisionShare is the share of the tick's time that provisioning may take.
const provisionShare = 5

// beginThroughput begins the turn of the containers whose throughput follows processors. A shard has none.
func (t *tick) beginThroughput(ctx context.Context) {
	if t.Throughput != nil && t.mode.Shard == nil {
		t.containers = t.Throughput.Begin(ctx, t.start)
	}
}

// want is what a processor asks for in a State, which may be gone.
func (d *poll) want(s *state.State) throughput.Want {
	w := throughput.Want{Replicas: d.replicas, Paused: d.processor.Policy.Paused, PerReplica: d.perReplica}
	if s != nil {
		w.Replicas = s.Memory.Replicas
	}
	return w
}

// follow adds to the State of a processor what its containers need.
func (t *tick) follow(d *poll) {
	if t.containers == nil {
		return
	}
	w := d.want(d.state)
	w.Member = d.processor.Group != ""
	containers, spent := t.containers.Follow(d.name, w, d.last.Containers)
	d.state.Containers = containers
	d.state.Lag.Requests += spent.Requests
	d.state.Lag.Charge += spent.Charge
}

// followGroup adds to the State of a group what the containers of its members need for what it decided.
func (t *tick) followGroup(d *subject, members []*poll) {
	if t.containers == nil {
		return
	}
	for _, m := range members {
		w := m.want(m.current())
		w.Replicas = d.state.Memory.Replicas
		containers, _ := t.containers.Follow(m.name, w, m.current().Containers)
		for _, c := range containers {
			if !slices.ContainsFunc(d.state.Containers, c.Same) {
				d.state.Containers = append(d.state.Containers, c)
			}
		}
	}
}

// provision has the containers follow what the tick decided, and the result of this tick tell what became of
// them. A dry run only tells.
func (t *tick) provision(ctx context.Context, polls []*poll, groups []*subject) {
	if t.containers == nil || t.stopping.Err() != nil {
		return
	}
	if !t.mode.DryRun {
		ctx, cancel := context.WithTimeout(ctx, t.Timeout/provisionShare)
		defer cancel()
		t.containers.Settle(ctx, wants(polls, groups))
	}
	for _, d := range polls {
		if containers := t.containers.Shown(d.name); d.state != nil && containers != nil {
			d.state.Containers = containers
		}
	}
}

// wants is what each processor asks for or, of a member, its group.
func wants(polls []*poll, groups []*subject) map[string]throughput.Want {
	all := make(map[string]throughput.Want, len(polls))
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
		all[d.name] = w
	}
	return all
}

// limitOf returns the container of a processor that its last poll found at its limit; nil where there is none.
func limitOf(last *state.State) *scaling.Limit {
	for _, c := range last.Containers {
		if c.AtLimit() {
			return &scaling.Limit{Container: c.Name(), RUPerSecond: c.Provisioned, LagBefore: last.Lag.Lag()}
		}
	}
	return nil
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
