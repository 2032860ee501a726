package simulate_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

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

func TestASyntheticTraceIsWhatItsNameSays(t *testing.T) {
	t.Parallel()
	const seconds = 24 * 3600
	near := func(got, want float64) bool { return math.Abs(got-want) < 0.02*want }
	hour := func(s []int64, from float64) float64 { return float64(sum(s[int(from*3600):][:3600])) / 3600 }
	for _, c := range []struct {
		name string
		rule string
		is   func(tr simulate.Trace, s []int64) bool
	}{
		{"steady", "every hour is like the others", func(_ simulate.Trace, s []int64) bool {
			for hour := range 24 {
				if mean := float64(sum(s[hour*3600:][:3600])) / 3600; math.Abs(mean-50) > 1 {
					return false
				}
			}
			return true
		}},
		{"ramp", "it ends as quietly as it begins, and is twice the rate in the middle", func(_ simulate.Trace, s []int64) bool {
			return sum(s[:600]) < 600 && sum(s[seconds-600:]) < 600 && sum(s[seconds/2-300:][:600]) > 600*95
		}},
		{"burst", "a burst of ten times the base, for minutes, in every three hours", func(_ simulate.Trace, s []int64) bool {
			sorted := slices.Sorted(slices.Values(s))
			base := float64(sorted[seconds/2])
			bursts, loud := 0, false
			for minute := range seconds / 60 {
				now := float64(sum(s[minute*60:][:60])) > 60*base*8
				if now && !loud {
					bursts++
				}
				loud = now
			}
			return bursts == 8
		}},
		{"daily", "almost nothing at midnight, twice the rate at noon", func(_ simulate.Trace, s []int64) bool {
			return sum(s[:600]) < 600 && sum(s[seconds-600:]) < 600 && sum(s[seconds/2-1800:][:3600]) > 3600*90
		}},
		{"herd", "silence but for twelve moments", func(_ simulate.Trace, s []int64) bool {
			moments := 0
			for _, n := range s {
				if n > 0 {
					moments++
				}
			}
			return moments == 12
		}},
		{"step", "half the rate, and twice the rate in the middle third", func(_ simulate.Trace, s []int64) bool {
			return near(hour(s, 3), 25) && near(hour(s, 7), 25) && near(hour(s, 8), 100) && near(hour(s, 15), 100) && near(hour(s, 16), 25)
		}},
		{"sawtooth", "it climbs for two hours and falls back, twelve times", func(_ simulate.Trace, s []int64) bool {
			falls := 0
			for minute := 1; minute < seconds/60; minute++ {
				if sum(s[minute*60:][:60])+60*60 < sum(s[(minute-1)*60:][:60]) {
					falls++
				}
			}
			return falls == 11 && near(hour(s, 0), 10+80*0.25) && near(hour(s, 23), 10+80*0.75)
		}},
		{"sparse", "a handful after two minutes of silence or more", func(_ simulate.Trace, s []int64) bool {
			last, handfuls := -1, 0
			for i, n := range s {
				if n == 0 {
					continue
				}
				if n > 40 || i-last < 120 {
					return false
				}
				last, handfuls = i, handfuls+1
			}
			return handfuls > 24*3
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tr := generate(t, c.name, simulate.Options{Seed: 5, Duration: 24 * time.Hour, Partitions: 8, Rate: 50})
			if tr.Duration() != 24*time.Hour || tr.Partitions != 8 || tr.Name != c.name {
				t.Errorf("%s, %d partitions, %s", tr.Duration(), tr.Partitions, tr.Name)
			}
			if mean := float64(tr.Transactions()) / seconds; c.name != "sparse" && math.Abs(mean-50) > 1.5 {
				t.Errorf("%.1f transactions a second, want about 50", mean)
			}
			if slices.Min(tr.Arrivals) < 0 {
				t.Error("less than nothing arrives")
			}
			if !c.is(tr, perSecond(tr)) {
				t.Errorf("not so: %s", c.rule)
			}
		})
	}
	if got, want := len(simulate.Names()), 8; got != want {
		t.Errorf("%d traces, want %d", got, want)
	}
}

func TestASyntheticTraceMayBeVeryShort(t *testing.T) {
	t.Parallel()
	for _, name := range simulate.Names() {
		for _, d := range []time.Duration{time.Millisecond, 2 * time.Second, 3 * time.Second, 5 * time.Second} {
			tr := generate(t, name, simulate.Options{Duration: d, Partitions: 1, Rate: 5})
			if want := d.Round(time.Second); tr.Duration() != max(time.Second, want) {
				t.Errorf("%s of %s takes %s", name, d, tr.Duration())
			}
		}
	}
}

func TestOptionsOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	good := simulate.Options{Duration: time.Hour, Partitions: 4, Rate: 5}
	for _, c := range []struct {
		rule, name, says string
		change           func(*simulate.Options)
	}{
		{"a name that is not known", "dayly", `allowed are ["steady" "ramp"`, func(*simulate.Options) {}},
		{"no rate", "steady", "the rate is 0; allowed are numbers above 0", func(o *simulate.Options) { o.Rate = 0 }},
		{"a rate that is no number", "steady", "the rate is NaN", func(o *simulate.Options) { o.Rate = math.NaN() }},
		{"no partition", "steady", "with 0 partitions", func(o *simulate.Options) { o.Partitions = 0 }},
		{"no time", "steady", "0 seconds", func(o *simulate.Options) { o.Duration = 0 }},
		{"more than memory holds", "steady", "up to 50000000 for seconds x partitions", func(o *simulate.Options) { o.Duration, o.Partitions = 365*24*time.Hour, 1000 }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			o := good
			c.change(&o)
			if _, err := simulate.Generate(c.name, o); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}

// sample is a poll a number of seconds after noon.
func sample(second int, lag int64, arrival float64, partitions int) state.Sample {
	return state.Sample{
		Time: time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC),
		Lag:  &lag, Arrival: &arrival, PartitionCount: &partitions, Complete: true,
	}
}

// unmeasured is a poll that failed.
func unmeasured(second int) state.Sample {
	return state.Sample{Time: sample(second, 0, 0, 0).Time}
}

func TestARecordingIsReplayedAsItWas(t *testing.T) {
	t.Parallel()
	aged := sample(0, 7, 0, 1)
	age := int64(3)
	aged.Age = &age
	partial := sample(4, 0, 9, 1)
	partial.Complete = false
	for _, c := range []struct {
		rule    string
		samples []state.Sample
		given   int // partitions
		want    []int64
		backlog int
		guessed time.Duration
	}{
		{"a rate holds for the time before its sample", []state.Sample{sample(0, 0, 99, 1), sample(2, 0, 3, 1), sample(5, 0, 1, 1)}, 0,
			[]int64{3, 3, 1, 1, 1}, 0, 0},
		{"samples in any order", []state.Sample{sample(5, 0, 1, 1), sample(0, 0, 99, 1), sample(2, 0, 3, 1)}, 0,
			[]int64{3, 3, 1, 1, 1}, 0, 0},
		{"partitions take turns", []state.Sample{sample(0, 0, 0, 2), sample(3, 0, 3, 2)}, 0,
			[]int64{2, 1, 1, 2, 2, 1}, 0, 0},
		{"fractions are carried over", []state.Sample{sample(0, 0, 0, 1), sample(4, 0, 0.75, 1)}, 0,
			[]int64{0, 1, 1, 1}, 0, 0},
		{"partitions as given", []state.Sample{sample(0, 0, 0, 1), sample(1, 0, 4, 1)}, 3,
			[]int64{2, 1, 1}, 0, 0},
		{"the most partitions that were seen", []state.Sample{sample(0, 0, 0, 1), sample(1, 0, 4, 2)}, 0,
			[]int64{2, 2}, 0, 0},
		{"the first lag is pending at the start", []state.Sample{sample(0, 7, 0, 2), sample(2, 0, 2, 2)}, 0,
			[]int64{4, 3, 1, 1, 1, 1}, 1, 0},
		{"and came evenly in the time that it is old", []state.Sample{aged, sample(1, 0, 1, 1)}, 0,
			[]int64{2, 2, 3, 1}, 3, 0},
		{"it begins with the first lag that is known", []state.Sample{unmeasured(0), sample(2, 0, 5, 1), sample(4, 0, 1, 1)}, 0,
			[]int64{1, 1}, 0, 0},
		{"an unknown rate is guessed from the one before", []state.Sample{sample(0, 0, 0, 1), sample(2, 0, 3, 1), unmeasured(4), sample(5, 0, 1, 1)}, 0,
			[]int64{3, 3, 3, 3, 1}, 0, 2 * time.Second},
		{"or else from the next", []state.Sample{{Time: sample(0, 0, 0, 0).Time, Lag: new(int64), Complete: true}, unmeasured(2), sample(3, 0, 4, 1)}, 0,
			[]int64{4, 4, 4}, 0, 2 * time.Second},
		{"a part of the rate is no rate", []state.Sample{sample(0, 0, 0, 1), sample(2, 0, 3, 1), partial}, 0,
			[]int64{3, 3, 3, 3}, 0, 2 * time.Second},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r, err := simulate.FromSamples("orders", c.samples, c.given)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(r.Arrivals, c.want) || r.Backlog != c.backlog || r.Guessed != c.guessed {
				t.Errorf("got %v, %d s before the start, %s guessed; want %v, %d and %s", r.Arrivals, r.Backlog, r.Guessed, c.want, c.backlog, c.guessed)
			}
		})
	}
}

