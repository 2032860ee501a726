package simulate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Options shape a synthetic trace.
type Options struct {
	Seed       uint64        // the same seed gives the same trace
	Duration   time.Duration // rounded up to whole seconds, at least 1 s
	Partitions int           // at least 1
	Rate       float64       // mean transactions per second over all partitions, above 0 and up to MaxRate; the trace sparse ignores it
}

// MaxRate is the greatest rate of a trace, in transactions per second.
const MaxRate = 1_000_000

// syntheticStart is a Monday, so that a week has its weekdays first, then the weekend.
var syntheticStart = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// shape is the mean of a synthetic trace over time, from which it is drawn.
type shape struct {
	rate   func(second int) float64 // transactions per second over all partitions
	hotter float64                  // share of the rate that the first partition gets beyond its even one, 0..1
}

// synthetic are the synthetic traces, in the order that Names lists them.
var synthetic = []struct {
	name  string
	shape func(o Options, seconds int, r *rand.Rand) shape
}{
	{"steady", steady},
	{"ramp", ramp},
	{"burst", burst},
	{"daily", daily},
	{"herd", herd},
	{"hot", hot},
	{"sparse", sparse},
}

// Names returns the names of the synthetic traces.
func Names() []string {
	names := make([]string, len(synthetic))
	for i, s := range synthetic {
		names[i] = s.name
	}
	return names
}

// Generate draws a synthetic trace: whole transactions of a Poisson process whose rate follows the
// shape of that name. The error says which names or options are allowed.
func Generate(name string, o Options) (Trace, error) {
	if !(o.Rate > 0 && o.Rate <= MaxRate) {
		return Trace{}, fmt.Errorf("trace %s: the rate is %v; allowed are numbers above 0 and up to %d", name, o.Rate, MaxRate)
	}
	seconds := wholeSeconds(o.Duration)
	for _, s := range synthetic {
		if s.name != name {
			continue
		}
		t, err := newTrace(name, syntheticStart, seconds, 0, o.Partitions)
		if err != nil {
			return Trace{}, err
		}
		r := rand.New(rand.NewPCG(o.Seed, 0))
		shape := s.shape(o, seconds, r)
		for second := range seconds {
			rate := shape.rate(second)
			even := rate * (1 - shape.hotter) / float64(o.Partitions)
			row := t.Arrivals[second*o.Partitions:][:o.Partitions]
			row[0] = poisson(r, even+rate*shape.hotter)
			for p := 1; p < len(row); p++ {
				row[p] = poisson(r, even)
			}
		}
		return t, nil
	}
	return Trace{}, fmt.Errorf("there is no trace %q; allowed are %q", name, Names())
}

// steady has the mean rate all the time.
func steady(o Options, _ int, _ *rand.Rand) shape {
	return shape{rate: func(int) float64 { return o.Rate }}
}

// hot is steady, with nine tenths of the transactions in one partition.
func hot(o Options, _ int, _ *rand.Rand) shape {
	even := 1 / float64(o.Partitions)
	return shape{
		rate:   func(int) float64 { return o.Rate },
		hotter: max(0, 0.9-even) / max(1e-9, 1-even),
	}
}

// ramp rises linearly from 0 to twice the mean rate at half of the time, and falls back to 0.
func ramp(o Options, seconds int, _ *rand.Rand) shape {
	half := float64(seconds) / 2
	return shape{rate: func(second int) float64 { return 2 * o.Rate * (1 - math.Abs(float64(second)-half)/half) }}
}

// span is a part of a trace, in seconds from its start; to is excluded.
type span struct{ from, to int }

// within returns a function that reports whether a second is in one of the spans. The spans have to
// be in order, and so do the seconds that it is called with.
func within(spans []span) func(second int) bool {
	return func(second int) bool {
		for len(spans) > 0 && second >= spans[0].to {
			spans = spans[1:]
		}
		return len(spans) > 0 && second >= spans[0].from
	}
}

// burst has a low rate and, once in every three hours at a random time, ten times that rate for 2
// to 10 minutes.
func burst(o Options, seconds int, r *rand.Rand) shape {
	const every, factor = 3 * 3600, 10
	count := max(1, seconds/every)
	slot := seconds / count
	var bursts []span
	loud := 0
	for i := range count {
		length := min(120+r.IntN(481), slot/3)
		from := i*slot + r.IntN(slot-length)
		bursts = append(bursts, span{from, from + length})
		loud += length
	}
	base := o.Rate / (1 + (factor-1)*float64(loud)/float64(seconds))
	inBurst := within(bursts)
	return shape{rate: func(second int) float64 {
		if inBurst(second) {
			return base * factor
		}
		return base
	}}
}

// daily is a sine wave over 24 hours, near 0 at midnight and twice the mean rate at noon. Each
// minute deviates from it by up to a fifth.
func daily(o Options, _ int, r *rand.Rand) shape {
	noise := 1.0
	return shape{rate: func(second int) float64 {
		if second%60 == 0 {
			noise = 0.8 + 0.4*r.Float64()
		}
		return o.Rate * noise * (1 - math.Cos(2*math.Pi*float64(second)/86400))
	}}
}

// herd has no changes but, once in every two hours and at least three times, all those of that time
// within one second at a random time.
func herd(o Options, seconds int, r *rand.Rand) shape {
	count := min(seconds, max(3, seconds/7200))
	slot := seconds / count
	var herds []span
	for i := range count {
		at := i*slot + r.IntN(slot)
		herds = append(herds, span{at, at + 1})
	}
	size := o.Rate * float64(seconds) / float64(count)
	arrives := within(herds)
	return shape{rate: func(second int) float64 {
		if arrives(second) {
			return size
		}
		return 0
	}}
}

// sparse has 2 to 9 changes on average within one second, every 2 to 20 minutes, whatever the rate
// of the options.
func sparse(_ Options, _ int, r *rand.Rand) shape {
	next := 120 + r.IntN(1081)
	return shape{rate: func(second int) float64 {
		if second < next {
			return 0
		}
		next = second + 120 + r.IntN(1081)
		return float64(2 + r.IntN(8))
	}}
}

// poisson draws from the Poisson distribution: exactly for a mean of up to 30, by the normal
// distribution above.
func poisson(r *rand.Rand, mean float64) int64 {
	if mean <= 0 {
		return 0
	}
	if mean > 30 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	limit, product := math.Exp(-mean), r.Float64()
	n := int64(0)
	for product > limit {
		product *= r.Float64()
		n++
	}
	return n
}

// wholeSeconds returns a duration in seconds, rounded up.
func wholeSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
