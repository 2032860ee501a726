package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Document is something small that a Store keeps beside the processors and groups. Its name has a dot, which
// theirs cannot have.
type Document struct {
	Name    string
	Version Version // "" where nothing is stored
	Text    []byte  // JSON
}

// IsDocument reports whether a name is that of a document.
func IsDocument(name string) bool { return strings.Contains(name, ".") }

// Decode reads the document. Releases up to 0.1 stored it as the first line of a State.
func (d Document) Decode(value any) error {
	if err := read(d.Text, func(j *json.Decoder) error { return j.Decode(value) }); err != nil {
		return fmt.Errorf("the document %s in the state cannot be read: %w", d.Name, err)
	}
	return nil
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
