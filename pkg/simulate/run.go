package simulate

import "time"

// Objective is the service level that a processor is to keep.
type Objective struct {
	Lag int64         // greatest number of pending transactions
	Age time.Duration // greatest age of the oldest pending change
}

// Result is the outcome of a replay.
type Result struct {
	Scaler       string
	ReplicaHours float64       // of all replicas, those that were starting included
	OverLag      time.Duration // time in which the lag was above the objective
	OverAge      time.Duration // time in which the oldest pending change was older than the objective
	Out, In      int           // number of changes of the desired replicas, up and down
	MaxLag       int64
	MaxAge       time.Duration // 0 where nothing was ever pending at the end of a second
	P99Age       time.Duration // age that the oldest pending change did not exceed for 99 % of the time
	Arrived      int64         // transactions, those pending at the start included
	Processed    int64
	Left         int64 // transactions pending at the end
	Series       []Point
}

// Actions returns how often the desired replicas changed.
func (r Result) Actions() int { return r.Out + r.In }

// maxPoints is the greatest number of points in a Series.
const maxPoints = 1000

// Point has the greatest of each value in a part of the replay.
type Point struct {
	At      time.Duration // from the start of the replay to the beginning of the part
	Lag     int64
	Age     time.Duration // of the oldest pending change; 0 where nothing is pending
	Desired int           // replicas
	Working int
}

// Run replays a trace, second by second: the scaler decides by what is pending, the workers
// process, and what arrives in this second is pending in the next one, so that a feed with steady
// arrivals is never empty. It begins with no replica.
func Run(t Trace, w Workers, s Scaler, o Objective) Result {
	f := newFleet(t, w)
	for row := range t.Backlog {
		f.arrive(row)
	}
	r := Result{Scaler: s.Name()}
	seconds := t.rows() - t.Backlog
	part := (seconds + maxPoints - 1) / maxPoints
	ages := make([]int, t.rows()+1) // number of seconds of the replay, by the age at their end
	decide := s.begin()
	for second := range seconds {
		row := t.Backlog + second
		desired := decide(second, row, f)
		switch {
		case desired > f.desired:
			r.Out++
		case desired < f.desired:
			r.In++
		}
		f.scale(row, desired)
		f.work(row)
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
		r.plot(second, part, Point{Lag: lag, Age: time.Duration(age) * time.Second, Desired: f.desired, Working: f.working})
	}
	r.ReplicaHours = float64(f.replicaSeconds) / 3600
	r.MaxAge, r.P99Age = quantile(ages, seconds, 100), quantile(ages, seconds, 99)
	for p := range f.arrived {
		r.Arrived += f.arrived[p]
		r.Processed += f.done[p]
		r.Left += f.pending(p)
	}
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

// quantile returns the smallest age that a percentage of the seconds did not exceed.
func quantile(ages []int, seconds, percent int) time.Duration {
	below := 0
	for age, n := range ages {
		if below += n; below*100 >= seconds*percent {
			return time.Duration(age) * time.Second
		}
	}
	return 0
}
