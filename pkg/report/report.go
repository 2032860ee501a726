// Package report is what is shown of a State: one projection for the HTTP API, the scale events and
// the terminal, so that what is null, and why, is said in one place. What the history keeps of a poll
// is [state.Sample], from the same totals.
//
// It is pure: it knows the domain, the State and the event, and neither a store nor a service. Start
// with [New].
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
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Processor is what is said of a processor, in the terminal and over HTTP (docs/operate.md). Every
// field is always present in its JSON; null is unknown.
type Processor struct {
	Name              string             `json:"name"`
	Group             *string            `json:"group"`            // that it is a member of; null where it is none
	Lag               *int64             `json:"lag"`              // pending transactions
	ChangeAgeSeconds  *int64             `json:"changeAgeSeconds"` // of the oldest pending change; null also where nothing is pending
	MetricValue       *int64             `json:"metricValue"`
	Active            *bool              `json:"active"`
	DesiredReplicas   *int               `json:"desiredReplicas"`
	Direction         *scaling.Direction `json:"direction"`
	Complete          bool               `json:"complete"` // no partition is unknown
	Status            changefeed.Status  `json:"status"`   // the worst of the partitions
	PartitionCount    *int               `json:"partitionCount"`
	PartitionsWithLag *int               `json:"partitionsWithLag"`
	Uncovered         []changefeed.Range `json:"uncovered"`        // keys that no lease covers; null until they were looked for once
	Leftover          []string           `json:"leftover"`         // leases that others replaced and nobody deleted
	RetentionSeconds  *int64             `json:"retentionSeconds"` // how long the container keeps a change; null = without limit, or unknown
	RequestCharge     float64            `json:"requestCharge"`    // request units of the last poll
	Requests          int                `json:"requests"`
	Error             *string            `json:"error"`
	Findings          []Finding          `json:"findings"` // the worst first; nil from a release that has none
	Reasons           []scaling.Reason   `json:"reasons"`
	Partitions        []Partition        `json:"partitions"`
	Throughput        []Throughput       `json:"throughput"` // of the containers that follow it
}

// Partition is what is said of one lease.
type Partition struct {
	Lease            string              `json:"lease"`
	Range            *changefeed.Range   `json:"range"` // null where it was not needed
	Owner            *string             `json:"owner"` // null where nobody owns the lease
	Lag              *int64              `json:"lag"`
	ChangeAgeSeconds *int64              `json:"changeAgeSeconds"`
	CheckpointLSN    *int64              `json:"checkpointLSN"` // the position: LSN up to which changes are processed; null where there is none
	Status           changefeed.Status   `json:"status"`
	Stall            *changefeed.Stall   `json:"stall"`   // of a stalled partition; else null
	Rewound          *changefeed.Rewound `json:"rewound"` // the position went backwards within the last hour; else null
	Ahead            *changefeed.Ahead   `json:"ahead"`   // the position is beyond all that the feed has; else null
	Approximate      bool                `json:"approximate"`
	Carried          *time.Time          `json:"carried"` // when this was measured, where it is of an earlier tick; else null
	Error            *string             `json:"error"`
}

// Group is what is said of a group of processors. Every field is always present in its JSON; null is
// unknown.
type Group struct {
	Name             string             `json:"name"`
	DesiredReplicas  *int               `json:"desiredReplicas"`
	Active           *bool              `json:"active"`
	Direction        *scaling.Direction `json:"direction"`
	Members          []Member           `json:"members"`
	MetricValue      *int64             `json:"metricValue"` // the desired replicas again, for a scaler whose target is 1
	Lag              *int64             `json:"lag"`         // of its members that are known
	ChangeAgeSeconds *int64             `json:"changeAgeSeconds"`
	Complete         bool               `json:"complete"`
	Status           changefeed.Status  `json:"status"` // the worst of its members
	Error            *string            `json:"error"`
	Findings         []Finding          `json:"findings"`
	Reasons          []scaling.Reason   `json:"reasons"`
	Throughput       []Throughput       `json:"throughput"` // of the containers that follow its members
}

