package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

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
