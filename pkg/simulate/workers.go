package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Workers says what the replicas of a processor can do, and how their handler works. Times are rounded
// up to a quarter of a second, StartUp to a second.
type Workers struct {
	Throughput float64       // transactions per second that one replica processes, above 0 and up to MaxRate
	StartUp    time.Duration // from the moment a replica is made to the moment it asks for leases
	Rebalance  time.Duration // until a lease that has got another owner is processed again
	PollDelay  time.Duration // until a replica that found nothing in a partition looks again
	Java       bool          // leases move as Java's library moves them, not .NET's
	BatchTime  time.Duration // that a batch takes at least, as that of a handler which waits for an answer
	Batch      int           // changes that the handler gets at most, and after which it checkpoints; 0 = 100
}

// DefaultWorkers are those of `feedscale simulate`, if nothing else is known. The SDKs' own settings are
// PollDelay (feedPollDelay) and Batch (maxItemCount).
func DefaultWorkers() Workers {
	return Workers{Throughput: 25, StartUp: 30 * time.Second, Rebalance: time.Second, PollDelay: 5 * time.Second, Batch: defaultBatch}
}

const (
	defaultBatch   = 100       // changes that the service puts into a page
	credit         = 1_000_000 // capacity is counted in millionths of a transaction, which add up exactly
	stepsPerSecond = 4         // with one, every lag would be too high by what arrives in a second
)

// perSecond is a rate in transactions per second as credits.
func perSecond(rate float64) int64 { return int64(math.Round(rate * credit)) }

// fleet is the model of a processor. A second is a row of the trace; a tick is a step, counted from the
// first row on.
type fleet struct {
	Workers
	trace      Trace
	speed      int64 // credits per second and replica
	leaseSpeed int64 // credits per second and lease
	shared     int64 // credits per second of all replicas together; 0 = no limit
	random     *rand.Rand
	steps      int // of a second

	desired  int     // replicas there are: starting and working
	starting []int   // rows in which those that start are ready, in order
	hosts    []*host // working replicas, the oldest first
	made     int     // hosts so far, for their names
	leases   []lease
	pending  int64
}

// host is a working replica: an instance of the change feed processor.
type host struct {
	name    string
	leases  []*lease
	late    []*lease // what is left of stolen ones: the batches that it had in hand
	acquire int      // row of its next look at the leases
	at      int      // millisecond of that look
}

// lease is a partition: its lease document, what its owner has in hand, and what is pending.
type lease struct {
	owner    *host // nil if it has none, and of a batch whose lease was stolen
	acquired int   // row in which the owner got it, from which on it is renewed
	written  int   // row of the last checkpoint or release
	batch    int64 // changes that the handler has in hand; 0 if none
	progress int64 // of that batch, in credits
	spare    int64 // of this second, in credits; scratch of work
	look     int   // tick in which the owner looks for changes next
	until    int   // tick before which the batch does not end

	arrived, done int64 // transactions; done = up to the checkpoint
	head          int   // row in which the oldest pending transaction arrived, when age looked last
	through       int64 // transactions of the trace up to the end of that row
}

func (l *lease) pending() int64 { return l.arrived - l.done }

func newFleet(t Trace, w Workers, random *rand.Rand) *fleet {
	w.Batch = cmp.Or(w.Batch, defaultBatch)
	f := &fleet{
		Workers: w, trace: t, random: random, leases: make([]lease, t.Partitions),
		speed: perSecond(w.Throughput), leaseSpeed: perSecond(w.Throughput), steps: stepsPerSecond,
	}
	for p := range f.leases {
		f.leases[p].head = -1
	}
	return f
}

// ticks is a time in steps, rounded up.
func (f *fleet) ticks(d time.Duration) int {
	return int((d*time.Duration(f.steps) + time.Second - 1) / time.Second)
}

