// Package simulate replays what arrived at a change feed against a way of scaling its processor, with a
// model of the processor. So a policy is judged on last week's changes instead of on production.
//
// It is pure: it reads no file and no clock, and the same traces, policies and seed give the same Result.
// The decisions are those of package scaling. docs/tune.md says what the model assumes and leaves out.
//
// Start with [Run]. What arrives: trace.go, shapes.go and recorded.go. What processes it: workers.go,
// handler.go and leases.go. What decides and acts: scaler.go and keda.go. Many replays: compare.go.
// pkg/benchmark/policies judges the default policy by it. The API may change in any release.
package simulate

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
)

// Objective is what the processor is to keep.
type Objective struct {
	Lag int64         // transactions pending at most
	Age time.Duration // of the oldest pending change, at most
}

// Result is what came of a replay.
type Result struct {
	Scaler       string
	Fixed        int           // replicas of a fixed count; 0 for every other scaler
	ReplicaHours float64       // of all replicas there were, starting ones too
	OverLag      time.Duration // for which the lag was above the objective
	OverAge      time.Duration // for which the oldest pending change was older than the objective
	Over         time.Duration // for which one of the two was so
	Out, In      int           // changes of the desired replicas, up and down
	MaxLag       int64
	MaxAge       time.Duration // 0 if nothing was ever pending at the end of a second
	P99Age       time.Duration // not exceeded by the oldest pending change for 99 % of the time
	Arrived      int64         // transactions, with those pending at the start
	Processed    int64
	Left         int64 // pending at the end

	Series []Point
}

// Actions is how often the desired replicas changed.
func (r Result) Actions() int { return r.Out + r.In }

// maxPoints bounds a Series.
const maxPoints = 1000

// Point is the greatest of each value in its part of the replay.
type Point struct {
	At      time.Duration // from the start of the replay to the beginning of the part
	Lag     int64
	Age     time.Duration // of the oldest pending change; 0 if nothing is pending
	Desired int           // replicas
	Working int
}

// Conditions are what a replay meets beside the trace.
type Conditions struct {
	Seed    uint64 // of what happens by chance: when the loops begin, which of two hosts gets a lease
	Aligned bool   // every loop begins in the first second, and a consumer acts at once
	Steps   int    // of a second; 0 = those of the model

	// Hour is called after each hour of the replay; false ends the replay. nil = no call.
	Hour func() bool
}

// Run replays a trace, second by second: the scaler decides by what a poll would see, then the workers
// process what is pending, in steps of a quarter of a second. What arrives in a step is there for the next
// one. The replay begins without a replica, and with leases without an owner.
func Run(t Trace, w Workers, s Scaler, c Conditions, o Objective) Result {
	// Two sources, so that what one scaler draws does not change how the leases move.
	f := newFleet(t, w, rand.New(rand.NewPCG(c.Seed, 1)))
	f.steps = cmp.Or(c.Steps, stepsPerSecond)
	for row := range t.Backlog {
		for step := range f.steps {
			f.arrive(row, step)
		}
	}
	replay := &Replay{fleet: f, Decide: func(in scaling.Input) scaling.Memory { return scaling.Decide(in).Memory }}
	if !c.Aligned {
		replay.random = rand.New(rand.NewPCG(c.Seed, 2))
	}
	fixed, _ := s.(FixedCount)
	r := Result{Scaler: s.Name(), Fixed: int(fixed)}
	seconds := t.rows() - t.Backlog
	part := (seconds + maxPoints - 1) / maxPoints
	ages := make([]time.Duration, seconds) // with which each second ended
	decide, replicaSeconds := s.Begin(replay), 0.0
	for second := range seconds {
		if c.Hour != nil && second > 0 && second%3600 == 0 && !c.Hour() {
			return r
		}
		replay.row = t.Backlog + second
		desired := decide(second)
		switch {
		case desired > f.desired:
			r.Out++
		case desired < f.desired:
			r.In++
		}
		replicaSeconds += float64(desired)
		f.scale(replay.row, desired)
		f.second(replay.row)

		p := Point{Lag: f.pending, Desired: f.desired, Working: len(f.hosts)}
		for partition := range f.leases {
			p.Age = max(p.Age, time.Duration(f.age(partition, replay.row+1))*time.Second)
		}
		ages[second] = p.Age
		r.MaxLag = max(r.MaxLag, p.Lag)
		if p.Lag > o.Lag {
			r.OverLag += time.Second
		}
		if p.Age > o.Age {
			r.OverAge += time.Second
		}
		if p.Lag > o.Lag || p.Age > o.Age {
			r.Over += time.Second
		}
		if second%part == 0 {
			r.Series = append(r.Series, Point{At: time.Duration(second) * time.Second})
		}
		point := &r.Series[len(r.Series)-1]
		point.Lag, point.Age = max(point.Lag, p.Lag), max(point.Age, p.Age)
		point.Desired, point.Working = max(point.Desired, p.Desired), max(point.Working, p.Working)
	}
	slices.Sort(ages)
	r.MaxAge, r.P99Age = ages[seconds-1], ages[(99*seconds+99)/100-1]
	r.ReplicaHours = replicaSeconds / 3600
	r.Arrived, r.Left = t.Transactions(), f.pending
	r.Processed = r.Arrived - r.Left
	return r
}