func TestARecordingLosesNoTransaction(t *testing.T) {
	t.Parallel()
	age := int64(100)
	first := sample(0, 12_345, 0, 7)
	first.Age = &age
	samples := []state.Sample{first}
	for i := range 100 {
		samples = append(samples, sample(30*(i+1), 0, float64(i)/7, 7))
	}
	r, err := simulate.FromSamples("orders", samples, 0)
	if err != nil {
		t.Fatal(err)
	}
	// 30 s of 0/7, 1/7 .. 99/7, of which the last fraction has not arrived yet.
	if got, want := r.Transactions(), int64(12_345+30*99*100/2/7); got != want {
		t.Errorf("%d transactions, want %d", got, want)
	}
	of := make([]int64, 7)
	for i, n := range r.Arrivals {
		of[i%7] += n
	}
	if slices.Max(of)-slices.Min(of) > 1 {
		t.Errorf("the partitions get %v", of)
	}
	if !r.Start.Equal(first.Time) || r.Duration() != 3000*time.Second {
		t.Errorf("from %s for %s", r.Start, r.Duration())
	}
}

func TestTheDrainIsTheMedianOfThoseRecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		drains []float64
		want   float64 // 0 is unknown
	}{
		{"none", nil, 0},
		{"one", []float64{4}, 4},
		{"an odd number", []float64{9, 1, 4}, 4},
		{"an even number", []float64{9, 1, 4, 5}, 4.5},
		{"what is no rate does not count", []float64{0, 0, 0, 6, math.Inf(1)}, 6},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			samples := []state.Sample{sample(0, 0, 0, 1), sample(60, 0, 1, 1)}
			for i := range c.drains {
				s := sample(i+1, 0, 1, 1)
				s.DrainPerReplica = &c.drains[i]
				samples = append(samples, s)
			}
			r, err := simulate.FromSamples("orders", samples, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Drain; got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestARecordingThatTellsTooLittleIsRefused(t *testing.T) {
	t.Parallel()
	rateless := sample(30, 0, 0, 4)
	rateless.Arrival = nil
	nowhere := sample(0, 0, 1, 0)
	nowhere.PartitionCount = nil
	for _, c := range []struct {
		rule    string
		samples []state.Sample
		says    string
	}{
		{"no sample", nil, "no sample knows the lag"},
		{"no lag", []state.Sample{unmeasured(0), unmeasured(30)}, "no sample knows the lag"},
		{"one sample", []state.Sample{sample(0, 0, 1, 4)}, "span 0 seconds"},
		{"no rate", []state.Sample{rateless}, "no sample has an arrival rate"},
		{"no number of partitions", []state.Sample{nowhere, nowhere}, "no sample knows the number of partitions"},
		{"a rate below zero", []state.Sample{sample(0, 0, 1, 4), sample(30, 0, -1, 4)}, "arrival rate -1"},
		{"a rate that is no number", []state.Sample{sample(0, 0, 1, 4), sample(30, 0, math.NaN(), 4)}, "arrival rate NaN"},
		{"a lag below zero", []state.Sample{sample(0, -1, 1, 4), sample(30, 0, 1, 4)}, "a lag of -1"},
		{"more seconds than memory holds", []state.Sample{sample(0, 0, 1, 4), sample(50_000_001, 0, 1, 4)}, "span 50000001 seconds"},
		{"more partitions than memory holds", []state.Sample{sample(0, 0, 1, 4_000_000), sample(30, 0, 1, 4_000_000)}, "up to 50000000"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			if _, err := simulate.FromSamples("orders", c.samples, 0); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
}
