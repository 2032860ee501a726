package actions

import (
	"context"
	"io"

	"github.com/feedscale/feedscale/pkg/events"
)

// Stdout is an Action for another program that reads the output: it writes one event per line, as it was
// published, without white space between JSON tokens.
type Stdout struct{ lines *events.Stdout }

// NewStdout returns an Action that writes lines to w, each in one Write.
func NewStdout(w io.Writer) Stdout { return Stdout{events.NewStdout(w)} }

// Target returns "standard output" for every event.
func (Stdout) Target(events.ScaleEvent) (string, error) { return "standard output", nil }

// Act writes the event.
func (s Stdout) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	body, err := e.Body()
	if err != nil {
		return false, err
	}
	return true, s.lines.Publish(ctx, body)
}
