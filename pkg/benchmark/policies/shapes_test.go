package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// trace is a trace given by its numbers of transactions: a row for each second, a column for each
// partition.
func trace(partitions int, rows ...[]int64) simulate.Trace {
	return simulate.Trace{
		Name: "written out", Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC),
		Partitions: partitions, Arrivals: slices.Concat(rows...),
	}
}

// quiet is so many seconds without arrivals.
func quiet(partitions, seconds int) [][]int64 {
	rows := make([][]int64, seconds)
	for i := range rows {
		rows[i] = make([]int64, partitions)
	}
	return rows
}

// policy is the policy of a processor with few settings.
func policy(change func(*scaling.Policy)) scaling.Policy {
	p := scaling.Policy{
		Threshold: 100, Cooldown: 300 * time.Second, Health: health.Policy{LeaseExpiration: time.Minute, StalledAfter: 5 * time.Minute, StalledPolls: 2},
		Behavior: scaling.Behavior{ScaleDown: scaling.Rules{StabilizationWindow: 300 * time.Second}},
		Fallback: scaling.Fallback{FailureThreshold: 1, Behavior: scaling.FallbackMax},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// perSecond sums a trace over its partitions.
func perSecond(t simulate.Trace) []int64 {
	sums := make([]int64, len(t.Arrivals)/t.Partitions)
	for i, n := range t.Arrivals {
		sums[i/t.Partitions] += n
	}
	return sums
}

func sum(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}

func arrivals(t *testing.T, s Shape, seed uint64, l Load) simulate.Trace {
	t.Helper()
	tr, err := s.Arrivals(l, seed)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestAShapeIsWhatItsNameSays(t *testing.T) {
	t.Parallel()
	const seconds = 24 * 3600
	// shares returns each partition's share of a part of a trace.
	shares := func(tr simulate.Trace, from, to int) []float64 {
		of, all := make([]float64, tr.Partitions), 0.0
		for i, n := range tr.Arrivals[from*tr.Partitions : to*tr.Partitions] {
			of[i%tr.Partitions] += float64(n)
			all += float64(n)
		}
		for p := range of {
			of[p] /= all
		}
		return of
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.02*want }
	hour := func(s []int64, from float64) float64 { return float64(sum(s[int(from*3600):][:3600])) / 3600 }
	for _, c := range []struct {
		name string
		rule string
		is   func(tr simulate.Trace, s []int64) bool
	}{
		{"workday", "quiet before dawn, busiest in the evening", func(_ simulate.Trace, s []int64) bool {
			return hour(s, 3) < 10 && hour(s, 20) > 70 && hour(s, 14) < hour(s, 20)
		}},
		{"weekly", "an office's day, which Monday is: two humps and batches in the night", func(_ simulate.Trace, s []int64) bool {
			return hour(s, 9.5) > 90 && hour(s, 13.5) > hour(s, 11.5) && hour(s, 1.5) > 2*hour(s, 4)
		}},
		{"hot", "nine tenths in one partition, the rest evenly", func(tr simulate.Trace, _ []int64) bool {
			of := shares(tr, 0, seconds)
			return math.Abs(of[0]-0.9) < 0.01 && slices.Min(of[1:]) > 0.01 && slices.Max(of[1:]) < 0.02
		}},
		{"zipf", "the n-th partition gets an n-th of the first", func(tr simulate.Trace, _ []int64) bool {
			of := shares(tr, 0, seconds)
			for p := range of {
				if !near(of[p]*float64(p+1), of[0]) {
					return false
				}
			}
			return true
		}},
		{"moving", "four tenths in one partition, in another each half an hour", func(tr simulate.Trace, _ []int64) bool {
			seen := make(map[int]bool)
			for from := 0; from < seconds; from += 1800 {
				of := shares(tr, from, from+1800)
				most := slices.Max(of)
				if !near(most, 0.4) || !near(1-most, 0.6) {
					return false
				}
				seen[slices.Index(of, most)] = true
			}
			return len(seen) > 4
		}},
		{"overload", "for three hours a quarter more than eight replicas do", func(_ simulate.Trace, s []int64) bool {
			return near(hour(s, 11), 50) && near(hour(s, 12), 250) && near(hour(s, 14), 250) && near(hour(s, 15), 50)
		}},
		{"outrun", "one partition gets a fifth more than a replica does, on top of the rest", func(tr simulate.Trace, s []int64) bool {
			of := shares(tr, 0, seconds)
			return near(of[0]*80, 30+50.0/8) && near(of[5]*80, 50.0/8) && near(hour(s, 20), 80)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			shape := shapesNamed([]string{c.name})[0]
			shape.Times, shape.Share = 0, 0
			tr := arrivals(t, shape, 5, Load{Duration: 24 * time.Hour, Partitions: 8, Rate: 50, Throughput: 25})
			if tr.Duration() != 24*time.Hour || tr.Partitions != 8 || tr.Name != c.name {
				t.Errorf("%s, %d partitions, %s", tr.Duration(), tr.Partitions, tr.Name)
			}
			if slices.Min(tr.Arrivals) < 0 {
				t.Error("less than nothing arrives")
			}
			if !c.is(tr, perSecond(tr)) {
				t.Errorf("not so: %s", c.rule)
			}
		})
	}
}

func TestAWeekHasAWeekend(t *testing.T) {
	t.Parallel()
	tr := arrivals(t, shapesNamed([]string{"weekly"})[0], 5, Load{Duration: 24 * time.Hour, Partitions: 2, Rate: 50})
	s := perSecond(tr)
	day := func(n int) float64 { return float64(sum(s[n*86400:][:86400])) / 86400 }
	if mean := float64(tr.Transactions()) / (7 * 86400); math.Abs(mean-50) > 3 || day(0) < 50 || day(5) > 30 || day(6) > 25 {
		t.Errorf("%.0f a second, Monday %.0f, Saturday %.0f, Sunday %.0f", mean, day(0), day(5), day(6))
	}
}

func TestAShapeThatThereIsNotIsRefused(t *testing.T) {
	t.Parallel()
	_, err := shapesNamed([]string{"dayly"})[0].Arrivals(Load{Duration: time.Hour, Partitions: 1, Rate: 1}, 1)
	if err == nil {
		t.Error("dayly is drawn")
	}
}
