// Package overview is what the HTTP functions and the metrics show of all processors and groups of a
// configuration. Its entries are read once and shared by all who ask (docs/http.md).
//
// It makes no call to Cosmos DB and knows no HTTP. Start with [Overview.Current], which answers from the
// entries, and [Overview.List], which reads the rows; answer.go has what scalers are told.
//
// The package is internal to the program: its API may change in any release.
package overview

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

const (
	parallel = 32              // states that are loaded at once
	rowTime  = 2 * time.Second // for one row: KEDA waits 3 s for an answer
	allTime  = 8 * time.Second // for all entries: Prometheus waits 10 s if it is not told otherwise
)

// The kinds of subjects.
const (
	processor = "processor"
	group     = "group"
)

// Subject is a configured processor or group.
type Subject struct {
	Name  string
	Group string // that a processor is a member of; "" = none
	// Next is when the subject in a state is polled for the first time after t.
	Next func(s state.State, t time.Time) time.Time
}

// Entry is what is shown of a processor or of a group. It does not change.
type Entry struct {
	Processor report.Stored      // of a processor
	Group     report.StoredGroup // of a group
	Err       error              // why the State cannot be read; nil if it can
	Decision  *scaling.Decision  // of the last poll, which is not published while the processor is paused
	CatchUp   *float64           // seconds; +Inf is never, nil is unknown
}

// slot holds the entry of one subject.
type slot struct {
	kind string
	Subject
	entry  *Entry    // nil if the row was never read
	until  time.Time // the last moment at which the entry may be shown; zero if the row has to be read
	writes int       // of this process
}

// Overview holds the entries. A process that nobody asks holds none.
type Overview struct {
	Processors []Subject // in the order of the configuration
	Groups     []Subject
	Store      state.Store
	Now        func() time.Time
	Log        *slog.Logger

	NeverPolled string // why nothing is ever polled; "" if nothing keeps it from that
	Partitions  bool   // whether entries have the partitions, of which there may be many

	reading sync.Mutex  // held while rows are read, so that those who ask at once read once
	broken  atomic.Bool // the last look could not read every row

	mu         sync.Mutex
	slots      []*slot // as configured, the processors first; nil until somebody asks
	byName     map[string]*slot
	generation uint64
}

// Current returns the entries of the processors and of the groups, and a number that changes with them.
// A row is read again after its next poll, unless this process made that poll.
func (o *Overview) Current() (processors, groups []*Entry, generation uint64) {
	o.reading.Lock()
	defer o.reading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), allTime) // for all who ask
	defer cancel()
	now := o.Now()
	expired, writes := o.expired(now)
	for i, found := range o.loadAll(ctx, expired) {
		o.fill(expired[i], found, now, writes[i])
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	entries := make([]*Entry, len(o.slots))
	var errs []error
	for i, s := range o.slots {
		if entries[i] = s.entry; s.entry.Err != nil {
			errs = append(errs, s.entry.Err)
		}
	}
	o.say(errs)
	return entries[:len(o.Processors)], entries[len(o.Processors):], o.generation
}

// all are the slots, which are made for the first who asks.
func (o *Overview) all() []*slot {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = make(map[string]*slot, len(o.Processors)+len(o.Groups))
		add := func(kind string, subjects []Subject) {
			for _, s := range subjects {
				o.byName[s.Name] = &slot{kind: kind, Subject: s}
				o.slots = append(o.slots, o.byName[s.Name])
			}
		}
		add(processor, o.Processors)
		add(group, o.Groups)
	}
	return o.slots
}

// find returns the slot of a processor or group; nil if none is configured.
func (o *Overview) find(name string) *slot {
	o.all()
	return o.byName[name] // which does not change any more
}

// expired are the slots whose rows have to be read, and how often this process has written each.
func (o *Overview) expired(now time.Time) (slots []*slot, writes []int) {
	all := o.all()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range all {
		if now.After(s.until) {
			slots, writes = append(slots, s), append(writes, s.writes)
		}
	}
	return slots, writes
}

// fill takes a row that was read at a time, after so many writes. One that was written since then may be
// newer, and is read again.
func (o *Overview) fill(s *slot, found report.Lookup, now time.Time, writes int) {
	e, until := o.newEntry(s, found, now)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case s.writes == writes:
		s.entry, s.until = e, until
	case s.until.IsZero():
		s.entry = e
	}
	o.generation++
}

// Wrote takes what this process wrote of a processor or group; nil if what is stored has to be read.
func (o *Overview) Wrote(name string, written *state.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.byName[name]
	if s == nil {
		return // nobody has asked
	}
	s.writes++
	o.generation++
	if s.until = (time.Time{}); written != nil && s.entry != nil && !s.entry.waits() {
		s.entry, s.until = o.newEntry(s, report.Lookup{State: *written}, o.Now())
	}
}

// waits reports whether an event waits to be published.
func (e *Entry) waits() bool { return e.Processor.Outbox.Count+e.Group.Outbox.Count > 0 }

// newEntry makes the entry of what was found at a time, and says until when it may be shown.
func (o *Overview) newEntry(s *slot, found report.Lookup, now time.Time) (*Entry, time.Time) {
	e := &Entry{Err: found.Err, Decision: found.Decision}
	until := s.shownUntil(found, now)
	if seconds, known := report.CatchUpSeconds(found.State); known {
		e.CatchUp = &seconds
	}
	found = o.shown(s, found, now)
	if s.kind == group {
		e.Group = report.NewStoredGroup(found)
	} else if e.Processor = report.NewStored(found); !o.Partitions {
		e.Processor.Partitions = []report.Partition{}
	}
	return e, until
}

// say logs once that rows cannot be read, with the error of the first, and once that all can be.
func (o *Overview) say(errs []error) {
	broken := len(errs) > 0
	if was := o.broken.Swap(broken); broken && !was {
		o.Log.Error("the list and the metrics lack processors whose state cannot be read", "unread", len(errs), "of", len(o.Processors)+len(o.Groups), "error", errs[0].Error())
	} else if was && !broken {
		o.Log.Info("the list and the metrics have every processor again")
	}
}
