// Package report turns a State into what users see. The HTTP API, the scale events and the terminal
// share this projection, so that null has one meaning everywhere. The history stores
// [state.Sample], from the same totals.
//
// It is pure: it imports the domain, the State and the event, and neither a store nor a service.
// Start with [New].
//
// The package is internal to the program: its API may change in any release.
package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Subject is what the views of a processor and of a group have in common. Their JSON always has
// every field; null is unknown (docs/operate.md).
type Subject struct {
	Lag              *int64             `json:"lag"`              // pending transactions that are known
	ChangeAgeSeconds *int64             `json:"changeAgeSeconds"` // null also if nothing is pending
	MetricValue      *int64             `json:"metricValue"`
	Active           *bool              `json:"active"`
	DesiredReplicas  *int               `json:"desiredReplicas"`
	Direction        *scaling.Direction `json:"direction"`
	Complete         bool               `json:"complete"` // nothing is unknown
	Status           changefeed.Status  `json:"status"`   // the worst of the partitions or members
}

// Account is why a Subject is as it is.
type Account struct {
	Error    *string          `json:"error"`
	Findings []Finding        `json:"findings"` // nil in an answer of a release without them
	Reasons  []scaling.Reason `json:"reasons"`
}

// Processor is the view of a processor, in the terminal and over HTTP.
type Processor struct {
	Name  string  `json:"name"`
	Group *string `json:"group"` // its group; null if it is in none
	Subject
	PartitionCount    *int               `json:"partitionCount"`
	PartitionsWithLag *int               `json:"partitionsWithLag"`
	Uncovered         []changefeed.Range `json:"uncovered"`        // by leases; null until it was checked once
	Leftover          []string           `json:"leftover"`         // leases that others replaced
	RetentionSeconds  *int64             `json:"retentionSeconds"` // of a change; null = for ever, or unknown
	RequestCharge     float64            `json:"requestCharge"`    // request units of the last poll
	Requests          int                `json:"requests"`
	Account
	Partitions []Partition  `json:"partitions"`
	Throughput []Throughput `json:"throughput"` // of the containers that follow it
}

// Partition is the view of one lease.
type Partition struct {
	Lease            string                    `json:"lease"`
	Range            *changefeed.Range         `json:"range"` // its keys; null if no poll needed them
	Owner            *string                   `json:"owner"` // null if nobody owns the lease
	Lag              *int64                    `json:"lag"`
	ChangeAgeSeconds *int64                    `json:"changeAgeSeconds"`
	CheckpointLSN    *int64                    `json:"checkpointLSN"` // null if there is no checkpoint
	Status           changefeed.Status         `json:"status"`
	Stall            *changefeed.Stall         `json:"stall"`   // of a stalled partition; else null
	Rewound          *changefeed.Rewind        `json:"rewound"` // within the last hour; else null
	Ahead            *changefeed.AheadPosition `json:"ahead"`   // of the end of the feed; else null
	Approximate      bool                      `json:"approximate"`
	Carried          *time.Time                `json:"carried"` // when an earlier tick measured this; else null
	Error            *string                   `json:"error"`
}

// Group is the view of a group of processors. Its metricValue equals desiredReplicas, for a scaler
// whose target is 1.
type Group struct {
	Name string `json:"name"`
	Subject
	Members []events.Member `json:"members"`
	Account
	Throughput []Throughput `json:"throughput"` // of the containers that follow its members
}

// StoredFields has the fields that come from the store, of a processor or a group.
type StoredFields struct {
	PolledAt         *time.Time `json:"polledAt"`    // last poll that measured something
	AttemptedAt      *time.Time `json:"attemptedAt"` // last poll, even if it failed
	Since            *time.Time `json:"since"`       // first poll that saw the status; null if unknown
	Stale            bool       `json:"stale"`       // the last poll is more than three intervals ago
	FailedPolls      int        `json:"failedPolls"` // polls in a row that measured nothing
	Sequence         int64      `json:"sequence"`    // of the last scale event; 0 if there was none
	Epoch            int64      `json:"epoch"`       // Unix seconds at which the state began; 0 if there is none
	Paused           bool       `json:"paused"`
	ArrivalPerSecond *float64   `json:"arrivalPerSecond"` // transactions; always null for a group
	DrainPerReplica  *float64   `json:"drainPerReplica"`  // likewise
	CatchUpSeconds   *float64   `json:"catchUpSeconds"`   // null also if the lag only grows
	Outbox           Outbox     `json:"outbox"`

	Causes []changefeed.Cause `json:"causes"` // of its errors; other processors may have the same
}

// StoredProcessor is a Processor as the store holds it.
type StoredProcessor struct {
	Processor
	StoredFields
}

// StoredGroup is a Group as the store holds it.
type StoredGroup struct {
	Group
	StoredFields
}

// New returns the view of a processor's last poll. If it was never polled, everything is unknown.
func New(s state.State) Processor { return NewStored(Lookup{State: s}).Processor }

// NewGroup returns the view of a group's last decision.
func NewGroup(s state.State) Group { return NewStoredGroup(Lookup{State: s}).Group }

