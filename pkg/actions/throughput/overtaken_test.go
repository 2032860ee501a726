package throughput_test

import (
	"context"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// overtaken is a client whose process is slow between the commit of a change and the change.
type overtaken struct {
	throughput.Client
	before func()
}

func (o overtaken) ReplaceThroughput(ctx context.Context, c cosmos.Container, from cosmos.Throughput, n int) (cosmos.Throughput, error) {
	o.before()
	return o.Client.ReplaceThroughput(ctx, c, from, n)
}

// TestAChangeThatAnotherProcessMakesLateIsOurs is what the simulation found at its first seed: one process
// commits a change and is slow to make it, another one settles in between, and then takes what the first
// one makes for somebody else's.
func TestAChangeThatAnotherProcessMakesLateIsOurs(t *testing.T) {
	t.Parallel()
	for rule, replicas := range map[string]int{"the other process changes nothing": 2, "the other process wants more": 8} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, false)
			slow, other := s.keeper(), s.keeper()
			s.settle(other, s.follow(true, 2)) // it knows what is there
			c := s.follow(true, 6)
			c.Client = overtaken{s.way, func() {
				// What cannot be changed any more, since the slow one does so first, is an error of this turn alone.
				late := s.follow(true, replicas)
				late.Client = overtaken{s.way, func() { s.provision(3000) }}
				s.try(t.Context(), other, late)
			}}
			s.try(t.Context(), slow, c)
			s.want("what the slow process made", 3000)
			s.now = s.now.Add(10 * time.Minute)
			if out := s.settle(other, s.follow(true, replicas))[0]; out.Note != "" {
				t.Errorf("taken for somebody else's: %s", out.Note)
			}
			s.settle(other)
			s.want("what was found is back", 1000)
		})
	}
}
