package simulate

import (
	"math/rand/v2"
	"time"
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
	Bound        bool          // whether this is the clairvoyant bound, which knows only hours, times over and changes; see Bound
	ReplicaHours float64       // of all replicas there were, starting ones too
	OverLag      time.Duration // for which the lag was above the objective
	OverAge      time.Duration // for which the oldest pending change was older than the objective
	Out, In      int           // changes of the desired replicas, up and down
	MaxLag       int64
	MaxAge       time.Duration // 0 where nothing was ever pending at the end of a second
	P99Age       time.Duration // not exceeded by the oldest pending change for 99 % of the time
	Arrived      int64         // transactions, with those pending at the start
	Processed    int64
	Left         int64 // pending at the end

	// Of the container, where its throughput is limited; else 0.
	RUHours   float64       // sum over full hours of the highest RU/s provisioned in each
	PeakRU    int           // the highest RU/s provisioned
	Throttled time.Duration // for which some partition had no request units left

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
	Age     time.Duration // of the oldest pending change; 0 where nothing is pending
	Desired int           // replicas
	Working int
}

// Run replays a trace, second by second: the scaler decides by what a poll would see, what it decided
// some time ago takes effect, then the workers process what is pending, and what arrives meanwhile is
// there for the next second, so that a feed on which changes keep coming is never found empty. It
// begins without any replica, and with leases that nobody owns.
func Run(t Trace, w Workers, s Scaler, c Conditions, o Objective) Result {
	// Two sources, so that what one scaler draws does not change how the leases move.
	f := newFleet(t, w, rand.New(rand.NewPCG(c.Seed, 1)))
	for row := range t.Backlog {
		f.arrive(row)
	}
	r := Result{Scaler: s.Name()}
	if count, ok := s.(fixed); ok {
		r.Fixed = int(count)
	}
	seconds := t.rows() - t.Backlog
	part := (seconds + maxPoints - 1) / maxPoints
	ages := make([]int, t.rows()+1) // seconds of the replay by the age they ended with
	decide := s.begin(c, f, rand.New(rand.NewPCG(c.Seed, 2)))
	effect := newDelay(wholeSeconds(c.Delay))
	for second := range seconds {
		row := t.Backlog + second
		desired := effect.pass(decide(second, row))
		switch {
		case desired > f.desired:
			r.Out++
		case desired < f.desired:
			r.In++
		}
		if desired != f.desired {
			f.scale(row, desired)
		}
		f.second(row)
		f.arrive(row)

		lag, age := f.behind(row + 1)
		ages[age]++
		r.MaxLag = max(r.MaxLag, lag)
		if lag > o.Lag {
			r.OverLag += time.Second
		}
		if seconds := time.Duration(age) * time.Second; seconds > o.Age {
			r.OverAge += time.Second
		}
		r.plot(second, part, Point{Lag: lag, Age: time.Duration(age) * time.Second, Desired: f.desired, Working: len(f.hosts)})
	}
	r.ReplicaHours = float64(f.replicaSeconds) / 3600
	r.MaxAge, r.P99Age = quantile(ages, seconds, 100), quantile(ages, seconds, 99)
	for p := range f.leases {
		r.Arrived += f.leases[p].arrived
		r.Processed += f.leases[p].done
	}
	r.Left = f.pending
	r.bill(f.meter)
	return r
}

// plot adds a second to the series.
func (r *Result) plot(second, part int, p Point) {
	if second%part == 0 {
		p.At = time.Duration(second) * time.Second
		r.Series = append(r.Series, p)
		return
	}
	last := &r.Series[len(r.Series)-1]
	last.Lag, last.Age = max(last.Lag, p.Lag), max(last.Age, p.Age)
	last.Desired, last.Working = max(last.Desired, p.Desired), max(last.Working, p.Working)
}

// quantile is the least age that a percentage of the seconds did not exceed.
func quantile(ages []int, seconds, percent int) time.Duration {
	below := 0
	for age, n := range ages {
		if below += n; below*100 >= seconds*percent {
			return time.Duration(age) * time.Second
		}
	}
	return 0
}
