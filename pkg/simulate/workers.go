package simulate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Workers says what the replicas of a processor can do, and how their handler works. Times are
// rounded up to seconds.
type Workers struct {
	Throughput float64       // transactions per second that one replica processes, above 0 and up to MaxRate
	StartUp    time.Duration // from the moment a replica is made to the moment it asks for leases
	Rebalance  time.Duration // for which nobody processes a lease that has just got another owner
	PollDelay  time.Duration // until a replica that found nothing in a partition looks again
	Batch      int           // changes that the handler gets at most, and after which it checkpoints; 0 = DefaultBatch
	BatchTime  time.Duration // that a full batch takes at least, whatever else the replica has to do; 0 = no limit but Throughput
	Container  Container     // whose request units they use
}

// The SDKs' own settings: how long a reader that found nothing waits (feedPollDelay), and what one
// page of the change feed holds (maxItemCount, which the service takes to be 100 where it is not
// set).
const (
	DefaultPollDelay = 5 * time.Second
	DefaultBatch     = 100
)

// credit is the unit in which capacity is counted, so that fractions of a transaction add up
// exactly: a millionth.
const credit = 1_000_000

// perSecond is a rate in transactions per second as credits.
func perSecond(rate float64) int64 { return int64(math.Round(rate * credit)) }

// leaseSpeed is what one lease alone can be worked off by, in credits per second.
func (w Workers) leaseSpeed() int64 {
	speed := perSecond(w.Throughput)
	if w.BatchTime > 0 {
		speed = max(1, min(speed, perSecond(float64(w.batch())/w.BatchTime.Seconds())))
	}
	return speed
}

func (w Workers) batch() int { return cmp.Or(w.Batch, DefaultBatch) }

// fleet is the model of a processor: its replicas, and the leases with what is pending in each. A
// second is a row of the trace.
type fleet struct {
	trace      Trace
	startUp    int
	rebalance  int
	pollDelay  int
	batch      int64
	speed      int64 // credits per second and replica
	leaseSpeed int64 // credits per second and lease
	meter      *meter
	random     *rand.Rand

	desired  int     // replicas there are: starting and working
	starting []group // by the second in which they are ready
	hosts    []*host // working replicas, the oldest first
	leases   []lease
	pending  int64
	made     int // hosts so far, for their names

	due      []contender // scratch of balance
	workers  []*host     // scratch of choose
	free     []*lease    // scratch of choose
	busy     []*lease    // scratch of work
	measured changefeed.ProcessorLag
	lags     []int64 // what the measurement points to
	ages     []int64
	sessions []int64
	done     []int64

	replicaSeconds int64
}

// group is some replicas that start together.
type group struct{ ready, replicas int }

// host is a working replica: an instance of the change feed processor.
type host struct {
	name    string
	leases  []*lease
	acquire int // row of its next look at the leases
	died    int // row in which it was killed, or never
	owned   int // leases that a host that chooses has seen it own
}

// lease is a partition: its lease document, what its owner has in hand, and what is pending.
type lease struct {
	name     string
	owner    *host // nil where nobody owns it
	acquired int   // row in which the owner got it, from which on it is renewed
	written  int   // row of the last checkpoint or release
	batch    int64 // changes that the handler has in hand; 0 where none
	progress int64 // of that batch, in credits
	spare    int64 // of this second, in credits; scratch of work
	look     int   // row in which the owner looks for changes next

	arrived, done int64  // transactions; done = up to the checkpoint
	head          int    // row in which the oldest pending transaction arrived
	left          int64  // of those that arrived in that row, how many are pending
	index         int    // partition
	position      string // the continuation, as a poll saw it last
	positionOf    int64  // and the checkpoint that it says
}

func (l *lease) pending() int64 { return l.arrived - l.done }

func newFleet(t Trace, w Workers, random *rand.Rand) *fleet {
	n := t.Partitions
	f := &fleet{
		trace: t, startUp: wholeSeconds(w.StartUp), rebalance: wholeSeconds(w.Rebalance), pollDelay: wholeSeconds(w.PollDelay),
		batch: int64(w.batch()), speed: perSecond(w.Throughput), leaseSpeed: w.leaseSpeed(), random: random, meter: newMeter(w.Container, n),
		leases: make([]lease, n), measured: changefeed.ProcessorLag{Partitions: make([]changefeed.Partition, n)},
		lags: make([]int64, n), ages: make([]int64, n), sessions: make([]int64, n), done: make([]int64, n),
	}
	for p := range f.leases {
		f.leases[p] = lease{name: strconv.Itoa(p), index: p, positionOf: -1}
	}
	return f
}

// arrive takes in what a row of the trace brings.
func (f *fleet) arrive(row int) {
	for p, n := range f.trace.Arrivals[row*len(f.leases):][:len(f.leases)] {
		if n == 0 {
			continue
		}
		l := &f.leases[p]
		if l.arrived == l.done {
			l.head, l.left = row, n
		}
		l.arrived += n
		f.pending += n
	}
}

// scale changes the replicas there are. In scale-in those that still start go first, then the
// youngest, which a ReplicaSet prefers too (getPodsToDelete in its controller); they stop in order.
func (f *fleet) scale(row, desired int) {
	if more := desired - f.desired; more > 0 {
		f.starting = append(f.starting, group{row + f.startUp, more})
	}
	for fewer := f.desired - desired; fewer > 0; {
		last := len(f.starting) - 1
		if last < 0 {
			f.stop(row, fewer)
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

// second is one second of the processor: replicas become ready, leases move, changes are processed.
func (f *fleet) second(row int) {
	for len(f.starting) > 0 && f.starting[0].ready <= row {
		for range f.starting[0].replicas {
			f.hosts = append(f.hosts, &host{name: "host-" + strconv.Itoa(f.made), acquire: row, died: never})
			f.made++
		}
		f.starting = slices.Delete(f.starting, 0, 1)
	}
	f.balance(row)
	f.replicaSeconds += int64(f.desired)
	for _, h := range f.hosts {
		f.work(h, row)
	}
	f.metered(row)
}

// behind is the lag and the age of the oldest pending change, in seconds, at the beginning of a row;
// 0 where nothing is pending. A change is pending until the checkpoint behind it is written.
func (f *fleet) behind(row int) (lag int64, age int) {
	if f.pending == 0 {
		return 0, 0
	}
	for p := range f.leases {
		if l := &f.leases[p]; l.arrived > l.done {
			age = max(age, row-l.head)
		}
	}
	return f.pending, age
}
