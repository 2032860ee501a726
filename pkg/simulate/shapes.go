package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// MaxRate is the highest rate of a trace, in transactions per second.
const MaxRate = 1_000_000

// Options shape a built-in trace.
type Options struct {
	Seed       uint64        // the same seed gives the same trace
	Duration   time.Duration // rounded up to whole seconds, at least one
	Partitions int           // at least 1
	Rate       float64       // transactions per second on average, above 0 and up to MaxRate; sparse has its own
}

// Names lists the built-in traces.
func Names() []string {
	names := make([]string, len(builtIn))
	for i, b := range builtIn {
		names[i] = b.name
	}
	return names
}

// Generate draws the built-in trace of a name. It fails if there is no such name, or if an option
// is out of bounds.
func Generate(name string, o Options) (Trace, error) {
	if !(o.Rate > 0 && o.Rate <= MaxRate) {
		return Trace{}, fmt.Errorf("trace %s: the rate is %v; allowed are numbers above 0 and up to %d", name, o.Rate, MaxRate)
	}
	seconds := wholeSeconds(o.Duration)
	if err := checkSize(name, seconds, o.Partitions); err != nil {
		return Trace{}, err
	}
	for _, b := range builtIn {
		if b.name == name {
			r := rand.New(rand.NewPCG(o.Seed, 0))
			return Shape{Rate: b.rate(o.Rate, seconds, r)}.Draw(name, seconds, o.Partitions, r), nil
		}
	}
	return Trace{}, fmt.Errorf("there is no trace %q; allowed are %q", name, Names())
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}

// builtIn are the built-in traces, in the order of their listing, each by the transactions per second of
// a second.
var builtIn = []struct {
	name string
	rate func(mean float64, seconds int, r *rand.Rand) func(second int) float64
}{
	{"steady", func(mean float64, _ int, _ *rand.Rand) func(int) float64 {
		return func(int) float64 { return mean }
	}},

	// It climbs from nothing to twice the rate, and back.
	{"ramp", func(mean float64, seconds int, _ *rand.Rand) func(int) float64 {
		half := float64(seconds) / 2
		return func(second int) float64 { return 2 * mean * (1 - math.Abs(float64(second)-half)/half) }
	}},

	// Half the rate, and twice the rate in the middle third.
	{"step", func(mean float64, seconds int, _ *rand.Rand) func(int) float64 {
		return func(second int) float64 {
			if second >= seconds/3 && second < 2*seconds/3 {
				return 2 * mean
			}
			return mean / 2
		}
	}},

	// It climbs from a fifth of the rate to nine fifths in two hours (in a third of the trace if that is
	// shorter), and falls back at once.
	{"sawtooth", func(mean float64, seconds int, _ *rand.Rand) func(int) float64 {
		period := max(1, min(7200, seconds/3))
		return func(second int) float64 { return mean * (0.2 + 1.6*float64(second%period)/float64(period)) }
	}},

	// Quiet, with two to ten minutes of ten times as much at a random time in every three hours.
	{"burst", func(mean float64, seconds int, r *rand.Rand) func(int) float64 {
		const every, factor = 3 * 3600, 10
		count := max(1, seconds/every)
		slot, loud := seconds/count, 0
		from, to := make([]int, count+1), make([]int, count+1)
		for i := range count {
			length := min(120+r.IntN(481), slot/3)
			from[i] = i*slot + r.IntN(slot-length)
			to[i] = from[i] + length
			loud += length
		}
		base := mean / (1 + (factor-1)*float64(loud)/float64(seconds))
		return func(second int) float64 {
			if i := second / slot; second >= from[i] && second < to[i] {
				return base * factor
			}
			return base
		}
	}},

	// A sine over 24 hours: almost nothing at midnight, twice the rate at noon, and each minute up to a
	// fifth off.
	{"daily", func(mean float64, _ int, r *rand.Rand) func(int) float64 {
		noise := 1.0
		return func(second int) float64 {
			if second%60 == 0 {
				noise = 0.8 + 0.4*r.Float64()
			}
			return mean * noise * (1 - math.Cos(2*math.Pi*float64(second)/86400))
		}
	}},

	// Silence, and every two hours (three times at least) all that would have come by then at once, at a
	// random moment.
	{"herd", func(mean float64, seconds int, r *rand.Rand) func(int) float64 {
		count := min(seconds, max(3, seconds/7200))
		slot, arrives := seconds/count, make(map[int]bool, count)
		for i := range count {
			arrives[i*slot+r.IntN(slot)] = true
		}
		return func(second int) float64 {
			if arrives[second] {
				return mean * float64(seconds) / float64(count)
			}
			return 0
		}
	}},

	// Silence of two to twenty minutes, then a handful of changes, whatever the rate.
	{"sparse", func(_ float64, _ int, r *rand.Rand) func(int) float64 {
		next := 120 + r.IntN(1081)
		return func(second int) float64 {
			if second < next {
				return 0
			}
			next = second + 120 + r.IntN(1081)
			return float64(2 + r.IntN(8))
		}
	}},
}
