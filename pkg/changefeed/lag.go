package changefeed

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Status is the state of a partition, or of a processor as a whole (docs/status.md).
type Status string

// The statuses, worst first. A processor has the worst status of its partitions, or one of its own.
const (
	StatusUnknown        Status = "unknown"        // could not be measured in this tick
	StatusStalled        Status = "stalled"        // pending, and its position has not moved for stalledAfter though somebody owned it
	StatusExpiring       Status = "expiring"       // the oldest pending change leaves its retention within a quarter of it
	StatusAhead          Status = "ahead"          // its position is beyond all that the feed has
	StatusUncovered      Status = "uncovered"      // of a processor: no lease covers some keys
	StatusBootstrap      Status = "bootstrap"      // no lease exists yet: the processor has to run once
	StatusSplitting      Status = "splitting"      // the partition key range was split or merged, and the lease not replaced yet
	StatusUnclaimed      Status = "unclaimed"      // pending, replicas were asked for, and nobody owned or wrote its lease for stalledAfter
	StatusUncheckpointed Status = "uncheckpointed" // the lease has no continuation and the processor starts from now
	StatusLagging        Status = "lagging"        // pending, and being worked on
	StatusOK             Status = "ok"             // nothing pending
)

// Statuses returns every status, worst first.
func Statuses() [11]Status {
	return [...]Status{
		StatusUnknown, StatusStalled, StatusExpiring, StatusAhead, StatusUncovered, StatusBootstrap, StatusSplitting,
		StatusUnclaimed, StatusUncheckpointed, StatusLagging, StatusOK,
	}
}

// Worse returns the worse of two statuses. The empty status is better than any.
func Worse(a, b Status) Status {
	for _, s := range Statuses() {
		if a == s || b == s {
			return s
		}
	}
	return ""
}

// Wakes reports whether a status asks for a replica whatever the activation threshold, because only
// a running processor can end it (docs/decide.md, step 1).
func (s Status) Wakes() bool {
	return s == StatusUncovered || s == StatusBootstrap || s == StatusSplitting || s == StatusUncheckpointed
}

// Partition is what one tick measured of one lease. A nil number is unknown, which is never the
// same as zero.
type Partition struct {
	Lease       string `json:"lease"`                 // lease token: a partition key range id, or min-max for an EPK lease
	Range       *Range `json:"range"`                 // nil for a PK-range lease whose range was not needed
	Owner       string `json:"owner"`                 // host name of the owner, "" if nobody owns the lease
	Lag         *int64 `json:"lag"`                   // pending transactions, at least 0; nil if unknown
	Age         *int64 `json:"changeAgeSeconds"`      // seconds since the oldest pending change was written; nil if nothing is pending
	Status      Status `json:"status"`                // of this reading alone; pkg/health refines it by earlier polls
	Ranges      int    `json:"ranges,omitempty"`      // partition key ranges that the lease stands for now: more than 1 after a split; 0 counts as 1
	Approximate bool   `json:"approximate,omitempty"` // something is pending, but Lag is not exact
	Error       string `json:"error,omitempty"`       // why Lag is nil or incomplete, and what to do about it

	ReadCharge float64 `json:"readCharge,omitempty"` // request units of the page that was read; 0 if none was
	Unchanged  bool    `json:"unchanged,omitempty"`  // neither the position nor the newest LSN moved since the poll before

	Measured time.Time           `json:"measured,omitzero"` // when a reading was made that is carried over from an earlier tick; zero = in this tick
	Stall    *Stall              `json:"stall,omitempty"`   // of a stalled partition; else nil
	Rewound  *Rewind             `json:"rewound,omitempty"` // the position went backwards within the last hour; else nil
	Ahead    *AheadPosition      `json:"ahead,omitempty"`   // the position is beyond all that the feed has; else nil
	Reading  Status              `json:"reading,omitempty"` // status of the reading alone, if it wakes the processor and a worse one hides it; else ""
	Stuck    bool                `json:"stuck,omitempty"`   // an earlier poll reported it as stalled, and its position has not moved since
	Earlier  *EarlierMeasurement `json:"earlier,omitempty"` // of a partition that is unknown now; else nil

	Part      bool `json:"part,omitempty"`      // the lease covers a part of a range, and is measured against the LSN of all of it
	Inherited bool `json:"inherited,omitempty"` // the position is from before a split or merge, so that other leases may count the same changes

	LeaseTime     time.Time `json:"leaseTime,omitzero"`      // when the owner last renewed the lease; zero if never
	BadTime       bool      `json:"badLeaseTime,omitempty"`  // the lease has a time that no owner can have written, which counts as none
	SessionLSN    *int64    `json:"sessionLSN,omitempty"`    // newest LSN of the partition key range
	CheckpointLSN *int64    `json:"checkpointLSN,omitempty"` // LSN up to which changes are processed
	Position      string    `json:"position,omitempty"`      // the lease's continuation, opaque; compared to see whether the checkpoint moved
}

