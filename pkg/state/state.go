// Package state defines what is remembered of each processor from one tick to the next, and the
// Store that keeps it. It does no I/O: boltstore and tablestore implement Store, and storetest is
// the conformance suite that both pass. Start with Store.
//
// The package and its subpackages are internal to the program: their API may change in any release.
package state

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// State is everything that is remembered of one processor, or of one group of processors. Each tick
// replaces it as a whole.
type State struct {
	Processor   string    `json:"processor"`         // or the name of the group
	Epoch       int64     `json:"epoch,omitempty"`   // Unix seconds at which this State began: events are ordered by it first; 0 in States of earlier releases
	AttemptedAt time.Time `json:"attemptedAt"`       // time of the last poll, whatever its result
	PolledAt    time.Time `json:"polledAt,omitzero"` // time of the last poll that measured something; zero if none did

	Since time.Time `json:"since,omitzero"` // time of the first poll with the status of the last one; zero if it is older than this field; set by Record

	Lag      changefeed.ProcessorLag `json:"lag"`                // of the last poll
	Decision *scaling.Decision       `json:"decision,omitempty"` // of the last poll; nil if nothing could be decided
	Health   health.Memory           `json:"health,omitempty"`   // what the next assessment needs of the earlier ones
	Memory   scaling.Memory          `json:"memory"`             // what the next decision needs of the earlier ones

	Sequence    int64            `json:"sequence"`              // of the last scale event; 0 if there was none
	Published   *Publication     `json:"published,omitempty"`   // content of the last scale event; nil if there was none
	Undelivered *DeliveryFailure `json:"undelivered,omitempty"` // why an event waits since the poll before; nil if none does
	Paused      bool             `json:"paused,omitempty"`

	Group   string   `json:"group,omitempty"`   // that the processor was a member of at its last poll; "" = none
	Members []Member `json:"members,omitempty"` // in the State of a group, which has no Lag of its own; nil in that of a processor

	Containers []Container `json:"containers,omitempty"` // whose throughput follows the replicas

	Recorded *Sample `json:"recorded,omitempty"` // what the history keeps of the last poll; set by Record

	Hour     *Summary `json:"hour,omitempty"` // that has not ended yet; set by Record, nil of a group
	Finished *Summary `json:"-"`              // hour that this poll has ended, which Commit adds to the history; set by Record
}

// Member is a processor of a group, as the group's last decision saw it.
type Member struct {
	Processor string `json:"processor"`
	Replicas  *int   `json:"replicas,omitempty"` // that it asks for; nil if nothing was ever decided
	Active    bool   `json:"active,omitempty"`
	changefeed.Totals
}

// Forget drops what is remembered of each lease, of which there may be much.
func (s *State) Forget() { s.Health, s.Memory.Sizing.Partitions = nil, nil }

// Totals are the sums over the partitions of the processor, or over the members of the group.
func (s *State) Totals() changefeed.Totals {
	if len(s.Members) == 0 {
		return s.Lag.Totals()
	}
	members := make([]changefeed.Totals, len(s.Members))
	for i := range s.Members {
		members[i] = s.Members[i].Totals
	}
	return changefeed.Sum(members)
}

// Standing returns the decision that callers of the API follow; nil if there is none. It is that of the last
// poll or, during a pause, the last one before it, with the reasons for what would be decided now. A group's
// own decision already follows the standing ones of its members.
func (s *State) Standing() *scaling.Decision {
	if !s.Paused || len(s.Members) > 0 {
		return s.Decision
	}
	if s.Memory.Replicas == nil {
		return nil
	}
	d := scaling.Decision{Time: s.AttemptedAt, Direction: scaling.None}
	if s.Decision != nil {
		d = *s.Decision
	}
	d.Replicas, d.Previous, d.Direction = *s.Memory.Replicas, s.Memory.Replicas, scaling.None
	d.Active, d.MetricValue = s.Memory.Active, s.Memory.MetricValue
	d.Reasons = append(slices.Clone(d.Reasons), scaling.Reason{
		Step: "paused", Replicas: d.Replicas, Why: "whoever asks is told what was decided before the pause",
	})
	return &d
}

