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
	Duration   time.Duration // rounded up to whole seconds, at least one
	Partitions int           // at least 1
	Rate       float64       // transactions per second on average over all partitions, above 0 and up to MaxRate; sparse has its own
}

// MaxRate is the highest rate of a trace, in transactions per second.
const MaxRate = 1_000_000

// syntheticStart is a Monday, so that schedules find weekdays and a weekend.
var syntheticStart = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// shape is the mean of a synthetic trace, around which it is drawn.
type shape struct {
	rate   func(second int) float64 // transactions per second over all partitions
	hotter float64                  // share of the first partition beyond its even one, 0..1
}

// synthetic are the traces there are, in the order of their names' listing.
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

// Names lists the synthetic traces.
func Names() []string {
	names := make([]string, len(synthetic))
	for i, s := range synthetic {
		names[i] = s.name
	}
	return names
}

// Generate draws a synthetic trace: whole transactions from a Poisson process
// whose rate follows the shape of that name. It fails where there is no such
// name, and where the options are out of bounds.
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

// steady stays around the rate.
func steady(o Options, _ int, _ *rand.Rand) shape {
	return shape{rate: func(int) float64 { return o.Rate }}
}

// hot is steady, and one partition gets nine tenths of everything.
func hot(o Options, _ int, _ *rand.Rand) shape {
	even := 1 / float64(o.Partitions)
	return shape{
		rate:   func(int) float64 { return o.Rate },
		hotter: max(0, 0.9-even) / max(1e-9, 1-even),
	}
}

// ramp climbs from nothing to twice the rate, and back.
func ramp(o Options, seconds int, _ *rand.Rand) shape {
	half := float64(seconds) / 2
	return shape{rate: func(second int) float64 { return 2 * o.Rate * (1 - math.Abs(float64(second)-half)/half) }}
}

// span is a part of a trace, in seconds.
type span struct{ from, to int }

// within tells whether a second is in one of the spans, which are in order;
// seconds have to be asked for in order, too.
func within(spans []span) func(second int) bool {
	return func(second int) bool {
		for len(spans) > 0 && second >= spans[0].to {
			spans = spans[1:]
		}
		return len(spans) > 0 && second >= spans[0].from
	}
}

// burst is quiet, but for two to ten minutes of ten times as much in every
// three hours, at random.
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

// daily is a sine over 24 hours: almost nothing at midnight, twice the rate at
// noon, and each minute up to a fifth off.
func daily(o Options, _ int, r *rand.Rand) shape {
	noise := 1.0
	return shape{rate: func(second int) float64 {
		if second%60 == 0 {
			noise = 0.8 + 0.4*r.Float64()
		}
		return o.Rate * noise * (1 - math.Cos(2*math.Pi*float64(second)/86400))
	}}
}

// herd is silence, and every two hours (three times at least) all that would
// have come by then at once, at a random moment.
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

// sparse is silence of two to twenty minutes, then a handful of changes,
// whatever the rate.
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

// poisson draws a number of events where mean are expected: exactly for small
// means, by the normal distribution for big ones.
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

// wholeSeconds rounds up.
func wholeSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}
