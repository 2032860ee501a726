package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// Load is the size and length of a trace.
type Load struct {
	Duration   time.Duration // at least a second
	Partitions int           // at least 1
	Rate       float64       // transactions per second on average, over all partitions
	// of one replica, in transactions per second; the shapes overload and outrun exceed it
	Throughput float64
}

// Shape is a form in which changes arrive. To add one, add it to shapes.
type Shape struct {
	Name  string
	Times int     // factor on the duration of the trace; 0 = 1
	Share float64 // factor on the rate of the trace; 0 = 1

	// draw is nil if package simulate has a trace of this name.
	draw func(l Load, seconds int, r *rand.Rand) simulate.Shape
}

// shapes are those of decision 0011, in its order.
var shapes = []Shape{
	{Name: "steady"},
	{Name: "ramp"},
	{Name: "step"},
	{Name: "sawtooth"},
	{Name: "burst"},
	{Name: "daily"},
	{Name: "workday", draw: workday},
	{Name: "weekly", Times: 7, draw: weekly},
	{Name: "herd"},
	{Name: "sparse"},
	{Name: "hot", Share: 0.5, draw: hot}, // at the full rate, one partition would outrun a replica
	{Name: "zipf", draw: zipf},
	{Name: "moving", draw: moving},
	{Name: "overload", draw: overload},
	{Name: "outrun", draw: outrun},
}

// shapesNamed returns the shapes with these names. For an unknown name, the error comes from
// Arrivals.
func shapesNamed(names []string) (named []Shape) {
	for _, name := range names {
		i := slices.IndexFunc(shapes, func(s Shape) bool { return s.Name == name })
		if i < 0 {
			named = append(named, Shape{Name: name})
		} else {
			named = append(named, shapes[i])
		}
	}
	return named
}

// of returns the load of this shape, given the load of the others.
func (s Shape) of(l Load) Load {
	if s.Times > 0 {
		l.Duration *= time.Duration(s.Times)
	}
	if s.Share > 0 {
		l.Rate *= s.Share
	}
	return l
}

// Arrivals draws a trace. It is the same for the same seed.
func (s Shape) Arrivals(l Load, seed uint64) (simulate.Trace, error) {
	l = s.of(l)
	if s.draw == nil {
		return simulate.Generate(s.Name, simulate.Options{Seed: seed, Duration: l.Duration, Partitions: l.Partitions, Rate: l.Rate})
	}
	r, seconds := rand.New(rand.NewPCG(seed, 0)), int(l.Duration/time.Second)
	return s.draw(l, seconds, r).Draw(s.Name, seconds, l.Partitions, r), nil
}

// zipfShares returns the shares of partitions by Zipf's law: the nth has 1/n of the first.
func zipfShares(partitions int) []float64 {
	shares, sum := make([]float64, partitions), 0.0
	for p := range shares {
		shares[p] = math.Pow(float64(p+1), -1)
		sum += shares[p]
	}
	for p := range shares {
		shares[p] /= sum
	}
	return shares
}

// oneHot returns shares of which one partition has at least the given share, and the others have
// equal parts of the rest.
func oneHot(shares []float64, hot int, share float64) {
	share = max(share, 1/float64(len(shares)))
	for p := range shares {
		shares[p] = (1 - share) / float64(max(1, len(shares)-1))
	}
	shares[hot] = share
}

// hot is steady; one partition gets nine tenths of all changes.
func hot(l Load, _ int, _ *rand.Rand) simulate.Shape {
	shares := make([]float64, l.Partitions)
	oneHot(shares, 0, 0.9)
	return simulate.Shape{
		Rate:   func(int) float64 { return l.Rate },
		Shares: func(int) []float64 { return shares },
	}
}

// zipf is steady; the partitions share the changes by Zipf's law, as keys that people choose do.
func zipf(l Load, _ int, _ *rand.Rand) simulate.Shape {
	shares := zipfShares(l.Partitions)
	return simulate.Shape{
		Rate:   func(int) float64 { return l.Rate },
		Shares: func(int) []float64 { return shares },
	}
}

// moving is steady; four tenths go to one partition, and to another one every half hour, as with a
// partition key that follows time.
func moving(l Load, _ int, r *rand.Rand) simulate.Shape {
	const stay = 1800
	shares := make([]float64, l.Partitions)
	return simulate.Shape{
		Rate: func(int) float64 { return l.Rate },
		Shares: func(second int) []float64 {
			if second%stay == 0 {
				oneHot(shares, r.IntN(l.Partitions), 0.4)
			}
			return shares
		},
	}
}

// overload is steady, except for an eighth of the trace from the middle on, in which arrivals
// exceed the capacity of one replica for each partition by a quarter.
func overload(l Load, seconds int, _ *rand.Rand) simulate.Shape {
	return simulate.Shape{Rate: func(second int) float64 {
		if second >= seconds/2 && second < seconds/2+seconds/8 {
			return max(l.Rate, 1.25*float64(l.Partitions)*l.Throughput)
		}
		return l.Rate
	}}
}

// outrun is steady; one partition also gets, all the time, a fifth more than one replica can
// process. Its lag grows for ever, whatever a scaler does.
func outrun(l Load, _ int, _ *rand.Rand) simulate.Shape {
	rate := l.Rate + 1.2*l.Throughput
	shares := make([]float64, l.Partitions)
	for p := range shares {
		shares[p] = l.Rate / float64(l.Partitions) / rate
	}
	shares[0] += 1.2 * l.Throughput / rate
	return simulate.Shape{
		Rate:   func(int) float64 { return rate },
		Shares: func(int) []float64 { return shares },
	}
}