// Member is what a group's last decision saw of one of its processors.
type Member struct {
	Processor       string            `json:"processor"`
	DesiredReplicas *int              `json:"desiredReplicas"`
	Lag             *int64            `json:"lag"`
	Status          changefeed.Status `json:"status"`
}

// Kept is what only the store knows of a processor or a group.
type Kept struct {
	PolledAt         *time.Time `json:"polledAt"`    // last poll that measured something
	AttemptedAt      *time.Time `json:"attemptedAt"` // last poll, whatever its result
	Since            *time.Time `json:"since"`       // when a poll first saw the status; null where it is older than what is stored
	Stale            bool       `json:"stale"`       // it was not polled for more than three of its poll intervals
	FailedPolls      int        `json:"failedPolls"` // in a row in which nothing could be measured
	Sequence         int64      `json:"sequence"`    // of the last scale event, 0 where there was none
	Epoch            int64      `json:"epoch"`       // Unix seconds at which the state began, 0 where it never did
	Paused           bool       `json:"paused"`
	ArrivalPerSecond *float64   `json:"arrivalPerSecond"` // transactions; null also of a group
	DrainPerReplica  *float64   `json:"drainPerReplica"`  // transactions per second; null also of a group
	CatchUpSeconds   *float64   `json:"catchUpSeconds"`   // null also where the lag is not expected to end
	Outbox           Outbox     `json:"outbox"`

	Causes []changefeed.Cause `json:"causes"` // of its errors, which other processors may have too
}

// Stored is a Processor as the store holds it.
type Stored struct {
	Processor
	Kept
}

// StoredGroup is a Group as the store holds it.
type StoredGroup struct {
	Group
	Kept
}

// New reports the last poll of a processor. Of a State that was never polled everything is unknown.
func New(s state.State) Processor { return newProcessor(Lookup{State: s}) }

func newProcessor(s Lookup) Processor {
	totals := s.Lag.Totals()
	r := Processor{
		Name:             s.Processor,
		Group:            optional(s.Group),
		Lag:              totals.Lag,
		ChangeAgeSeconds: totals.Age,
		Complete:         totals.Complete,
		Status:           changefeed.StatusUnknown,
		RequestCharge:    math.Round(s.Lag.Charge*100) / 100, // the service's own precision, which sums do not keep
		Requests:         s.Lag.Requests,
		Error:            optional(cmp.Or(s.Problem, s.Lag.Problem())),
		Findings:         Findings(s),
		Uncovered:        s.Lag.Coverage.Holes,
		Leftover:         append([]string{}, s.Lag.Leftover...),
		Reasons:          []scaling.Reason{},
		Partitions:       make([]Partition, 0, len(s.Lag.Partitions)),
		Throughput:       throughputOf(s.State),
	}
	if s.Lag.Retention > 0 {
		r.RetentionSeconds = new(int64(s.Lag.Retention / time.Second))
	}
	if s.AttemptedAt.IsZero() {
		return r
	}
	r.Status, r.PartitionCount, r.PartitionsWithLag = totals.Status, totals.Partitions, totals.PartitionsWithLag
	if d := s.Decision; d != nil {
		r.MetricValue, r.Active, r.DesiredReplicas, r.Direction = &d.MetricValue, &d.Active, &d.Replicas, &d.Direction
		r.Reasons = append(r.Reasons, d.Reasons...)
	}
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		r.Partitions = append(r.Partitions, Partition{
			Lease: p.Lease, Range: p.Range, Owner: optional(p.Owner), Lag: p.Lag, ChangeAgeSeconds: p.Age, CheckpointLSN: p.CheckpointLSN,
			Status: p.Status, Stall: p.Stall, Rewound: p.Rewound, Ahead: p.Ahead, Approximate: p.Approximate, Error: optional(p.Error),
		})
		if p.Carried() {
			r.Partitions[i].Carried = &p.Measured
		}
	}
	return r
}

