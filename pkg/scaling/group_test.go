package scaling_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/feedscale/feedscale/pkg/scaling"
)

func asks(name string, replicas int) scaling.Member {
	return scaling.Member{Processor: name, Replicas: &replicas, Active: replicas > 0}
}

func holds(name string, replicas int) scaling.Member {
	m := asks(name, replicas)
	m.Held = true
	return m
}

func unmeasured(name string) scaling.Member { return scaling.Member{Processor: name} }

// TestGroup is step 11.
func TestGroup(t *testing.T) {
	t.Parallel()
	bounds := func(low, high int) scaling.GroupPolicy {
		return scaling.GroupPolicy{MinReplicas: low, MaxReplicas: &high}
	}
	last := func(n int) scaling.Memory { return scaling.Memory{Replicas: &n, Active: n > 0} }
	type members = []scaling.Member
	for _, c := range []struct {
		rule    string
		members members
		policy  scaling.GroupPolicy
		memory  scaling.Memory
		want    string
	}{
		{"the highest of its members", members{asks("a", 2), asks("b", 5), asks("c", 0)}, scaling.GroupPolicy{}, last(3), "5 active 5 out [group=5]"},
		{"one that is unknown or stale holds its last", members{asks("a", 2), holds("b", 4)}, scaling.GroupPolicy{}, last(4), "4 active 4 none [group=4]"},
		{"and may be outdone", members{asks("a", 6), holds("b", 4)}, scaling.GroupPolicy{}, last(4), "6 active 6 out [group=6]"},
		{"all idle is idle", members{asks("a", 0), asks("b", 0)}, scaling.GroupPolicy{}, last(1), "0 inactive 0 in [group=0]"},
		{"the group's maximum holds", members{asks("a", 30)}, bounds(0, 20), last(20), "20 active 20 none [group=30 clamp=20]"},
		{"the group's minimum holds", members{asks("a", 0)}, bounds(2, 20), last(2), "2 inactive 2 none [group=0 clamp=2]"},
		{"the first decision goes out from nothing", members{asks("a", 0)}, scaling.GroupPolicy{}, scaling.Memory{}, "0 inactive 0 none [group=0]"},
		{"a member that was never decided lowers nothing", members{asks("a", 1), unmeasured("b")}, scaling.GroupPolicy{}, last(3), "3 active 3 none [group=1 incomplete=3]"},
		{"nor activity", members{asks("a", 0), unmeasured("b")}, scaling.GroupPolicy{}, last(3), "3 active 3 none [group=0 incomplete=3]"},
		{"the others may ask for more than the last beside it", members{asks("a", 4), unmeasured("b")}, scaling.GroupPolicy{}, last(3), "4 active 4 out [group=4]"},
		{"what was at zero stays there beside it", members{asks("a", 0), unmeasured("b")}, scaling.GroupPolicy{}, last(0), "0 inactive 0 none [group=0]"},
		{"zero is no first decision beside it", members{asks("a", 0), unmeasured("b")}, scaling.GroupPolicy{}, scaling.Memory{}, "undecided"},
		{"one that asks is", members{asks("a", 2), unmeasured("b")}, scaling.GroupPolicy{}, scaling.Memory{}, "2 active 2 out [group=2]"},
		{"one that was paused before its first decision does not count", members{asks("a", 0), {Processor: "b", Paused: true}}, scaling.GroupPolicy{}, last(3), "0 inactive 0 in [group=0]"},
		{"nothing known, nothing decided", members{unmeasured("a"), unmeasured("b")}, bounds(2, 20), last(3), "undecided"},
		{"nor without members", nil, bounds(2, 20), last(3), "undecided"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			d, memory := scaling.Group(start, c.members, c.policy, c.memory)
			if got := describe(d); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			switch {
			case d == nil:
				if !reflect.DeepEqual(memory, c.memory) {
					t.Errorf("without a decision the memory became %+v", memory)
				}
			case *memory.Replicas != d.Replicas || memory.Active != d.Active || !d.Time.Equal(start) || !reflect.DeepEqual(d.Previous, c.memory.Replicas):
				t.Errorf("decision %+v, memory %+v", d, memory)
			}
		})
	}
	t.Run("the reason names who asks", func(t *testing.T) {
		t.Parallel()
		for want, m := range map[string]members{
			"b asks for the most of 3 members":                    {asks("a", 2), asks("b", 5), asks("c", 5)},
			"b holds its last decision, the highest of 2 members": {asks("a", 2), holds("b", 5)},
		} {
			d, _ := scaling.Group(start, m, scaling.GroupPolicy{}, scaling.Memory{})
			if got := d.Reasons[0].Why; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// TestAGroupNeverFlipsWhileItsMembersHold: its decision changes only when a member's does. It never
// exceeds the highest member, the group's minimum or, with an undecided member, its last decision.
func TestAGroupNeverFlipsWhileItsMembersHold(t *testing.T) {
	t.Parallel()
	for seed := range uint64(stories) {
		r := rand.New(rand.NewPCG(seed, 1))
		policy := scaling.GroupPolicy{MinReplicas: r.IntN(4)}
		if r.IntN(2) == 0 {
			most := max(1, policy.MinReplicas) + r.IntN(10)
			policy.MaxReplicas = &most
		}
		members := make([]scaling.Member, 1+r.IntN(5))
		for i := range members {
			members[i] = unmeasured(fmt.Sprint("p", i))
		}
		var memory scaling.Memory
		var before *scaling.Decision
		for poll := range 40 {
			changed := poll == 0
			for i := range members {
				switch m := &members[i]; r.IntN(12) {
				case 0:
					m.Held = m.Replicas != nil // a failed measurement keeps the last decision
				case 1:
					n := r.IntN(12)
					changed = changed || m.Replicas == nil || *m.Replicas != n
					m.Replicas, m.Active, m.Held = &n, n > 0, false
				}
			}
			d, next := scaling.Group(start, members, policy, memory)
			wanted, undecided := 0, false
			for _, m := range members {
				if m.Replicas == nil {
					undecided = true
				} else {
					wanted = max(wanted, *m.Replicas)
				}
			}
			switch {
			case d == nil:
				if before != nil && !changed {
					t.Fatalf("seed %d, poll %d: nothing is decided any more", seed, poll)
				}
				continue
			case !changed && before != nil && (d.Direction != scaling.None || d.Replicas != before.Replicas || d.Active != before.Active):
				t.Fatalf("seed %d, poll %d: %s, though no member moved from %s", seed, poll, describe(d), describe(before))
			case d.Replicas < policy.MinReplicas || policy.MaxReplicas != nil && d.Replicas > *policy.MaxReplicas:
				t.Fatalf("seed %d, poll %d: %s is out of bounds", seed, poll, describe(d))
			case undecided && before != nil && d.Replicas < before.Replicas:
				t.Fatalf("seed %d, poll %d: %s, though a member is unknown", seed, poll, describe(d))
			case !undecided && d.Replicas > max(wanted, policy.MinReplicas):
				t.Fatalf("seed %d, poll %d: %s, though the members ask for %d", seed, poll, describe(d), wanted)
			case d.Replicas < wanted && (policy.MaxReplicas == nil || d.Replicas < *policy.MaxReplicas):
				t.Fatalf("seed %d, poll %d: %s, though a member asks for %d", seed, poll, describe(d), wanted)
			case d.Active && d.Replicas == 0:
				t.Fatalf("seed %d, poll %d: active without a replica", seed, poll)
			}
			memory, before = next, d
		}
	}
}
