package simulate

import (
	"math"
	"math/rand/v2"
)

// steady stays around the rate.
func steady(o Options, _ int, _ *rand.Rand) shape {
	return shape{rate: func(int) float64 { return o.Rate }}
}

// ramp climbs from nothing to twice the rate, and back.
func ramp(o Options, seconds int, _ *rand.Rand) shape {
	half := float64(seconds) / 2
	return shape{rate: func(second int) float64 { return 2 * o.Rate * (1 - math.Abs(float64(second)-half)/half) }}
}

// step is half the rate, and from a third of the trace to two thirds twice as much as on average.
func step(o Options, seconds int, _ *rand.Rand) shape {
	return shape{rate: func(second int) float64 {
		if second >= seconds/3 && second < 2*seconds/3 {
			return 2 * o.Rate
		}
		return o.Rate / 2
	}}
}

// sawtooth climbs from a fifth of the rate to nine fifths in two hours (in a third of the trace,
// where that is shorter), and falls back at once.
func sawtooth(o Options, seconds int, _ *rand.Rand) shape {
	period := max(1, min(7200, seconds/3))
	return shape{rate: func(second int) float64 {
		return o.Rate * (0.2 + 1.6*float64(second%period)/float64(period))
	}}
}

// span is a part of a trace, in seconds.
type span struct{ from, to int }

// within reports whether a second is in one of the spans, which are in order;
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