// EarlierMeasurement is what earlier polls know of a partition that the last one could not measure.
type EarlierMeasurement struct {
	Lag   *int64    `json:"lag,omitempty"` // pending transactions, if the last reading is recent enough to count; else nil
	Since time.Time `json:"since"`         // first of the polls in a row that could not measure it
}

// Count returns the number of partition key ranges that the partition stands for, at least 1.
func (p *Partition) Count() int { return max(1, p.Ranges) }

// Carried reports whether the reading was taken over from an earlier tick.
func (p *Partition) Carried() bool { return !p.Measured.IsZero() }

// Known reports whether all of the partition was measured.
func (p *Partition) Known() bool { return p.Lag != nil && p.Error == "" }

// Live reports whether the partition has an owner that renewed the lease within expiration.
func (p *Partition) Live(now time.Time, expiration time.Duration) bool {
	return p.Owner != "" && now.Sub(p.LeaseTime) <= expiration
}

// Wakes returns the status by which the partition wakes its processor; "" if it has none.
func (p *Partition) Wakes() Status {
	if p.Status.Wakes() {
		return p.Status
	}
	return p.Reading // it wakes, if there is one
}

// Pending reports whether the partition is known to have changes to process.
func (p *Partition) Pending() bool { return p.Lag != nil && *p.Lag > 0 }

// Beyond reports whether the position was beyond all that the feed had when it was read. A late
// replica of the service shows the same for a moment.
func (p *Partition) Beyond() bool {
	return p.Lag != nil && *p.Lag == 0 && p.Count() == 1 &&
		p.CheckpointLSN != nil && p.SessionLSN != nil && *p.CheckpointLSN > *p.SessionLSN
}

// ProcessorLag is what one tick measured of one processor.
type ProcessorLag struct {
	Time       time.Time     `json:"time"`                // when it was measured
	Partitions []Partition   `json:"partitions"`          // one per lease, in the order of lease tokens
	Bootstrap  bool          `json:"bootstrap,omitempty"` // no lease exists: lag 1, no partitions
	Nearest    string        `json:"nearest,omitempty"`   // with Bootstrap: what the lease container holds instead, as a sentence; "" if it holds no leases
	Coverage   Coverage      `json:"coverage,omitzero"`   // which keys no lease covers
	Leftover   []string      `json:"leftover,omitempty"`  // tokens of leases that other leases replaced and that were not deleted
	Retention  time.Duration `json:"retention,omitempty"` // how long the monitored container keeps a change; 0 = without limit, or unknown
	Error      string        `json:"error,omitempty"`     // why nothing could be measured: leases, the container or its ranges could not be read
	Causes     []Cause       `json:"causes,omitempty"`    // of the errors of the processor and of its partitions, each once
	Charge     float64       `json:"requestCharge"`       // request units spent on this processor, shared requests counted once
	Requests   int           `json:"requests"`            // HTTP requests made for this processor, shared requests counted once
}

