package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

var (
	// ErrUnreachable is in the error of a Publish that got no answer. Leave the other events for later:
	// each would wait as long.
	ErrUnreachable = errors.New("the broker is out of reach")

	// ErrTooLarge is in the error of a Publish that the broker refused for the size of the event. Drop the
	// event and say so: another try would fail, too, while other events may pass.
	ErrTooLarge = errors.New("the event is larger than the broker takes")

	// ErrDeadLetter is in the error of a handler for which another try would fail in the same way: the
	// event goes to the dead-letter queue at once.
	ErrDeadLetter = errors.New("the scale event cannot be acted upon")
)

// Publisher delivers encoded scale events. All methods are safe for concurrent use; events of one
// subject arrive in the order of the calls, if each call waits for the one before.
type Publisher interface {
	// Publish delivers the exact bytes of an encoded event. The error says what to do; it wraps
	// ErrUnreachable or ErrTooLarge in these cases. The event may have been delivered in spite of an
	// error: publish the same bytes again, and the queue drops the repetition by its id.
	Publish(ctx context.Context, body []byte) error

	// Close releases what is held open, without waiting for an answer of the broker.
	Close(ctx context.Context) error
}

// Stdout is a Publisher for a program whose output another one reads: one event per line.
type Stdout struct {
	mu sync.Mutex
	w  io.Writer
}

// NewStdout returns a Publisher that writes lines to w, each in one Write. It
// does not close w.
func NewStdout(w io.Writer) *Stdout { return &Stdout{w: w} }

// Publish writes the event as one line.
func (s *Stdout) Publish(ctx context.Context, body []byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("writing a scale event: %w", err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, body); err != nil { // a line break inside would make two lines of it
		return fmt.Errorf("writing a scale event that is not JSON: %w", err)
	}
	line.WriteByte('\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(line.Bytes()); err != nil {
		return fmt.Errorf("writing a scale event: %w", err)
	}
	return nil
}

// Close does nothing: the writer is its owner's.
func (s *Stdout) Close(context.Context) error { return nil }
