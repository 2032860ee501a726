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

// builtIn are the built-in traces, in the order of their listing.
var builtIn = []struct {
	name  string
	shape func(rate float64, seconds int, r *rand.Rand) Shape
}{
	{"steady", steady},
	{"ramp", ramp},
	{"step", step},
	{"sawtooth", sawtooth},
	{"burst", burst},
	{"daily", daily},
	{"herd", herd},
	{"sparse", sparse},
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
		return Trace{}, fmt.Errorf("trace %s: the rate is %v; allowed are numbers above 0 and up to %d",
			name, o.Rate, MaxRate)
	}
	seconds := wholeSeconds(o.Duration)
	if err := checkSize(name, seconds, o.Partitions); err != nil {
		return Trace{}, err
	}
	for _, b := range builtIn {
		if b.name == name {
			r := rand.New(rand.NewPCG(o.Seed, 0))
			return b.shape(o.Rate, seconds, r).Draw(name, seconds, o.Partitions, r)
		}
	}
	return Trace{}, fmt.Errorf("there is no trace %q; allowed are %q", name, Names())
}

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}

// steady stays around the rate.
func steady(rate float64, _ int, _ *rand.Rand) Shape {
	return Shape{Rate: func(int) float64 { return rate }}
}

// ramp climbs from nothing to twice the rate, and back.
func ramp(rate float64, seconds int, _ *rand.Rand) Shape {
	half := float64(seconds) / 2
	return Shape{Rate: func(second int) float64 {
		return 2 * rate * (1 - math.Abs(float64(second)-half)/half)
	}}
}

// step is half the rate, and twice the rate in the middle third.
func step(rate float64, seconds int, _ *rand.Rand) Shape {
	return Shape{Rate: func(second int) float64 {
		if second >= seconds/3 && second < 2*seconds/3 {
			return 2 * rate
		}
		return rate / 2
	}}
}

// sawtooth climbs from a fifth of the rate to nine fifths in two hours (in a third of the trace if
// that is shorter), and falls back at once.
func sawtooth(rate float64, seconds int, _ *rand.Rand) Shape {
	period := max(1, min(7200, seconds/3))
	return Shape{Rate: func(second int) float64 {
		return rate * (0.2 + 1.6*float64(second%period)/float64(period))
	}}
}

// burst is quiet, with two to ten minutes of ten times as much at a random time in every three
// hours.
func burst(rate float64, seconds int, r *rand.Rand) Shape {
	const every, factor = 3 * 3600, 10
	count := max(1, seconds/every)
	slot := seconds / count
	from, to := make([]int, count+1), make([]int, count+1)
	loud := 0
	for i := range count {
		length := min(120+r.IntN(481), slot/3)
		from[i] = i*slot + r.IntN(slot-length)
		to[i] = from[i] + length
		loud += length
	}
	base := rate / (1 + (factor-1)*float64(loud)/float64(seconds))
	return Shape{Rate: func(second int) float64 {
		if i := second / slot; second >= from[i] && second < to[i] {
			return base * factor
		}
		return base
	}}
}

// daily is a sine over 24 hours: almost nothing at midnight, twice the rate at noon, and each
// minute up to a fifth off.
func daily(rate float64, _ int, r *rand.Rand) Shape {
	noise := 1.0
	return Shape{Rate: func(second int) float64 {
		if second%60 == 0 {
			noise = 0.8 + 0.4*r.Float64()
		}
		return rate * noise * (1 - math.Cos(2*math.Pi*float64(second)/86400))
	}}
}

// herd is silence, and every two hours (three times at least) all that would have come by then at
// once, at a random moment.
func herd(rate float64, seconds int, r *rand.Rand) Shape {
	count := min(seconds, max(3, seconds/7200))
	slot := seconds / count
	arrives := make(map[int]bool, count)
	for i := range count {
		arrives[i*slot+r.IntN(slot)] = true
	}
	return Shape{Rate: func(second int) float64 {
		if arrives[second] {
			return rate * float64(seconds) / float64(count)
		}
		return 0
	}}
}

// sparse is silence of two to twenty minutes, then a handful of changes, whatever the rate.
func sparse(_ float64, _ int, r *rand.Rand) Shape {
	next := 120 + r.IntN(1081)
	return Shape{Rate: func(second int) float64 {
		if second < next {
			return 0
		}
		next = second + 120 + r.IntN(1081)
		return float64(2 + r.IntN(8))
	}}
}
