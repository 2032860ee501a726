package scaling_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// uncovered is a measurement of a processor in which no lease covers some of the keys.
func uncovered(at time.Time, lags ...int64) changefeed.ProcessorLag {
	l := measured(at, lags...)
	l.Coverage.Holes = []changefeed.Range{{Min: "40", Max: "80"}, {Min: "C0", Max: "FF"}}
	return l
}

func TestUncoveredKeysWakeWithOneHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	decideFirst(t, []first{
		{"where nothing is pending, one replica stays", policy(), uncovered(start, 0, 0), "1 active 1 out [threshold=1 uncovered=1]"},
		{"whatever the activation threshold", policy(func(p *scaling.Policy) { p.Activation = 10 }), uncovered(start, 0, 0), "1 active 11 out [threshold=1 uncovered=1]"},
		{"with rates, too", policy(func(p *scaling.Policy) { p.Sizing = scaling.SizingAuto }), uncovered(start, 0, 0), "1 active 1 out [threshold=1 uncovered=1]"},
		{"where partitions with lag count", policy(func(p *scaling.Policy) { p.LimitToPartitionsWithLag = true }), uncovered(start, 0, 0), "1 active 1 out [threshold=1 uncovered=1]"},
		{"it adds one to the lag", policy(), uncovered(start, 250, 49, 0), "3 active 300 out [threshold=3 uncovered=3]"},
	})
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		st := tell(t, policy())
		st.lags(0, 0, 0)
		for range 5 {
			st.poll(time.Hour, func(at time.Time) changefeed.ProcessorLag { return uncovered(at, 0, 0) })
			if d := st.last; d.Replicas != 1 || !d.Active {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// ahead is a measurement whose first partitions have been ahead of the feed for several polls.
func ahead(at time.Time, n int, lags ...int64) changefeed.ProcessorLag {
	l := measured(at, lags...)
	for i := range n {
		p := &l.Partitions[i]
		p.Lag, p.Status, p.CheckpointLSN, p.SessionLSN = new(int64), changefeed.StatusOK, new(int64(500)), new(int64(120))
	}
	return l
}

func TestAPositionAheadOfTheFeedMovesNoReplica(t *testing.T) {
	t.Parallel()
	always := policy(func(p *scaling.Policy) {
		p.Fallback.FailureThreshold, p.Fallback.Behavior = 1, scaling.FallbackMax
	})
	for _, c := range []struct {
		rule  string
		ahead int
		want  string
	}{
		{"where all are, the last decision (of the minute in which they counted 0) holds, and no fallback applies", 4, "3 inactive 0 none [ahead=3]"},
		{"where one is, nothing scales in for hours", 1, "3 active 300 none [activation=0 incomplete=3]"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			st := tell(t, always)
			seen := func(after time.Duration, lags ...int64) {
				st.poll(after, func(at time.Time) changefeed.ProcessorLag { return ahead(at, c.ahead, lags...) })
			}
			st.lags(0, 0, 150, 150, 0)
			for range 3 { // they count as 0 until the position is certain to be ahead
				seen(20*time.Second, 0, 150, 150, 0)
			}
			seen(20*time.Second, 0, 150, 150, 0)
			for range 5 {
				seen(time.Hour, 0, 0, 0, 0)
				st.want(c.want)
			}
			if st.memory.Failures != 0 {
				t.Errorf("%d polls failed", st.memory.Failures)
			}
		})
	}
	t.Run("where all are at the first decision, nothing is decided", func(t *testing.T) {
		t.Parallel()
		l := ahead(start, 2, 0, 0)
		for i := range l.Partitions {
			l.Partitions[i].Lag, l.Partitions[i].Ahead = nil, &changefeed.AheadPosition{Position: 500, Feed: 120}
		}
		if got := scaling.Decide(scaling.Input{Now: start, Lag: l, Policy: always}); got.Decision != nil {
			t.Errorf("%+v", got.Decision)
		}
	})
}

func TestASplitAloneAsksForNoMoreThanOneReplicaPerNewLease(t *testing.T) {
	t.Parallel()
	st := tell(t, policy())
	st.lags(0, 300, 0, 0, 0, 0, 0, 0, 0)
	st.want("3 active 300 out [threshold=3]")
	st.poll(time.Minute, func(at time.Time) changefeed.ProcessorLag {
		l := measured(at, 290, 300, 280, 0, 0, 0, 0, 0, 0, 0)
		for i := range 3 { // each new lease counts what was pending before the split
			l.Partitions[i].Inherited = true
		}
		return l
	})
	if d := st.last; d.Replicas != 5 {
		t.Errorf("%d replicas, want those of before and one for each of two more leases", d.Replicas)
	}
}
