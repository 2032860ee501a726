package simulate

import (
	"cmp"
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
	Rate       float64       // transactions per second on average over all partitions, above 0 and up to MaxRate; some traces have more or their own
	Throughput float64       // of one replica, in transactions per second, which overload and outrun exceed; 0 = DefaultThroughput
	Skew       float64       // exponent of Zipf's law by which the partitions share what arrives, where the trace does not say how: 0 = evenly
}

// DefaultThroughput is what one replica processes unless told otherwise, in transactions per second.
const DefaultThroughput = 25

// MaxRate is the highest rate of a trace, in transactions per second.
const MaxRate = 1_000_000

// MaxSkew is the highest exponent of Zipf's law.
const MaxSkew = 5

// syntheticStart is a Monday, so that schedules find weekdays and a weekend.
var syntheticStart = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// shape is the mean of a synthetic trace, around which it is drawn.
type shape struct {
	rate   func(second int) float64   // transactions per second over all partitions
	shares func(second int) []float64 // of each partition; nil = by Options.Skew
}

// synthetic are the traces there are, in the order of their names' listing.
var synthetic = []struct {
	name  string
	shape func(o Options, seconds int, r *rand.Rand) shape
}{
	{"steady", steady},
	{"ramp", ramp},
	{"step", step},
	{"sawtooth", sawtooth},
	{"burst", burst},
	{"daily", daily},
	{"workday", workday},
	{"weekly", weekly},
	{"herd", herd},
	{"sparse", sparse},
	{"hot", hot},
	{"zipf", zipf},
	{"moving", moving},
	{"overload", overload},
	{"outrun", outrun},
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
	if !(o.Skew >= 0 && o.Skew <= MaxSkew) {
		return Trace{}, fmt.Errorf("trace %s: the skew is %v; allowed are numbers from 0 to %d", name, o.Skew, MaxSkew)
	}
	o.Throughput = cmp.Or(o.Throughput, DefaultThroughput)
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
		shares := zipfShares(o.Partitions, o.Skew)
		for second := range seconds {
			rate := shape.rate(second)
			if shape.shares != nil {
				shares = shape.shares(second)
			}
			for p := range o.Partitions {
				t.Arrivals[second*o.Partitions+p] = poisson(r, rate*shares[p])
			}
		}
		return t, nil
	}
	return Trace{}, fmt.Errorf("there is no trace %q; allowed are %q", name, Names())
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
