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
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Processor is the view of a processor, in the terminal and over HTTP (docs/operate.md). Its JSON
// always has every field; null is unknown.
type Processor struct {
	Name  string  `json:"name"`
	Group *string `json:"group"` // its group; null if it is in none
	Lag   *int64  `json:"lag"`   // pending transactions
	// of the oldest pending change; null also if nothing is pending
	ChangeAgeSeconds  *int64             `json:"changeAgeSeconds"`
	MetricValue       *int64             `json:"metricValue"`
	Active            *bool              `json:"active"`
	DesiredReplicas   *int               `json:"desiredReplicas"`
	Direction         *scaling.Direction `json:"direction"`
	Complete          bool               `json:"complete"` // no partition is unknown
	Status            changefeed.Status  `json:"status"`   // the worst of the partitions
	PartitionCount    *int               `json:"partitionCount"`
	PartitionsWithLag *int               `json:"partitionsWithLag"`
	// keys that no lease covers; null until they were checked once
	Uncovered []changefeed.Range `json:"uncovered"`
	// leases that were replaced after a split or merge, and not deleted
	Leftover []string `json:"leftover"`
	// how long the container keeps a change; null = for ever, or unknown
	RetentionSeconds *int64  `json:"retentionSeconds"`
	RequestCharge    float64 `json:"requestCharge"` // request units of the last poll
	Requests         int     `json:"requests"`
	Error            *string `json:"error"`
	// the most urgent first; nil in an answer of a release without findings
	Findings   []Finding        `json:"findings"`
	Reasons    []scaling.Reason `json:"reasons"`
	Partitions []Partition      `json:"partitions"`
	// of the containers whose throughput follows it
	Throughput []Throughput `json:"throughput"`
}

// Partition is the view of one lease.
type Partition struct {
	Lease            string            `json:"lease"`
	Range            *changefeed.Range `json:"range"` // its keys; null if no poll needed them
	Owner            *string           `json:"owner"` // null if nobody owns the lease
	Lag              *int64            `json:"lag"`
	ChangeAgeSeconds *int64            `json:"changeAgeSeconds"`
	// the LSN up to which changes are processed; null if there is no checkpoint
	CheckpointLSN *int64            `json:"checkpointLSN"`
	Status        changefeed.Status `json:"status"`
	Stall         *changefeed.Stall `json:"stall"` // of a stalled partition; else null
	// if the position went backwards within the last hour; else null
	Rewound *changefeed.Rewound `json:"rewound"`
	// if the position is beyond the end of the feed; else null
	Ahead       *changefeed.Ahead `json:"ahead"`
	Approximate bool              `json:"approximate"`
	// when this was measured, if at an earlier tick; else null
	Carried *time.Time `json:"carried"`
	Error   *string    `json:"error"`
}

// Group is the view of a group of processors. Its JSON always has every field; null is unknown.
type Group struct {
	Name            string             `json:"name"`
	DesiredReplicas *int               `json:"desiredReplicas"`
	Active          *bool              `json:"active"`
	Direction       *scaling.Direction `json:"direction"`
	Members         []Member           `json:"members"`
	// equals desiredReplicas, for a scaler whose target is 1
	MetricValue      *int64            `json:"metricValue"`
	Lag              *int64            `json:"lag"` // sum of its members that are known
	ChangeAgeSeconds *int64            `json:"changeAgeSeconds"`
	Complete         bool              `json:"complete"`
	Status           changefeed.Status `json:"status"` // the worst of its members
	Error            *string           `json:"error"`
	Findings         []Finding         `json:"findings"`
	Reasons          []scaling.Reason  `json:"reasons"`
	// of the containers whose throughput follows its members
	Throughput []Throughput `json:"throughput"`
}

// Member is a processor of a group, as the group's last decision saw it.
type Member struct {
	Processor       string            `json:"processor"`
	DesiredReplicas *int              `json:"desiredReplicas"`
	Lag             *int64            `json:"lag"`
	Status          changefeed.Status `json:"status"`
}

// Kept has the fields that come from the store, of a processor or a group.
type Kept struct {
	PolledAt    *time.Time `json:"polledAt"`    // last poll that measured something
	AttemptedAt *time.Time `json:"attemptedAt"` // last poll, even if it failed
	// when a poll first saw the status; null if that is no longer stored
	Since *time.Time `json:"since"`
	// the last poll is more than three poll intervals ago
	Stale       bool  `json:"stale"`
	FailedPolls int   `json:"failedPolls"` // polls in a row that measured nothing
	Sequence    int64 `json:"sequence"`    // of the last scale event; 0 if there was none
	// Unix seconds at which the state began; 0 if there is none
	Epoch            int64    `json:"epoch"`
	Paused           bool     `json:"paused"`
	ArrivalPerSecond *float64 `json:"arrivalPerSecond"` // transactions; always null for a group
	// transactions per second; always null for a group
	DrainPerReplica *float64 `json:"drainPerReplica"`
	// seconds until the lag is drained; null also if it only grows
	CatchUpSeconds *float64 `json:"catchUpSeconds"`
	Outbox         Outbox   `json:"outbox"`

	Causes []changefeed.Cause `json:"causes"` // of its errors; other processors may have the same
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

// New returns the view of a processor's last poll. If it was never polled, everything is unknown.
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
		// the service's own precision, which a sum of floats loses
		RequestCharge: math.Round(s.Lag.Charge*100) / 100,
		Requests:      s.Lag.Requests,
		Error:         optional(cmp.Or(s.Problem, s.Lag.Problem())),
		Findings:      Findings(s),
		Uncovered:     s.Lag.Coverage.Holes,
		Leftover:      append([]string{}, s.Lag.Leftover...),
		Reasons:       []scaling.Reason{},
		Partitions:    make([]Partition, 0, len(s.Lag.Partitions)),
		Throughput:    throughputOf(s.State),
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
		// a copy, since a pointer into s would keep the whole State in memory
		k.AttemptedAt = new(s.AttemptedAt)
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
// in seconds; +Inf if it only grows. It is unknown if nothing is decided or pending, if a rate is
// unknown, or if a partition is stalled or unclaimed, since its lag does not move.
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

// countIs returns a count with its verb: "1 lease is", "2 leases are".
func countIs(n int, what string) string {
	if n == 1 {
		return Count(n, what) + " is"
	}
	return Count(n, what) + " are"
}

// Count returns a number of things: "1 lease", "2 leases".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