// AddLag adds two lags, at most math.MaxInt64: with an absurd session LSN the sum could overflow
// and say that nothing is pending.
func AddLag(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Lag returns the sum of the lag of the known partitions, in transactions, and 1 for all uncovered keys;
// nil if no partition is known, and 1 for a bootstrap. With an uncheckpointed partition it is at least 1: what
// is pending for that is in its owner's memory, and so the owner may never sleep (docs/lag.md).
func (l *ProcessorLag) Lag() *int64 {
	if l.Bootstrap {
		return new(int64(1))
	}
	known, sum, least := false, int64(0), int64(0)
	for _, p := range l.Partitions {
		if p.Lag != nil {
			known, sum = true, AddLag(sum, *p.Lag)
		}
		if p.Status == StatusUncheckpointed {
			least = 1
		}
	}
	switch {
	case !known:
		return nil
	case l.Uncovered():
		sum = AddLag(sum, 1)
	}
	return new(max(sum, least))
}

// Uncovered reports whether no lease covers some keys, though leases exist.
func (l *ProcessorLag) Uncovered() bool { return !l.Bootstrap && len(l.Coverage.Holes) > 0 }

// Age returns the greatest age of a pending change, in seconds; nil if nothing is pending or no
// age is known.
func (l *ProcessorLag) Age() *int64 {
	var oldest *int64
	for _, p := range l.Partitions {
		oldest = Greater(oldest, p.Age)
	}
	return oldest
}

// Greater returns the greater of two numbers; nil is unknown and does not count.
func Greater[N cmp.Ordered](a, b *N) *N {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// PartitionsWithLag returns the number of partitions known to have pending changes.
func (l *ProcessorLag) PartitionsWithLag() int {
	n := 0
	for _, p := range l.Partitions {
		if p.Pending() {
			n++
		}
	}
	return n
}

// PartitionCount returns the number of partitions; a lease whose range was split counts as the
// ranges that replaced it.
func (l *ProcessorLag) PartitionCount() int {
	n := 0
	for _, p := range l.Partitions {
		n += p.Count()
	}
	return n
}

// LiveOwners returns the number of distinct owners that renewed a lease within expiration; nil if the leases
// could not be read. With flapping, the last owner of a flapping lease counts while the lease has no owner:
// a poll seldom sees who has such a lease. That owner may be gone.
func (l *ProcessorLag) LiveOwners(now time.Time, expiration time.Duration, flapping bool) *int {
	if l.Error != "" {
		return nil
	}
	owners := make(map[string]bool)
	for _, p := range l.Partitions {
		if flapping && p.Owner == "" && p.Stall != nil && p.Stall.Kind == StallFlapping && len(p.Stall.Owners) > 0 {
			p.Owner = p.Stall.Owners[len(p.Stall.Owners)-1]
		}
		if p.Live(now, expiration) {
			owners[p.Owner] = true
		}
	}
	return new(len(owners))
}

// Status returns the worst status of the partitions and of the processor itself.
func (l *ProcessorLag) Status() (worst Status) {
	switch {
	case l.Error != "":
		return StatusUnknown
	case l.Bootstrap:
		return StatusBootstrap
	case l.Uncovered():
		worst = StatusUncovered
	}
	for _, p := range l.Partitions {
		worst = Worse(worst, p.Status)
	}
	return worst
}

// Problem returns in one sentence why the measurement is not complete: the error of the processor,
// or of its first unknown partition; "" if it is complete.
func (l *ProcessorLag) Problem() string {
	n, first := l.unknown()
	if l.Error != "" || n == 0 {
		return l.Error
	}
	return fmt.Sprintf("%d of %d partitions are unknown: %s", n, len(l.Partitions), first)
}

// unknown returns how many partitions are unknown, and the first error of them.
func (l *ProcessorLag) unknown() (n int, first string) {
	for _, p := range l.Partitions {
		if !p.Known() {
			n++
			first = cmp.Or(first, p.Error)
		}
	}
	return n, first
}

// Known reports whether at least one partition, or that there are no leases, was measured.
func (l *ProcessorLag) Known() bool { return l.Lag() != nil }

// Ahead reports whether every partition was read, and is ahead of the feed: no replica can help.
func (l *ProcessorLag) Ahead() bool {
	other := func(p Partition) bool { return p.Ahead == nil }
	return len(l.Partitions) > 0 && !slices.ContainsFunc(l.Partitions, other)
}

// Complete reports whether no partition is unknown.
func (l *ProcessorLag) Complete() bool {
	n, _ := l.unknown()
	return l.Error == "" && n == 0 && (l.Bootstrap || len(l.Partitions) > 0)
}

// Totals are the sums over the partitions of one measurement, as the API, the events, the history
// and the terminal show them. nil means unknown, which is never the same as zero.
type Totals struct {
	Lag               *int64 `json:"lag"`               // pending transactions; nil if no partition is known
	Age               *int64 `json:"changeAgeSeconds"`  // seconds since the oldest pending change was written; nil also if nothing is pending
	Partitions        *int   `json:"partitionCount"`    // a lease whose range was split counts as the ranges that replaced it; nil if the leases could not be read
	PartitionsWithLag *int   `json:"partitionsWithLag"` // nil if no partition is known
	Complete          bool   `json:"complete"`          // no partition is unknown
	Status            Status `json:"status"`            // the worst of the partitions
}

// Totals returns the sums over the partitions.
func (l *ProcessorLag) Totals() Totals {
	t := Totals{Lag: l.Lag(), Age: l.Age(), Complete: l.Complete(), Status: l.Status()}
	if l.Error == "" {
		t.Partitions = new(l.PartitionCount())
		if t.Lag != nil {
			t.PartitionsWithLag = new(l.PartitionsWithLag())
		}
	}
	return t
}

// Sum returns the totals over several processors: what is unknown of one makes the whole
// incomplete, and a number nil only if no processor has it.
func Sum(of []Totals) Totals {
	sum := Totals{Complete: true}
	for _, t := range of {
		sum.Lag = plus(sum.Lag, t.Lag)
		sum.Partitions = plus(sum.Partitions, t.Partitions)
		sum.PartitionsWithLag = plus(sum.PartitionsWithLag, t.PartitionsWithLag)
		sum.Age = Greater(sum.Age, t.Age)
		sum.Complete = sum.Complete && t.Complete
		sum.Status = Worse(sum.Status, t.Status)
	}
	return sum
}

// plus adds two numbers of 0 or more, of which nil is none.
func plus[N int | int64](a, b *N) *N {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(N(AddLag(int64(*a), int64(*b))))
}

// StallKind says how a partition fails to make progress.
type StallKind string

// The kinds of a stall.
const (
	StallHung     StallKind = "hung"     // one owner keeps the lease, and its handler does not return
	StallFlapping StallKind = "flapping" // the lease is released and acquired again and again, since the handler throws
)

// Why says what makes the partition stand still, as a sentence; "" if the kind is unknown.
func (k StallKind) Why() string {
	return map[StallKind]string{StallHung: "the handler does not return", StallFlapping: "the handler throws or its process dies"}[k]
}

// Stall says since when the position of a partition has not moved, and which owners had its lease.
type Stall struct {
	Kind   StallKind `json:"kind"`
	Since  time.Time `json:"since"`
	Owners []string  `json:"owners"` // the owners seen since then, at most the latest 5, in the order in which they were last seen
}

// Rewind is a position that went backwards: a lease was restored, reset or deleted.
type Rewind struct {
	From int64     `json:"from"` // LSN of the checkpoint before
	To   int64     `json:"to"`   // LSN of the checkpoint after; 0 if the lease has none any more
	Time time.Time `json:"time"` // of the poll that found it
}

// AheadPosition is a position that the feed has not reached: the lease comes from elsewhere.
type AheadPosition struct {
	Position int64 `json:"position"` // LSN of the checkpoint
	Feed     int64 `json:"feed"`     // newest LSN of the partition key range
}

// shown is how many partitions a sentence names, if there are more than one beyond them.
const shown = 3

// List joins names, and counts those beyond the first few: "partitions 0, 1, 2 and 6 more". It is ""
// without names.
func List(what string, names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return what + " " + names[0]
	}
	first, last := names[:len(names)-1], names[len(names)-1]
	if len(names) > shown+1 {
		first, last = names[:shown], fmt.Sprintf("%d more", len(names)-shown)
	}
	return what + "s " + strings.Join(first, ", ") + " and " + last
}

// ListPartitions is List with the leases of partitions.
func ListPartitions(partitions []Partition) string {
	names := make([]string, len(partitions))
	for i, p := range partitions {
		names[i] = p.Lease
	}
	return List("partition", names)
}
