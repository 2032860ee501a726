package state_test

import (
	"math"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/state"
)

func TestAnHourSumsWhatItsPollsStandFor(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type poll struct {
		second, due int
		owners      []string
		age         int64
		unread      bool
	}
	for _, c := range []struct {
		rule     string
		polls    []poll
		finished int // hours
		want     state.Summary
		over     float64
	}{
		{"live owners times the time since the poll before", []poll{{second: 0}, {15, 15, []string{"a", "b"}, 0, false}, {30, 30, []string{"a"}, 0, false}}, 0,
			state.Summary{Seconds: 30, OwnersKnown: 30, ReplicaSeconds: 45, Changes: 2, RequestCharge: 3}, 0},
		{"leases that cannot be read have no owners, rather than none", []poll{{0, 0, []string{"a"}, 0, false}, {15, 15, nil, 0, true}, {30, 30, []string{"a"}, 0, false}}, 0,
			state.Summary{Seconds: 30, OwnersKnown: 15, ReplicaSeconds: 15, RequestCharge: 3}, 0},
		{"a poll that its schedule makes every five minutes stands for those", []poll{{0, 0, []string{"a"}, 0, false}, {300, 300, []string{"a"}, 90, false}}, 0,
			state.Summary{Seconds: 300, OwnersKnown: 300, ReplicaSeconds: 300, RequestCharge: 2, OverObjective: 300}, 90},
		{"a late poll leaves a gap", []poll{{0, 0, []string{"a"}, 0, false}, {300, 15, []string{"a"}, 0, false}}, 0,
			state.Summary{Seconds: 30, OwnersKnown: 30, ReplicaSeconds: 30, RequestCharge: 2}, 0},
		{"the next hour begins anew, and knows the owners before", []poll{{0, 0, []string{"a"}, 90, false}, {3590, 3590, []string{"a"}, 0, false}, {3605, 3605, []string{"b", "c"}, 0, false}}, 1,
			state.Summary{Seconds: 15, OwnersKnown: 15, ReplicaSeconds: 30, Changes: 1, RequestCharge: 1}, 0},
		{"a clock that goes back does not finish an hour twice", []poll{{3600, 0, nil, 0, false}, {3599, 3615, nil, 0, false}, {3614, 3614, []string{"a"}, 0, false}}, 0,
			state.Summary{Seconds: 15, OwnersKnown: 15, ReplicaSeconds: 15, Changes: 1, RequestCharge: 3}, 0},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var last state.State
			finished := 0
			for _, p := range c.polls {
				at := noon.Add(time.Duration(p.second) * time.Second)
				lag := changefeed.ProcessorLag{Time: at, Charge: 1}
				if p.unread {
					lag.Error = "the leases cannot be read"
				}
				for _, owner := range p.owners {
					lag.Partitions = append(lag.Partitions, changefeed.Partition{Lease: owner, Owner: owner, LeaseTime: at, Lag: &p.age, Age: &p.age, Status: changefeed.StatusOK})
				}
				next := state.State{AttemptedAt: at, Lag: lag}
				next.Record(&last, state.Observation{LeaseExpiration: time.Minute, Due: noon.Add(time.Duration(p.due) * time.Second)})
				if next.Finished != nil {
					finished++
				}
				last = next
			}
			got := *last.Hour
			sum := 0.0
			for _, seconds := range got.StatusSeconds {
				sum += seconds
			}
			if math.Abs(got.Seconds-c.want.Seconds) > 1e-9 || got.OwnersKnown != c.want.OwnersKnown || got.ReplicaSeconds != c.want.ReplicaSeconds ||
				got.Changes != c.want.Changes || got.RequestCharge != c.want.RequestCharge || got.OverObjective != c.want.OverObjective || sum != got.Seconds {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if finished != c.finished {
				t.Errorf("%d hours were finished, want %d", finished, c.finished)
			}
			if c.over > 0 && (got.WorstAge == nil || float64(*got.WorstAge) != c.over) {
				t.Errorf("worst age %v, want %v", got.WorstAge, c.over)
			}
		})
	}
}