// arrive takes in what a step of a row of the trace brings.
func (f *fleet) arrive(row, step int) {
	of := int64(f.steps)
	for p, n := range f.trace.Arrivals[row*len(f.leases):][:len(f.leases)] {
		if n == 0 {
			continue
		}
		l, turn := &f.leases[p], int64((row+p)%f.steps) // so that single ones come at any step
		before := (n*int64(step) + turn) / of
		now := (n*int64(step+1)+turn)/of - before
		l.arrived += now
		f.pending += now
	}
}

// scale changes the replicas there are. In scale-in those that still start go first, then the youngest,
// as in a ReplicaSet (getPodsToDelete in its controller); they stop in order.
func (f *fleet) scale(row, desired int) {
	for ; f.desired < desired; f.desired++ {
		f.starting = append(f.starting, row+wholeSeconds(f.StartUp))
	}
	for ; f.desired > desired; f.desired-- {
		if last := len(f.starting) - 1; last >= 0 {
			f.starting = f.starting[:last]
		} else {
			f.stop(row)
		}
	}
}

// second is one second of the processor: replicas become ready, leases move, changes are processed
// and arrive.
func (f *fleet) second(row int) {
	for len(f.starting) > 0 && f.starting[0] <= row {
		f.hosts = append(f.hosts, &host{name: "host-" + strconv.Itoa(f.made), acquire: row})
		f.made++
		f.starting = f.starting[1:]
	}
	f.balance(row)
	for step := range f.steps {
		left := f.shared / int64(f.steps)
		for i, h := range f.hosts {
			budget := f.speed / int64(f.steps)
			if f.shared > 0 {
				budget = min(budget, left/int64(len(f.hosts)-i))
			}
			left -= f.work(h, budget, row*f.steps+step)
		}
		f.arrive(row, step)
	}
}

// rewind sets each position, at the beginning of a row, back to the beginning of an earlier one.
func (f *fleet) rewind(row, to int) {
	for p := range f.leases {
		l, again := &f.leases[p], int64(0)
		for earlier := to; earlier < row; earlier++ {
			again += f.trace.Arrivals[earlier*len(f.leases)+p]
		}
		if done := l.arrived - again; done < l.done {
			f.pending += l.done - done
			l.done, l.batch, l.progress, l.head, l.through = done, 0, 0, -1, 0
		}
	}
}

// age is how long ago, in seconds, the oldest pending change of a partition arrived at the beginning of
// a row; 0 if nothing is pending. A change is pending until the checkpoint after it is written.
func (f *fleet) age(p, row int) int {
	l := &f.leases[p]
	if l.pending() == 0 {
		return 0
	}
	for l.through <= l.done {
		l.head++
		l.through += f.trace.Arrivals[l.head*len(f.leases)+p]
	}
	return row - l.head
}

// now is the time at the beginning of a row.
func (f *fleet) now(row int) time.Time {
	return f.trace.Start.Add(time.Duration(row-f.trace.Backlog) * time.Second)
}

// poll is what a poll finds at the beginning of a row: lease documents as their owners wrote them
// last, and what is pending after each position. It knows nothing of what a handler has in hand.
func (f *fleet) poll(row int) changefeed.ProcessorLag {
	lag := changefeed.ProcessorLag{Time: f.now(row), Partitions: make([]changefeed.Partition, len(f.leases))}
	for p := range f.leases {
		l, m := &f.leases[p], &lag.Partitions[p]
		*m = changefeed.Partition{ // LSNs begin at 1: 0 is none
			Lease: strconv.Itoa(p), Lag: new(l.pending()), Status: changefeed.StatusOK, LeaseTime: f.now(l.renewed(row)),
			SessionLSN: new(l.arrived + 1), CheckpointLSN: new(l.done + 1), Position: strconv.FormatInt(l.done, 10),
		}
		if l.pending() > 0 {
			m.Age, m.Status = new(int64(f.age(p, row))), changefeed.StatusLagging
		}
		if l.owner != nil {
			m.Owner = l.owner.name
		}
	}
	return lag
}
