package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Document is something small that a Store keeps beside the processors and groups. Its name has a dot, which
// theirs cannot have.
type Document struct {
	Name    string
	Version Version // "" where nothing is stored
	Text    []byte  // JSON
}

// Decode reads the document. Releases up to 0.1 stored it as the first line of a State.
func (d Document) Decode(value any) error {
	if err := read(d.Text, func(j *json.Decoder) error { return j.Decode(value) }); err != nil {
		return fmt.Errorf("the document %s in the state cannot be read: %w", d.Name, err)
	}
	return nil
}

// Probe reads, writes and removes a document, to find out whether a store allows that. The error is that of the
// store.
func Probe(ctx context.Context, s Store) error {
	d := Document{Name: "check.probe", Text: []byte("{}")}
	found, err := s.Documents(ctx, d.Name)
	if len(found) > 0 { // a probe that was ended has left it
		d.Version = found[0].Version
	}
	if err == nil {
		d.Version, err = s.Put(ctx, d)
	}
	if err == nil {
		_, err = s.Put(ctx, Document{Name: d.Name, Version: d.Version})
	}
	if errors.Is(err, ErrConflict) { // another probe was faster
		return nil
	}
	return err
}

// SignalQueuesName is the name of the document that lists the signal queues that may hold messages
// (docs/signal-queue.md).
const SignalQueuesName = "signal.queues"

// SignalQueues is that document.
type SignalQueues struct {
	Queues []SignalQueue `json:"signalQueues"`
}

// SignalQueue is a queue that may hold signals.
type SignalQueue struct {
	Namespace string    `json:"namespace"`
	Queue     string    `json:"queue"`
	Left      time.Time `json:"left,omitzero"` // since when no processor or group names it; zero = one does
}