func newSubject(l Lookup, problem string, known bool, totals changefeed.Totals) (Subject, Account) {
	r := Subject{Lag: totals.Lag, ChangeAgeSeconds: totals.Age, Complete: totals.Complete, Status: changefeed.StatusUnknown}
	a := Account{Error: Given(problem), Findings: Findings(l), Reasons: []scaling.Reason{}}
	if known {
		r.Status = totals.Status
	}
	if d := l.Decision; d != nil {
		r.MetricValue, r.Active, r.DesiredReplicas, r.Direction = &d.MetricValue, &d.Active, &d.Replicas, &d.Direction
		a.Reasons = append(a.Reasons, d.Reasons...)
	}
	return r, a
}

// NewStored returns the view of a processor as the store holds it.
func NewStored(l Lookup) StoredProcessor {
	totals, polled := l.Lag.Totals(), !l.AttemptedAt.IsZero()
	r := Processor{
		Name: l.Processor, Group: Given(l.Group),
		Throughput: throughputOf(l.State),
		Uncovered:  l.Lag.Coverage.Holes, Leftover: append([]string{}, l.Lag.Leftover...),
		// the service's own precision, which a sum of floats loses
		RequestCharge: math.Round(l.Lag.Charge*100) / 100,
		Requests:      l.Lag.Requests, RetentionSeconds: Given(int64(l.Lag.Retention / time.Second)),
		Partitions: make([]Partition, len(l.Lag.Partitions)),
	}
	r.Subject, r.Account = newSubject(l, cmp.Or(l.Problem, l.Lag.Problem()), polled, totals)
	if polled {
		r.PartitionCount, r.PartitionsWithLag = totals.Partitions, totals.PartitionsWithLag
	}
	for i := range l.Lag.Partitions {
		p := &l.Lag.Partitions[i]
		r.Partitions[i] = Partition{
			Lease: p.Lease, Range: p.Range, Owner: Given(p.Owner), Lag: p.Lag, ChangeAgeSeconds: p.Age, CheckpointLSN: p.CheckpointLSN,
			Status: p.Status, Stall: p.Stall, Rewound: p.Rewound, Ahead: p.Ahead, Approximate: p.Approximate, Error: Given(p.Error),
		}
		if p.Carried() {
			r.Partitions[i].Carried = &p.Measured
		}
	}
	return StoredProcessor{r, kept(l)}
}

// NewStoredGroup returns the view of a group as the store holds it.
func NewStoredGroup(l Lookup) StoredGroup {
	g := Group{Name: l.Processor, Members: members(l.State), Throughput: throughputOf(l.State)}
	g.Subject, g.Account = newSubject(l, l.Problem, len(l.Members) > 0, l.Totals())
	return StoredGroup{g, kept(l)}
}

// members are the processors of a group, as its last decision saw them.
func members(s state.State) []events.Member {
	all := make([]events.Member, len(s.Members))
	for i, m := range s.Members {
		all[i] = events.Member{Processor: m.Processor, DesiredReplicas: m.Replicas, Lag: m.Lag, Status: string(m.Status)}
	}
	return all
}

func kept(l Lookup) StoredFields {
	k := StoredFields{
		PolledAt: Given(l.PolledAt), AttemptedAt: Given(l.AttemptedAt), Since: Given(l.Since),
		Stale: l.Stale, FailedPolls: l.Memory.Failures, Sequence: l.Sequence, Epoch: l.Epoch, Paused: l.Paused,
		ArrivalPerSecond: l.Memory.Arrival, DrainPerReplica: Given(l.Memory.DrainPerReplica), Outbox: outboxOf(l), Causes: l.causes(),
	}
	if seconds := CatchUpSeconds(l.State); seconds != nil && !math.IsInf(*seconds, 1) {
		k.CatchUpSeconds = seconds
	}
	return k
}

// Given returns a copy of a value, since a pointer into a State would keep the whole State in memory; nil for the zero
// value.
func Given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// Why returns the last reason of a decision; "" if there is none.
func Why(reasons []scaling.Reason) string {
	if len(reasons) == 0 {
		return ""
	}
	last := reasons[len(reasons)-1]
	return last.Step + ": " + last.Why
}

// growsAfter is the age in seconds from which a backlog may be said to grow. The measured rate of a
// replica is a lower bound, so a young backlog proves nothing.
const growsAfter = 60

// CatchUpSeconds returns how long the decided replicas need to drain the lag at the measured rates,
// in seconds; +Inf if it only grows. It is nil, unknown, if nothing is decided or pending, if a rate is
// unknown, or if a partition is stalled or unclaimed, since its lag does not move.
func CatchUpSeconds(s state.State) *float64 {
	stands := func(p changefeed.Partition) bool {
		return p.Status == changefeed.StatusStalled || p.Status == changefeed.StatusUnclaimed
	}
	if s.Decision == nil || len(s.Members) > 0 || slices.ContainsFunc(s.Lag.Partitions, stands) {
		return nil
	}
	seconds, known := s.Memory.CatchUp(s.Lag.Lag(), s.Decision.Replicas)
	if age := s.Lag.Age(); !known || math.IsInf(seconds, 1) && (age == nil || *age < growsAfter) {
		return nil
	}
	return &seconds
}

// Count returns a number of things: "1 lease", "2 leases".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
