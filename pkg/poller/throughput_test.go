package poller_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// provisioned are containers of 500 RU/s; each request costs 1 RU.
type provisioned struct {
	w    *world
	mu   sync.Mutex
	made map[string]int // what was provisioned, by container
	read int
}

func (p *provisioned) ReadThroughput(_ context.Context, c cosmos.Container) (cosmos.Throughput, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read++
	ru := 500
	if made, ok := p.made[c.ID]; ok {
		ru = made
	}
	return cosmos.Throughput{RUPerSecond: ru}, nil
}

func (p *provisioned) ReplaceThroughput(ctx context.Context, c cosmos.Container, _ cosmos.Throughput, ru int) (cosmos.Throughput, error) {
	if record, err := storetest.Load(ctx, p.w.store, "orders"); err != nil || record.Version == "" {
		p.w.t.Errorf("the decision is not committed yet: %v", err)
	}
	p.mu.Lock()
	p.made[c.ID] = ru
	p.mu.Unlock()
	return p.ReadThroughput(ctx, c)
}

// follow has a container of each processor follow it, and one both, of 1000 RU/s a replica.
func (w *world) follow(most int, processors ...string) *provisioned {
	p := &provisioned{w: w, made: map[string]int{}}
	w.poller.Throughput = &throughput.Keeper{Store: w.store, Log: w.poller.Log, Open: func(string) (throughput.Client, error) { return p, nil }}
	named := func(id string, by ...string) {
		c := &throughput.Container{Account: "https://a", Host: "a", Setting: "COSMOS", Container: cosmos.Container{Database: "shop", ID: id}, Client: p, Apply: true,
			Policy: scaling.ThroughputPolicy{Max: most}}
		for _, name := range by {
			c.Processors = append(c.Processors, throughput.Processor{Name: name, RUPerReplica: 1000})
		}
		w.poller.Throughput.Containers = append(w.poller.Throughput.Containers, c)
	}
	for _, name := range processors {
		named(name, name)
	}
	named("both", processors...)
	return p
}

// TestWhatContainersNeedIsDecidedWithTheReplicasAndProvisionedAfterThem looks at the State and the event of
// one tick.
func TestWhatContainersNeedIsDecidedWithTheReplicasAndProvisionedAfterThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.follow(10_000, "orders")
	w.write(5)
	_, err := w.poller.Tick(t.Context(), poller.Mode{All: true, DryRun: true})
	testworld.Must(t, err)
	if len(p.made) > 0 {
		t.Errorf("a dry run provisioned %v", p.made)
	}
	polled := w.tick().Polled[0]
	if len(polled.Containers) != 2 || polled.Containers[0].Decision.RUPerSecond != 1000 || p.made["orders"] != 1000 || p.made["both"] != 1000 {
		t.Errorf("got %+v, provisioned is %v", polled.Containers, p.made)
	}
	record, err := storetest.Load(t.Context(), w.store, "orders")
	testworld.Must(t, err)
	if s := record.State; len(s.Containers) != 2 {
		t.Errorf("stored %+v", s.Containers)
	}
	w.poller.Processors[0].Policy.Paused = true
	w.tick()
	if p.made["orders"] != 500 || p.made["both"] != 500 {
		t.Errorf("what was found is not back while it is paused: %v", p.made)
	}
}

// TestTheEventOfAGroupHasTheContainersOfItsMembers has a member ask for more than the other.
func TestTheEventOfAGroupHasTheContainersOfItsMembers(t *testing.T) {
	t.Parallel()
	w := newGrouped(t)
	p := w.follow(100_000, "orders", "payments")
	w.write(5)
	w.Write("payments", 90)
	result := w.tick()
	want := *result.Groups[0].Memory.Replicas
	event, err := events.Decode(w.broker.got.Bytes())
	testworld.Must(t, err)
	var names []string
	for _, c := range event.Throughput {
		names = append(names, c.Container)
		if c.Container != "shop/both" && *c.Desired != 1000*want {
			t.Errorf("%s is to have %d RU/s for %d replicas of the group", c.Container, *c.Desired, want)
		}
	}
	if len(names) != 3 {
		t.Errorf("the event has %q, want each container once", names)
	}
	if p.made["orders"] != 1000*want || p.made["both"] != 2000*want {
		t.Errorf("provisioned is %v, for %d replicas of the group", p.made, want)
	}
}

// TestAContainerAtItsLimitHoldsTheNextTick has a limit found while the lag grows.
func TestAContainerAtItsLimitHoldsTheNextTick(t *testing.T) {
	t.Parallel()
	for rule, end := range map[string]func(k *throughput.Keeper){
		"throughput is off": func(k *throughput.Keeper) { k.Containers = nil },
		"throughput is no longer provisioned": func(k *throughput.Keeper) {
			for _, c := range k.Containers {
				c.Apply = false
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("wide", 8)
			leases := w.LeasesOf("", "acct", "wide")
			for _, token := range []string{"0", "1", "2", "3", "4", "5", "6", "7"} {
				w.Put(testworld.Leases, leases.DotNetPKOld(token, testworld.At(0)))
			}
			w.poller.Processors[0].Container.ID = "wide"
			w.follow(500, "orders")
			decided := func() (replicas int, held bool) {
				d := w.tick().Polled[0].Decision
				return d.Replicas, slices.ContainsFunc(d.Reasons, func(r scaling.Reason) bool { return r.Step == "throughput" })
			}
			w.Write("wide", 10)
			if replicas, held := decided(); replicas != 1 || held {
				t.Errorf("at first: %d, held %t", replicas, held)
			}
			w.Write("wide", 30)
			if replicas, held := decided(); replicas != 1 || !held {
				t.Errorf("the lag grows: %d, held %t", replicas, held)
			}
			end(w.poller.Throughput)
			w.Write("wide", 30)
			if replicas, held := decided(); replicas == 1 || held {
				t.Errorf("after that: %d, held %t", replicas, held)
			}
		})
	}
}
