package simulate

import (
	"math"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Workers describes the replicas of a processor.
type Workers struct {
	Throughput float64       // transactions per second that one replica can process, above 0 and up to MaxRate
	StartUp    time.Duration // from a decision until a new replica works, rounded up to whole seconds
	Rebalance  time.Duration // pause of the whole processor when leases change owners, rounded up to whole seconds
	PollDelay  time.Duration // until a replica reads a partition again that had no changes, rounded up to whole seconds
}

// DefaultPollDelay is the SDKs' default (WithPollInterval in .NET, feedPollDelay in Java). Changes
// that arrive in that time wait, and count as lag.
const DefaultPollDelay = 5 * time.Second

// creditsPerTransaction is the unit of a replica's capacity: with a millionth of a transaction,
// fractions add up exactly.
const creditsPerTransaction = 1_000_000

// fleet is the model of a processor: its replicas, and what is pending in each partition. Each
// second is a row of the trace.
type fleet struct {
	trace     Trace
	startUp   int
	rebalance int
	pollDelay int
	speed     int64 // credits per second and replica

	desired     int // replicas, starting and working
	working     int
	starting    []batch // in the order in which they get ready
	owners      int     // working replicas that own a lease, at most the number of partitions
	pausedUntil int
	credits     []int64 // by owner
	nextRead    []int   // row in which each partition is read next

	arrived, done []int64 // transactions of each partition
	head          []int   // row in which the oldest pending transaction of each partition arrived
	left          []int64 // number of those that arrived in that row and are pending

	replicaSeconds int64
	measured       changefeed.ProcessorLag // overwritten by each measurement
	names          []string                // of leases and owners
	lags, ages     []int64                 // the values that the measurement points to
	sessions       []int64
	checkpoints    []int64
}

// batch is a number of replicas that start together; ready is the row in which they work.
type batch struct{ ready, replicas int }

func newFleet(t Trace, w Workers) *fleet {
	n := t.Partitions
	f := &fleet{
		trace: t, startUp: wholeSeconds(w.StartUp), rebalance: wholeSeconds(w.Rebalance), pollDelay: wholeSeconds(w.PollDelay), speed: int64(math.Round(w.Throughput * creditsPerTransaction)),
		credits: make([]int64, n), nextRead: make([]int, n), arrived: make([]int64, n), done: make([]int64, n), head: make([]int, n), left: make([]int64, n),
		measured: changefeed.ProcessorLag{Partitions: make([]changefeed.Partition, n)},
		names:    make([]string, n), lags: make([]int64, n), ages: make([]int64, n), sessions: make([]int64, n), checkpoints: make([]int64, n),
	}
	for p := range n {
		f.names[p] = strconv.Itoa(p)
	}
	return f
}

// arrive adds the transactions of a row of the trace.
func (f *fleet) arrive(row int) {
	for p, n := range f.trace.Arrivals[row*f.trace.Partitions:][:f.trace.Partitions] {
		if n == 0 {
			continue
		}
		if f.pending(p) == 0 {
			f.head[p], f.left[p] = row, n
		}
		f.arrived[p] += n
	}
}

func (f *fleet) pending(p int) int64 { return f.arrived[p] - f.done[p] }

// scale changes the number of replicas. A scale-in takes effect at once and removes the youngest
// first, as a Deployment does.
func (f *fleet) scale(row, desired int) {
	if more := desired - f.desired; more > 0 {
		f.starting = append(f.starting, batch{row + f.startUp, more})
	}
	for fewer := f.desired - desired; fewer > 0; {
		last := len(f.starting) - 1
		if last < 0 {
			f.working -= fewer
			break
		}
		stopped := min(fewer, f.starting[last].replicas)
		fewer -= stopped
		if f.starting[last].replicas -= stopped; f.starting[last].replicas == 0 {
			f.starting = f.starting[:last]
		}
	}
	f.desired = desired
}

// work is one second: replicas get ready, leases change owners, changes are processed.
func (f *fleet) work(row int) {
	for len(f.starting) > 0 && f.starting[0].ready <= row {
		f.working += f.starting[0].replicas
		f.starting = f.starting[1:]
	}
	if owners := min(f.working, f.trace.Partitions); owners != f.owners {
		f.owners, f.pausedUntil = owners, row+f.rebalance
	}
	f.replicaSeconds += int64(f.desired)
	if row < f.pausedUntil {
		return
	}
	for owner := range f.owners {
		f.process(owner, row)
	}
}

// process divides the capacity of an owner in one second among its partitions that have pending
// changes and are due to be read. It owns every owners-th partition from its own number on, and
// begins with another one each second.
func (f *fleet) process(owner, row int) {
	count := (f.trace.Partitions - owner + f.owners - 1) / f.owners
	pending := 0
	for i := range count {
		if p := owner + i*f.owners; f.nextRead[p] > row {
		} else if f.pending(p) > 0 {
			pending++
		} else {
			f.nextRead[p] = row + f.pollDelay
		}
	}
	f.credits[owner] += f.speed
	budget := f.credits[owner] / creditsPerTransaction
	f.credits[owner] %= creditsPerTransaction
	for budget > 0 && pending > 0 {
		share := max(1, budget/int64(pending))
		for i := range count {
			p := owner + (i+row)%count*f.owners
			n := min(share, budget, f.pending(p))
			if n == 0 || f.nextRead[p] > row {
				continue
			}
			f.finish(p, n)
			if budget -= n; f.pending(p) == 0 {
				f.nextRead[p] = row + f.pollDelay
				pending--
			}
		}
	}
	if pending == 0 {
		f.credits[owner] = 0 // idle capacity is lost
	}
}

// finish removes the n oldest pending transactions from a partition.
func (f *fleet) finish(p int, n int64) {
	f.done[p] += n
	for n > 0 {
		taken := min(n, f.left[p])
		n -= taken
		f.left[p] -= taken
		for f.left[p] == 0 && (n > 0 || f.pending(p) > 0) {
			f.head[p]++
			f.left[p] = f.trace.Arrivals[f.head[p]*f.trace.Partitions+p]
		}
	}
}

// behind returns the lag and the age of the oldest pending change, in seconds, at the beginning of
// a row; 0 where nothing is pending.
func (f *fleet) behind(row int) (lag int64, age int) {
	for p := range f.arrived {
		if n := f.pending(p); n > 0 {
			lag += n
			age = max(age, row-f.head[p])
		}
	}
	return lag, age
}

// now returns the time at the beginning of a row.
func (f *fleet) now(row int) time.Time {
	return f.trace.Start.Add(time.Duration(row-f.trace.Backlog) * time.Second)
}

// measure returns what the estimator would measure at the beginning of a row. The result is valid
// until the next call.
func (f *fleet) measure(row int) changefeed.ProcessorLag {
	f.measured.Time = f.now(row)
	for p := range f.measured.Partitions {
		// LSNs begin at 1: 0 stands for none.
		f.lags[p], f.ages[p] = f.pending(p), int64(row-f.head[p])
		f.sessions[p], f.checkpoints[p] = f.arrived[p]+1, f.done[p]+1
		m := changefeed.Partition{
			Lease: f.names[p], Lag: &f.lags[p], Status: changefeed.StatusOK, LeaseTime: f.measured.Partitions[p].LeaseTime,
			SessionLSN: &f.sessions[p], CheckpointLSN: &f.checkpoints[p], Position: strconv.FormatInt(f.done[p], 10),
		}
		if f.lags[p] > 0 {
			m.Age, m.Status = &f.ages[p], changefeed.StatusLagging
		}
		if f.owners > 0 {
			m.Owner, m.LeaseTime = f.names[p%f.owners], f.measured.Time
		}
		f.measured.Partitions[p] = m
	}
	return f.measured
}
