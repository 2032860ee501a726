package main

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// Drawn is a shape that a seed drew from a family. Nobody chose its numbers, so a policy can be
// judged on shapes that it was not tuned on: even seeds are for tuning, odd seeds for judging.
type Drawn struct {
	Family  string
	Seed    uint64
	Workers simulate.Workers // all fields but StartUp

	rates   []float64                  // of each second, in transactions per second
	shares  func(second int) []float64 // of each partition; nil = equal
	backlog int                        // seconds of rates that are pending when the replay begins
	// a change of the replay's conditions at a second; nil = none
	happens func(replay *simulate.Replay, second int)
}

// families are what seeds draw from, in the order of the seeds: seeds 0 and 1 are of the first.
var families = []struct {
	name  string
	shape func(d *Drawn, partitions int, r *rand.Rand)
}{
	{"markov", markov},
	{"flash", flash},
	{"on/off", onOff},
	{"weekdays", weekdaysOf},
	{"cliffs", cliffs},
	{"replays", replays},
	{"cold start", coldStart},
	{"downstream", downstream},
	{"hot", hotPartition},
	{"zipf", zipfPartitions},
	{"half speed", halfSpeed},
	{"neighbour", neighbour},
	{"jobs", jobs},
	{"long batches", longBatches},
}

// throughputs are the possible rates of a replica, in transactions per second; batches are the
// possible batches of its handler.
var (
	throughputs = []float64{2, 8, 25, 25, 25, 80}
	batches     = []int{20, 100, 100, 500}
)

// draw draws a shape of so many seconds. On average it needs 0.6 to 2.2 replicas with 4 partitions;
// the need grows with the square root of the number of partitions.
func draw(seed uint64, seconds, partitions int) Drawn {
	family, r := families[int(seed/2)%len(families)], rand.New(rand.NewPCG(seed, 11))
	d := Drawn{Family: family.name, Seed: seed, Workers: simulate.DefaultWorkers(), rates: make([]float64, seconds)}
	d.Workers.Throughput, d.Workers.Batch = throughputs[r.IntN(len(throughputs))], batches[r.IntN(len(batches))]
	rate := d.Workers.Throughput * between(r, 0.6, 2.2) * math.Sqrt(float64(partitions)/4)
	wave(d.rates, r)
	family.shape(&d, partitions, r)
	mean := 0.0
	for _, now := range d.rates {
		mean += now / float64(len(d.rates))
	}
	for second := range d.rates {
		d.rates[second] *= rate / mean
	}
	return d
}

// arrivals draws a trace of the shape. It is the same for the same seed.
func (d Drawn) arrivals(partitions int, seed uint64) simulate.Trace {
	shape := simulate.Shape{Rate: func(second int) float64 { return d.rates[second] }, Shares: d.shares}
	t := shape.Draw(d.Family, len(d.rates), partitions, rand.New(rand.NewPCG(seed, d.Seed)))
	t.Backlog = d.backlog
	return t
}

// mean is the average arrivals per second of the replay.
func (d Drawn) mean() (mean float64) {
	rates := d.rates[d.backlog:]
	for _, rate := range rates {
		mean += rate / float64(len(rates))
	}
	return mean
}

// between draws a number between two others, uniformly on a logarithmic scale.
func between(r *rand.Rand, least, most float64) float64 {
	return least * math.Pow(most/least, r.Float64())
}

// seconds draws a duration between two numbers of minutes.
func seconds(r *rand.Rand, least, most float64) int { return int(60 * between(r, least, most)) }

// episodes draws separate periods of some minutes: the first second of each, and the second after
// it.
func episodes(r *rand.Rand, seconds, count int, least, most float64) (all [][2]int) {
	for range count {
		begin := r.IntN(seconds)
		all = append(all, [2]int{begin, begin + int(60*between(r, least, most))})
	}
	return all
}

func within(episodes [][2]int, second int) bool {
	for _, e := range episodes {
		if second >= e[0] && second < e[1] {
			return true
		}
	}
	return false
}

// wave is the base of every family: a slow wave with an amplitude of up to three fifths, and noise
// of up to a fifth in each minute.
func wave(rates []float64, r *rand.Rand) {
	height, period, phase, noise := 0.6*r.Float64(), 60*between(r, 60, 1440), 2*math.Pi*r.Float64(), 1.0
	off := 0.2 * r.Float64()
	for second := range rates {
		if second%60 == 0 {
			noise = 1 + off*(2*r.Float64()-1)
		}
		rates[second] = noise * (1 + height*math.Sin(phase+2*math.Pi*float64(second)/period))
	}
}

// markov has 2 to 5 levels up to thirty times apart, and stays on one for 2 to 40 minutes on
// average.
func markov(d *Drawn, _ int, r *rand.Rand) {
	levels, stay := make([]float64, 2+r.IntN(4)), 60*between(r, 2, 40)
	for i := range levels {
		levels[i] = between(r, 0.1, 3)
	}
	now := 0
	for second := range d.rates {
		if r.Float64() < 1/stay {
			now = r.IntN(len(levels))
		}
		d.rates[second] *= levels[now]
	}
}

// flash has one to three crowds of 3 to 15 times the normal rate, which rise within two minutes and
// fade slowly.
func flash(d *Drawn, _ int, r *rand.Rand) {
	for range 1 + r.IntN(3) {
		begin, peak, rise, decay := r.IntN(len(d.rates)), between(r, 2, 14), between(r, 10, 120), 60*between(r, 5, 60)
		for second := begin; second < len(d.rates); second++ {
			t := float64(second - begin)
			d.rates[second] += peak * min(1, t/rise) * math.Exp(-max(0, t-rise)/decay)
		}
	}
}