// Publication is the content of the last scale event of a processor.
type Publication struct {
	Time     time.Time `json:"time"`
	Replicas int       `json:"replicas"`
	Active   bool      `json:"active"`

	Destination string `json:"destination,omitempty"` // to which it was delivered; "" in States of earlier releases
}

// DeliveryFailure says why the events of a processor are not published.
type DeliveryFailure struct {
	Error string           `json:"error"`
	Cause changefeed.Cause `json:"cause"`
}

// Version identifies one stored State, like an ETag. The empty Version means that nothing is
// stored.
type Version string

// Event is one scale event in the outbox.
type Event struct {
	Processor string
	Sequence  int64  // 1..999,999,999,999, unique and increasing within a processor
	Body      []byte // the exact bytes to publish, the same at every attempt
}

const maxSequence = 999_999_999_999 // twelve digits, as in the keys and ids of events

// ErrConflict is returned by Commit if the stored State has another Version than the one given: another
// tick has committed in between. Drop the result of this one.
var ErrConflict = errors.New("the state was changed by another tick")

// Store keeps the State, the outbox and the history of every processor (docs/operate.md, State;
// docs/decisions/0003-state-and-outbox-in-one-write.md). All methods are safe for concurrent use,
// return when ctx ends, and name the store and the processor in their errors.
type Store interface {
	// Load returns what is stored of a processor; the zero Entry if nothing is.
	Load(ctx context.Context, processor string) (Entry, error)

	// Commit replaces the State of s.Processor. It adds event to the outbox, s.Sample() to the history
	// unless s.AttemptedAt is zero, and s.Finished, where they are not nil: all or nothing. It returns
	// ErrConflict, and stores nothing, unless the stored State is still that of version.
	//
	// The history keeps one sample per SampleInterval: of several in one, the one committed last.
	Commit(ctx context.Context, version Version, s State, event *Event) error

	// Outbox returns the events not yet published of all processors but those in except, by
	// processor and oldest first. With the configured processors in except, these are the events of
	// processors that were removed from the configuration.
	Outbox(ctx context.Context, except []string) ([]Event, error)

	// Remove removes published events from the outbox. An event that is not there is no error: two ticks
	// may publish the same event.
	Remove(ctx context.Context, processor string, sequences ...int64) error

	// History returns the samples of a processor with from <= Time < to, oldest first; nil if there are
	// none.
	History(ctx context.Context, processor string, from, to time.Time) ([]Sample, error)

	// Summaries returns the finished hours of a processor with from <= Hour < to, oldest first; nil if
	// there are none. State.Hour has the running one.
	Summaries(ctx context.Context, processor string, from, to time.Time) ([]Summary, error)

	// Prune removes from the history of a processor every hour (UTC) that ended at or before the given
	// time, with its Summary. Nothing to remove is no error: two processes may prune at once.
	Prune(ctx context.Context, processor string, before time.Time) error

	// Documents returns the documents whose names begin with prefix, by name.
	Documents(ctx context.Context, prefix string) ([]Document, error)

	// Put stores a document and returns its new version; one without Text is removed. It returns
	// ErrConflict, and stores nothing, unless what is stored is still of d.Version.
	Put(ctx context.Context, d Document) (Version, error)

	// Close releases what the store holds open.
	Close() error
}

// Empty is a Store that stays empty: its methods return nothing, store nothing, and never fail. A dry run
// uses it if no state exists yet, since opening a real store would create one.
type Empty struct{}

// The methods of Store.
func (Empty) Load(context.Context, string) (Entry, error)                           { return Entry{}, nil }
func (Empty) Commit(context.Context, Version, State, *Event) error                  { return nil }
func (Empty) Outbox(context.Context, []string) ([]Event, error)                     { return nil, nil }
func (Empty) Remove(context.Context, string, ...int64) error                        { return nil }
func (Empty) Prune(context.Context, string, time.Time) error                        { return nil }
func (Empty) Documents(context.Context, string) ([]Document, error)                 { return nil, nil }
func (Empty) Put(context.Context, Document) (Version, error)                        { return "", nil }
func (Empty) Close() error                                                          { return nil }
func (Empty) History(_ context.Context, _ string, _, _ time.Time) ([]Sample, error) { return nil, nil }
func (Empty) Summaries(_ context.Context, _ string, _, _ time.Time) ([]Summary, error) {
	return nil, nil
}
