package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/scaling/sizing"
)

// Entry is what a store holds of one processor; the zero Entry is nothing. Call State to decode what the
// State has of each lease: a tick holds many Entries at once.
type Entry struct {
	Version Version // for Commit; "" where nothing is stored
	Outbox  []Event // events not yet published, oldest first

	head    head
	encoded []byte // the State with its leases; nil if head has them
}

// NewEntry returns an Entry of a State that is not encoded.
func NewEntry(s State, version Version, outbox ...Event) Entry {
	return Entry{Version: version, Outbox: outbox, head: head{State: s}}
}

// Decode returns the Entry of an encoded State, which the caller must not change any more. The error says what
// to do.
func Decode(encoded []byte) (s Entry, err error) {
	err = read(encoded, func(d *json.Decoder) error { return d.Decode(&s.head) })
	if s.head.Format > Format {
		return Entry{}, fmt.Errorf("it was written by a newer release of feedscale, in format %d of states, and this release reads up to %d: run that release again, or a later one; or delete this state, which forgets what was decided", s.head.Format, Format)
	}
	if err != nil {
		return Entry{}, unreadable(err)
	}
	if s.head.Format > 1 {
		s.encoded = encoded
	}
	return s, nil
}

// Head returns the State, which may lack what it has of each lease. Do not change it.
func (s *Entry) Head() *State { return &s.head.State }

// State decodes the State. The caller may change it. The error says what to do.
func (s *Entry) State() (State, error) {
	if s.encoded == nil {
		return s.head.State, nil
	}
	var first head
	err := read(s.encoded, func(d *json.Decoder) error {
		if err := d.Decode(&first); err != nil {
			return err
		}
		if err := first.decodeLeases(d); err != nil {
			return err
		}
		if err := d.Decode(&struct{}{}); err != io.EOF { // with which gzip confirms its checksum
			return cmp.Or(err, errors.New("more follows its end"))
		}
		return nil
	})
	if err != nil {
		return State{}, fmt.Errorf("processor %q: %w", first.Processor, unreadable(err))
	}
	return first.State, nil
}

func unreadable(err error) error {
	return fmt.Errorf("the stored state cannot be read (%w): delete it, or use another one in FEEDSCALE_STATE", err)
}

// decodeLeases adds what the lines after the first one say of each lease.
func (h *head) decodeLeases(d *json.Decoder) error {
	if h.Lines == 0 {
		return nil
	}
	h.Health = health.Memory{}
	flows := map[string]sizing.Partition{}
	for range h.Lines {
		var l line
		if err := d.Decode(&l); err != nil {
			return err
		}
		if l.Partition != nil {
			l.Lease = l.Partition.Lease
			h.Lag.Partitions = append(h.Lag.Partitions, *l.Partition)
		}
		if l.Progress != nil {
			h.Health[l.Lease] = l.progress(h.Lag.Time)
		}
		if l.Flow != nil {
			flows[l.Lease] = l.flow(h.Lag.Time)
		}
	}
	if len(flows) > 0 {
		h.Memory.Sizing.Partitions = flows
	}
	return nil
}