// onOff is on for a part of its period, which is a minute to four hours, and otherwise off or
// nearly off.
func onOff(d *Drawn, _ int, r *rand.Rand) {
	period, on, off := seconds(r, 1, 240), 0.1+0.6*r.Float64(), max(0, 0.3*r.Float64()-0.1)
	for second := range d.rates {
		if float64(second%period) >= on*float64(period) {
			d.rates[second] *= off
		}
	}
}

// weekdaysOf has days of three hours from a week that begins on any day; one day in five is a
// holiday.
func weekdaysOf(d *Drawn, _ int, r *rand.Rand) {
	hours, day, busy := &officeHours, r.IntN(7), 1.0
	if r.IntN(2) == 0 {
		hours = &workdayHours
	}
	of, begin := hourly(hours, r), r.IntN(86400)
	for second := range d.rates {
		at := begin + 8*second
		if second == 0 || at%86400 < 8 {
			busy = weekdays[(day+at/86400)%7]
			if r.IntN(5) == 0 {
				busy = weekdays[6]
			}
		}
		d.rates[second] *= busy * of(at)
	}
}

// cliffs rises or falls for 10 minutes to 3 hours by a factor of up to ten, and then jumps back.
func cliffs(d *Drawn, _ int, r *rand.Rand) {
	length, from, to := seconds(r, 10, 180), between(r, 0.1, 1), 1.0
	if r.IntN(2) == 0 {
		from, to = to, from
	}
	for second := range d.rates {
		d.rates[second] *= from + (to-from)*float64(second%length)/float64(length)
	}
}

// replays sets the positions back by 5 to 60 minutes, once to three times.
func replays(d *Drawn, _ int, r *rand.Rand) {
	at := make(map[int]int)
	for range 1 + r.IntN(3) {
		at[r.IntN(len(d.rates))] = seconds(r, 5, 60)
	}
	d.happens = func(replay *simulate.Replay, second int) {
		if back := at[second]; back > 0 {
			replay.Rewind(back)
		}
	}
}

// coldStart begins with what arrived in 10 minutes to 2 hours.
func coldStart(d *Drawn, _ int, r *rand.Rand) { d.backlog = min(len(d.rates)/2, seconds(r, 10, 120)) }

// downstream has one to three periods in which all replicas together process 0.3 to 1.2 times the
// mean.
func downstream(d *Drawn, partitions int, r *rand.Rand) {
	slow, part := episodes(r, len(d.rates), 1+r.IntN(3), 10, 60), between(r, 0.3, 1.2)
	d.happens = func(replay *simulate.Replay, second int) {
		limit := 0.0
		if within(slow, second) {
			limit = part * d.mean()
		}
		replay.SetSharedLimit(limit)
	}
}

// hotPartition gives one partition 3 to 95 percent. In four of five shapes one replica is enough
// for it.
func hotPartition(d *Drawn, partitions int, r *rand.Rand) {
	hot, share := r.IntN(partitions), between(r, 0.3, 0.95)
	if r.IntN(5) > 0 {
		share = min(share, 0.5/math.Sqrt(float64(partitions)/4))
	}
	shares := make([]float64, partitions)
	oneHot(shares, hot, share)
	d.shares = func(int) []float64 { return shares }
}

// zipfPartitions shares by Zipf's law with an exponent of 0.4 to 1.3, in any order.
func zipfPartitions(d *Drawn, partitions int, r *rand.Rand) {
	shares, exponent, sum := make([]float64, partitions), between(r, 0.4, 1.3), 0.0
	for i, p := range r.Perm(partitions) {
		shares[p] = math.Pow(float64(i+1), -exponent)
		sum += shares[p]
	}
	for p := range shares {
		shares[p] /= sum
	}
	d.shares = func(int) []float64 { return shares }
}

// halfSpeed has one to three periods, together up to half of the trace, in which a replica
// processes half as much.
func halfSpeed(d *Drawn, _ int, r *rand.Rand) {
	slow := episodes(r, len(d.rates), 1+r.IntN(3), 10, float64(len(d.rates))/120)
	full := d.Workers.Throughput
	d.happens = func(replay *simulate.Replay, second int) {
		if within(slow, second) {
			replay.SetThroughput(full / 2)
		} else {
			replay.SetThroughput(full)
		}
	}
}

// neighbour has three to twelve periods of 1 to 15 minutes in which somebody else uses the
// account's request units. Each partition is then served 0.5 to 2 times its mean arrivals.
func neighbour(d *Drawn, partitions int, r *rand.Rand) {
	loud, part := episodes(r, len(d.rates), 3+r.IntN(10), 1, 15), between(r, 0.5, 2)
	d.happens = func(replay *simulate.Replay, second int) {
		if within(loud, second) {
			replay.SetLeaseLimit(part * d.mean() / float64(partitions))
		} else {
			replay.SetLeaseLimit(simulate.MaxRate)
		}
	}
}

// jobs has 2 to 8 times the normal rate for 1 to 15 minutes of every 15 minutes to 2 hours.
func jobs(d *Drawn, _ int, r *rand.Rand) {
	period, length, factor := []int{900, 1800, 3600, 3600, 7200}[r.IntN(5)], seconds(r, 1, 15), between(r, 2, 8)
	for second := range d.rates {
		if second%period < length {
			d.rates[second] *= factor
		}
	}
}

// longBatches has a handler that needs 5 to 60 seconds for each batch of any size, because it waits
// for an answer.
func longBatches(d *Drawn, _ int, r *rand.Rand) {
	d.Workers.BatchTime, d.Workers.Batch = time.Duration(seconds(r, 1.0/12, 1))*time.Second, 1000
}