// NewGroup reports the last decision of a group.
func NewGroup(s state.State) Group { return newGroup(Lookup{State: s}) }

func newGroup(s Lookup) Group {
	totals := s.Totals()
	r := Group{
		Name: s.Processor, Lag: totals.Lag, ChangeAgeSeconds: totals.Age, Complete: totals.Complete, Status: changefeed.StatusUnknown,
		Members: make([]Member, 0, len(s.Members)), Error: optional(s.Problem), Findings: Findings(s), Reasons: []scaling.Reason{},
		Throughput: throughputOf(s.State),
	}
	if len(s.Members) > 0 {
		r.Status = totals.Status
	}
	if d := s.Decision; d != nil {
		r.DesiredReplicas, r.Active, r.Direction, r.MetricValue = &d.Replicas, &d.Active, &d.Direction, &d.MetricValue
		r.Reasons = append(r.Reasons, d.Reasons...)
	}
	for _, m := range s.Members {
		r.Members = append(r.Members, Member{Processor: m.Processor, DesiredReplicas: m.Replicas, Lag: m.Lag, Status: m.Status})
	}
	return r
}

// NewStored reports the State of a processor as the store holds it.
func NewStored(l Lookup) Stored { return Stored{newProcessor(l), kept(l)} }

// NewStoredGroup reports the State of a group as the store holds it.
func NewStoredGroup(l Lookup) StoredGroup { return StoredGroup{newGroup(l), kept(l)} }

func kept(s Lookup) Kept {
	k := Kept{Outbox: outboxOf(s), Causes: s.causes(), Stale: s.Stale, Sequence: s.Sequence, Epoch: s.Epoch, Paused: s.Paused, FailedPolls: s.Memory.Failures, ArrivalPerSecond: s.Memory.Arrival}
	if !s.AttemptedAt.IsZero() {
		k.AttemptedAt = new(s.AttemptedAt) // which else would keep the whole State
	}
	if !s.PolledAt.IsZero() {
		k.PolledAt = new(s.PolledAt)
	}
	if !s.Since.IsZero() {
		k.Since = new(s.Since)
	}
	if drain := s.Memory.DrainPerReplica; drain > 0 {
		k.DrainPerReplica = &drain
	}
	if seconds, known := CatchUpSeconds(s.State); known && !math.IsInf(seconds, 1) {
		k.CatchUpSeconds = &seconds
	}
	return k
}

// Why is the reason that settled a decision, the last step that had a say; "" where there is none.
func Why(reasons []scaling.Reason) string {
	if len(reasons) == 0 {
		return ""
	}
	last := reasons[len(reasons)-1]
	return last.Step + ": " + last.Why
}

// growsAfter is the age in seconds from which on a backlog is said to grow. The measured rate of a replica is
// a lower bound, so that a young backlog proves nothing.
const growsAfter = 60

// CatchUpSeconds is how long the lag takes to drain with the replicas that were decided, at the measured rates:
// +Inf if it only grows. It is not known if nothing is decided or pending, if a partition is stalled or
// unclaimed, since nothing moves there, or if a rate is not known.
func CatchUpSeconds(s state.State) (seconds float64, known bool) {
	stands := func(p changefeed.Partition) bool {
		return p.Status == changefeed.StatusStalled || p.Status == changefeed.StatusUnclaimed
	}
	if s.Decision == nil || len(s.Members) > 0 || slices.ContainsFunc(s.Lag.Partitions, stands) {
		return 0, false
	}
	seconds, known = s.Memory.CatchUp(s.Lag.Lag(), s.Decision.Replicas)
	if age := s.Lag.Age(); math.IsInf(seconds, 1) && (age == nil || *age < growsAfter) {
		return 0, false
	}
	return seconds, known
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// countIs is a Count with its verb: 1 lease is, 2 leases are.
func countIs(n int, what string) string {
	if n == 1 {
		return Count(n, what) + " is"
	}
	return Count(n, what) + " are"
}

// Count is a number of things: 1 lease, 2 leases.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
