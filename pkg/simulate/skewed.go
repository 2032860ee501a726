package simulate

import (
	"math"
	"math/rand/v2"
)

// zipfShares are the shares of partitions of which the n-th gets 1/n^exponent as much as the first.
func zipfShares(partitions int, exponent float64) []float64 {
	shares, sum := make([]float64, partitions), 0.0
	for p := range shares {
		shares[p] = math.Pow(float64(p+1), -exponent)
		sum += shares[p]
	}
	for p := range shares {
		shares[p] /= sum
	}
	return shares
}

// oneHot are shares of which one partition has at least so much, and the others the rest evenly.
func oneHot(shares []float64, hot int, share float64) {
	share = max(share, 1/float64(len(shares)))
	for p := range shares {
		shares[p] = (1 - share) / float64(max(1, len(shares)-1))
	}
	shares[hot] = share
}

// hot is steady, and one partition gets nine tenths of everything.
func hot(o Options, _ int, _ *rand.Rand) shape {
	shares := make([]float64, o.Partitions)
	oneHot(shares, 0, 0.9)
	return shape{
		rate:   func(int) float64 { return o.Rate },
		shares: func(int) []float64 { return shares },
	}
}

// zipf is steady, and the partitions share it by Zipf's law, as keys that people choose do.
func zipf(o Options, _ int, _ *rand.Rand) shape {
	shares := zipfShares(o.Partitions, 1)
	return shape{
		rate:   func(int) float64 { return o.Rate },
		shares: func(int) []float64 { return shares },
	}
}

// moving is steady, and four tenths of it go to one partition, to another one each half an hour: a
// partition key that follows time.
func moving(o Options, _ int, r *rand.Rand) shape {
	const stay = 1800
	shares := make([]float64, o.Partitions)
	return shape{
		rate: func(int) float64 { return o.Rate },
		shares: func(second int) []float64 {
			if second%stay == 0 {
				oneHot(shares, r.IntN(o.Partitions), 0.4)
			}
			return shares
		},
	}
}

// overload is steady, and for an eighth of the trace, from the middle on, more than a replica for
// each partition could process, by a quarter.
func overload(o Options, seconds int, _ *rand.Rand) shape {
	return shape{rate: func(second int) float64 {
		if second >= seconds/2 && second < seconds/2+seconds/8 {
			return max(o.Rate, 1.25*float64(o.Partitions)*o.Throughput)
		}
		return o.Rate
	}}
}

// outrun is steady, and one partition gets on top of that all the time a fifth more than one replica
// could process: it falls behind for ever, whatever anybody does.
func outrun(o Options, _ int, _ *rand.Rand) shape {
	rate := o.Rate + 1.2*o.Throughput
	shares := make([]float64, o.Partitions)
	for p := range shares {
		shares[p] = o.Rate / float64(o.Partitions) / rate
	}
	shares[0] += 1.2 * o.Throughput / rate
	return shape{
		rate:   func(int) float64 { return rate },
		shares: func(int) []float64 { return shares },
	}
}
