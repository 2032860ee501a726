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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

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
	Processor report.StoredProcessor // of a processor
	Group     report.StoredGroup     // of a group
	Err       error                  // why the State cannot be read; nil if it can
	Decision  *scaling.Decision      // of the last poll, which is not published while the processor is paused
	CatchUp   *float64               // seconds; +Inf is never, nil is unknown

	until time.Time // the last moment at which it may be shown
}

// slot holds the entry of one subject.
type slot struct {
	kind string
	Subject
	entry   *Entry    // nil if the row was never read
	until   time.Time // the last moment at which the entry may be shown; zero if the row has to be read
	reading bool      // the row is being read, and this process has not written it since
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

	mu     sync.Mutex
	slots  []*slot // as configured, the processors first; nil until somebody asks
	byName map[string]*slot
}

// Current returns the entries, those of the processors first. A row is read again after its next poll, unless
// this process made that poll.
func (o *Overview) Current() (entries []*Entry) {
	o.reading.Lock()
	defer o.reading.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), allTime) // for all who ask
	defer cancel()
	now := o.Now()
	expired := o.expired(now)
	found := o.read(ctx, expired, now, o.Partitions)
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, s := range expired {
		if s.reading {
			s.until = found[i].until
		}
		if s.reading || s.until.IsZero() { // else it was written since, and its entry is newer
			s.entry = found[i]
		}
		s.reading = false
	}
	for _, s := range o.slots {
		entries = append(entries, s.entry)
	}
	o.say(entries)
	return entries
}

// all are the slots, which are made for the first who asks.
func (o *Overview) all() []*slot {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		for _, s := range o.Processors {
			o.slots = append(o.slots, &slot{kind: processor, Subject: s})
		}
		for _, s := range o.Groups {
			o.slots = append(o.slots, &slot{kind: group, Subject: s})
		}
		o.byName = make(map[string]*slot, len(o.slots))
		for _, s := range o.slots {
			o.byName[s.Name] = s
		}
	}
	return o.slots
}

// find returns the slot of a processor or group; nil if none is configured.
func (o *Overview) find(name string) *slot {
	o.all()
	return o.byName[name] // which does not change any more
}

// expired are the slots whose rows have to be read.
func (o *Overview) expired(now time.Time) (expired []*slot) {
	all := o.all()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range all {
		if s.reading = now.After(s.until); s.reading {
			expired = append(expired, s)
		}
	}
	return expired
}

// Wrote takes what this process wrote of a processor or group; nil if what is stored has to be read.
func (o *Overview) Wrote(name string, written *state.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.byName[name]
	if s == nil {
		return // nobody has asked
	}
	s.reading, s.until = false, time.Time{}
	if e := s.entry; written != nil && e != nil && e.Processor.Outbox.Count+e.Group.Outbox.Count == 0 {
		s.entry = o.newEntry(s, report.Lookup{State: *written}, o.Now(), o.Partitions)
		s.until = s.entry.until
	}
}

// read makes entries of rows, some at once.
func (o *Overview) read(ctx context.Context, slots []*slot, now time.Time, partitions bool) []*Entry {
	entries := make([]*Entry, len(slots))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, s := range slots {
		loads.Go(func() error {
			entries[i] = o.newEntry(s, o.load(ctx, s.Name), now, partitions)
			return nil
		})
	}
	_ = loads.Wait() // none fails for all
	return entries
}

// load looks a row up.
func (o *Overview) load(ctx context.Context, name string) (found report.Lookup) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	stored, err := o.Store.Load(ctx, name)
	if err == nil {
		found.State, err = stored.State()
	}
	found.Waiting, found.Err = stored.Outbox, err
	return found
}

// newEntry makes the entry of what was found at a time.
func (o *Overview) newEntry(s *slot, found report.Lookup, now time.Time, partitions bool) *Entry {
	e := &Entry{Err: found.Err, Decision: found.Decision, CatchUp: report.CatchUpSeconds(found.State), until: s.shownUntil(found, now)}
	if found = o.known(s, found, now); s.kind == group {
		e.Group = report.NewStoredGroup(found)
	} else if e.Processor = report.NewStored(found); !partitions {
		e.Processor.Partitions = []report.Partition{}
	}
	return e
}

// say logs once that rows cannot be read, with the error of the first, and once that all can be.
func (o *Overview) say(entries []*Entry) {
	unread := slices.DeleteFunc(slices.Clone(entries), func(e *Entry) bool { return e.Err == nil })
	broken := len(unread) > 0
	if was := o.broken.Swap(broken); broken && !was {
		o.Log.Error("the list and the metrics lack processors whose state cannot be read",
			"unread", len(unread), "of", len(entries), "error", unread[0].Err.Error())
	} else if was && !broken {
		o.Log.Info("the list and the metrics have every processor again")
	}
}
