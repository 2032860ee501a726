package scaler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// refusing is a source that has no answer.
type refusing struct{}

func (refusing) Replicas(context.Context, string) (int, error) { return 0, errors.New("no answer") }
func (refusing) Changed(string) <-chan struct{}                { return nil }

func TestWhoeverAsksForAnyNamesDoesNotFillTheLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(Options{Source: refusing{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5_000 {
		if _, err := s.ask(t.Context(), trigger{processor: fmt.Sprint(i)}); err == nil {
			t.Fatal("there is an answer")
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines < maxWarnings || lines > 2*maxWarnings {
		t.Errorf("5,000 names are %d lines", lines)
	}
}
