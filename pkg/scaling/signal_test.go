package scaling_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

func evenly(p *scaling.Policy)    { p.EvenPartitions = true }
func limited(p *scaling.Policy)   { p.LimitToPartitionsWithLag = true }
func excluding(p *scaling.Policy) { p.ExcludeStalled = true }

// TestEvenPartitions is the rule of KEDA's ensureEvenDistributionOfPartitions.
func TestEvenPartitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule       string
		policy     scaling.Policy
		partitions int
		lag        int64 // all in the first partition
		want       string
	}{
		{"the next count that divides the partitions, and the metric that asks for it", policy(evenly), 10, 250, "5 active 500 out [threshold=3 evenPartitions=5]"},
		{"a count that divides them stays", policy(evenly), 10, 200, "2 active 200 out [threshold=2]"},
		{"one replica owns all", policy(evenly), 10, 1, "1 active 100 out [threshold=1]"},
		{"of a prime number of partitions there is only one, or all", policy(evenly), 7, 101, "7 active 700 out [threshold=2 evenPartitions=7]"},
		{"all of them is even", policy(evenly), 8, 5000, "8 active 800 out [threshold=8]"},
		{"what is idle is not rounded up", policy(evenly), 10, 0, "0 inactive 0 none [activation=0]"},
		{"maxReplicaCount holds, though it is uneven", policy(evenly, maximum(4)), 10, 300, "4 active 500 out [threshold=3 evenPartitions=5 clamp=4]"},
		{"minReplicaCount holds, though it is uneven", policy(evenly, minimum(3)), 10, 100, "3 active 100 out [threshold=1 clamp=3]"},
		{"limitToPartitionsWithLag comes after it, as in KEDA", policy(evenly, limited), 10, 900, "1 active 100 out [threshold=1]"},
		{"without the option nothing is rounded", policy(), 10, 250, "3 active 250 out [threshold=3]"},
		{
			"what the age asks for is rounded, too",
			policy(evenly, func(p *scaling.Policy) { p.MaxChangeAge = 10 * time.Second }), 10, 1, "5 active 100 out [threshold=1 maxChangeAge=3 evenPartitions=5]",
		},
		{
			"a floor is rounded up, too",
			policy(evenly, func(p *scaling.Policy) { p.Schedules = schedules(t, floor{"UTC", "0 * * * *", "59 * * * *", 3}) }), 10, 1, "5 active 100 out [threshold=1 schedules=5]",
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			lag := measured(start, repeat(0, c.partitions)...)
			if c.lag > 0 {
				age := int64(30)
				lag.Partitions[0].Lag, lag.Partitions[0].Age, lag.Partitions[0].Status = &c.lag, &age, changefeed.StatusLagging
			}
			d := scaling.Decide(scaling.Input{Now: start, Lag: lag, Policy: c.policy}).Decision
			if got := describe(d); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestMaxLeasesPerReplica is the rule of KEDA's maxActiveLeasesPerReplica, applied to all leases.
func TestMaxLeasesPerReplica(t *testing.T) {
	t.Parallel()
	at := func(n int) func(*scaling.Policy) { return func(p *scaling.Policy) { p.MaxLeasesPerReplica = n } }
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		lag    changefeed.ProcessorLag
		want   string
	}{
		{"as many replicas as the leases need, and the metric that asks for them", policy(at(4)), measured(start, append(repeat(0, 31), 1)...), "8 active 800 out [threshold=1 maxLeasesPerReplica=8]"},
		{"rounded up", policy(at(10)), measured(start, append(repeat(0, 31), 1)...), "4 active 400 out [threshold=1 maxLeasesPerReplica=4]"},
		{"it only raises", policy(at(4)), measured(start, repeat(100, 8)...), "8 active 800 out [threshold=8]"},
		{"without lag there is none of it", policy(at(1)), measured(start, repeat(0, 8)...), "0 inactive 0 none [activation=0]"},
		{"nor for what only wakes", policy(at(1)), func() changefeed.ProcessorLag {
			l := measured(start, repeat(0, 8)...)
			uncheckpointedPartition(&l.Partitions[0], 500)
			return l
		}(), "1 active 1 out [threshold=1 uncheckpointed=1]"},
		{"nor without leases", policy(at(1)), bootstrap(start), "1 active 100 out [threshold=1 bootstrap=1]"},
		{"unknown leases need a replica, too", policy(at(1)), measured(start, 1, -1, 0), "3 active 300 out [threshold=1 maxLeasesPerReplica=3]"},
		{"evenPartitions comes after it", policy(at(3), evenly), measured(start, append(repeat(0, 7), 1)...), "4 active 400 out [threshold=1 maxLeasesPerReplica=3 evenPartitions=4]"},
		{"so does limitToPartitionsWithLag", policy(at(3), limited), measured(start, append(repeat(0, 7), 1)...), "1 active 100 out [threshold=1 maxLeasesPerReplica=3 hotPartition=1]"},
		{"maxReplicaCount holds", policy(at(1), maximum(2)), measured(start, append(repeat(0, 7), 1)...), "2 active 800 out [threshold=1 maxLeasesPerReplica=8 clamp=2]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := describe(scaling.Decide(scaling.Input{Now: start, Lag: c.lag, Policy: c.policy}).Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestHotPartition is the cap of step 5 by partitions with lag. It applies after every step that
// raises.
func TestHotPartition(t *testing.T) {
	t.Parallel()
	hurry := func(p *scaling.Policy) { p.MaxChangeAge = 10 * time.Second }
	old := func(lags ...int64) changefeed.ProcessorLag {
		l := measured(start, lags...)
		for i := range l.Partitions {
			if p := &l.Partitions[i]; p.Pending() {
				age := int64(80)
				p.Age = &age
			}
		}
		return l
	}
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		lag    changefeed.ProcessorLag
		want   string
	}{
		{"one partition with a backlog can use one replica, however old it is", policy(limited, hurry), old(5000, 0, 0, 0), "1 active 100 out [threshold=1 maxChangeAge=8 hotPartition=1]"},
		{"two can use two", policy(limited, hurry), old(50, 50, 0, 0), "2 active 100 out [threshold=1 maxChangeAge=8 hotPartition=2]"},
		{"what is unknown may have a backlog", policy(limited, hurry), old(50, -1, -1, 0), "3 active 50 out [threshold=1 maxChangeAge=8 hotPartition=3]"},
		{"without the option all partitions are the cap", policy(hurry), old(5000, 0, 0, 0), "4 active 400 out [threshold=4 maxChangeAge=8 clamp=4]"},
		{"a floor is not for the backlog, and is not capped", policy(limited, func(p *scaling.Policy) {
			p.Schedules = schedules(t, floor{"UTC", "0 * * * *", "59 * * * *", 3})
		}), old(5000, 0, 0, 0), "3 active 100 out [threshold=1 schedules=3]"},
		{"what there is no lease of yet is one partition", policy(limited), bootstrap(start), "1 active 1 out [threshold=1 bootstrap=1]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if got := describe(scaling.Decide(scaling.Input{Now: start, Lag: c.lag, Policy: c.policy}).Decision); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestExcludeStalled: the first partition makes no progress, the others do.
func TestExcludeStalled(t *testing.T) {
	t.Parallel()
	type found struct {
		after time.Duration
		stuck int64 // lag of the partition whose checkpoint never moves
		other int64 // lag of a partition whose checkpoint moves
		want  string
	}
	const minute = time.Minute
	for _, c := range []struct {
		rule   string
		policy scaling.Policy
		polls  []found
	}{
		{"it counts until it was reported, and is left out from the next poll on", policy(excluding), []found{
			{0, 300, 50, "4 active 350 out [threshold=4]"},
			{5 * minute, 300, 50, "4 active 350 none [threshold=4]"}, // this poll reports it
			{10 * minute, 300, 50, "1 active 50 in [threshold=1 excludeStalled=1]"},
		}},
		{"one replica stays for it, and the metric keeps a scaler from zero", policy(excluding), []found{
			{0, 300, 0, "3 active 300 out [threshold=3]"},
			{5 * minute, 300, 0, "3 active 300 none [threshold=3]"},
			{10 * minute, 300, 0, "1 active 1 in [threshold=1 excludeStalled=1]"},
			{time.Hour, 300, 0, "1 active 1 none [threshold=1 excludeStalled=1]"},
		}},
		{"the metric is above the activation threshold", policy(excluding, func(p *scaling.Policy) { p.Activation = 20 }), []found{
			{0, 300, 0, "3 active 300 out [threshold=3]"},
			{5 * minute, 300, 0, "3 active 300 none [threshold=3]"},
			{10 * minute, 300, 0, "1 active 21 in [threshold=1 excludeStalled=1]"},
		}},
		{"it keeps its owner though the lag is below the activation threshold", policy(excluding, func(p *scaling.Policy) { p.Activation = 90 }), []found{
			{0, 50, 100, "2 active 150 out [threshold=2]"},
			{5 * minute, 50, 100, "2 active 150 none [threshold=2]"},
			{10 * minute, 50, 0, "1 active 91 in [threshold=1 excludeStalled=1]"},
		}},
		{"progress brings it back", policy(excluding), []found{
			{0, 300, 0, "3 active 300 out [threshold=3]"},
			{5 * minute, 300, 0, "3 active 300 none [threshold=3]"},
			{10 * minute, 300, 0, "1 active 1 in [threshold=1 excludeStalled=1]"},
			{minute, -300, 0, "3 active 300 out [threshold=3]"}, // below zero: the checkpoint moved
		}},
		{"its age asks for nothing either", policy(excluding, func(p *scaling.Policy) { p.MaxChangeAge = 100 * time.Second }), []found{
			{0, 30, 30, "4 active 60 out [threshold=1 maxChangeAge=9 clamp=4]"},
			{5 * minute, 30, 0, "4 active 30 none [threshold=1 maxChangeAge=9 clamp=4]"},
			{10 * minute, 30, 0, "1 active 1 in [threshold=1 excludeStalled=1]"},
		}},
		{"without the option it counts for as long as it lasts", policy(), []found{
			{0, 300, 50, "4 active 350 out [threshold=4]"},
			{5 * minute, 300, 50, "4 active 350 none [threshold=4]"},
			{10 * minute, 300, 50, "4 active 350 none [threshold=4]"},
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := tell(t, c.policy)
			for i, f := range c.polls {
				s.poll(f.after, func(at time.Time) changefeed.ProcessorLag {
					age := int64(900)
					l := measured(at, max(f.stuck, -f.stuck), f.other, 0, 0)
					l.Partitions[0].Age, l.Partitions[0].Position = &age, fmt.Sprint(f.stuck < 0)
					for other := 1; other < 4; other++ {
						l.Partitions[other].Position = fmt.Sprint("moves ", i)
					}
					return l
				})
				s.want(f.want)
			}
		})
	}
}

// TestExcludeStalledNamesPartitions, all or the first few.
func TestExcludeStalledNamesPartitions(t *testing.T) {
	t.Parallel()
	hung, throws := changefeed.StallHung, changefeed.StallFlapping
	for want, kinds := range map[string][]changefeed.StallKind{
		"a lag of 7 is left out, since more replicas do not move it: partition 1":                    {hung},
		"a lag of 14 is left out, since more replicas do not move it: partitions 1 and 2":            {throws, hung},
		"a lag of 28 is left out, since more replicas do not move it: partitions 1, 2, 3 and 4":      {throws, throws, throws, throws},
		"a lag of 42 is left out, since more replicas do not move it: partitions 1, 2, 3 and 3 more": {hung, hung, hung, hung, hung, ""},
	} {
		l := measured(start, 50)
		for i, kind := range kinds {
			p := changefeed.Partition{Lease: fmt.Sprint(i + 1), Lag: new(int64(7)), Status: changefeed.StatusStalled, Stuck: true}
			if kind != "" {
				p.Stall = &changefeed.Stall{Kind: kind}
			}
			l.Partitions = append(l.Partitions, p)
		}
		reasons := scaling.Decide(scaling.Input{Now: start, Lag: l, Policy: policy(excluding)}).Decision.Reasons
		if !slices.ContainsFunc(reasons, func(r scaling.Reason) bool { return r.Why == want }) {
			t.Errorf("no %q in %+v", want, reasons)
		}
	}
}

// TestExcludeStalledSurvivesItsOwnScaleIn: the scale-in may stop the owner of the excluded
// partition, whose lease then has no owner for a while.
func TestExcludeStalledSurvivesItsOwnScaleIn(t *testing.T) {
	t.Parallel()
	s := tell(t, policy(excluding))
	poll := func(after time.Duration, owner, position, want string) {
		t.Helper()
		s.poll(after, func(at time.Time) changefeed.ProcessorLag {
			l := measured(at, 300, 0, 0, 0)
			l.Partitions[0].Owner, l.Partitions[0].Position = owner, position
			return l
		})
		s.want(want)
	}
	const left = "1 active 1 none [threshold=1 excludeStalled=1]"
	poll(0, "a", "stuck", "3 active 300 out [threshold=3]")
	poll(5*time.Minute, "a", "stuck", "3 active 300 none [threshold=3]")
	poll(10*time.Minute, "a", "stuck", "1 active 1 in [threshold=1 excludeStalled=1]")
	status := func(want changefeed.Status) {
		t.Helper()
		if got := s.lag.Partitions[0].Status; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	released := s.now
	nobody := func(after time.Duration) {
		t.Helper()
		s.poll(after, func(at time.Time) changefeed.ProcessorLag {
			l := measured(at, 300, 0, 0, 0)
			l.Partitions[0].Owner, l.Partitions[0].Position, l.Partitions[0].LeaseTime = "", "stuck", released
			return l
		})
		s.want(left)
	}
	nobody(time.Minute)
	status(changefeed.StatusStalled)
	nobody(5 * time.Minute) // no host tries it any more
	status(changefeed.StatusUnclaimed)
	poll(time.Minute, "b", "stuck", left)
	status(changefeed.StatusStalled)
	poll(time.Minute, "b", "moved", "3 active 300 out [threshold=3]")
}
