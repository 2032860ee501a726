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

func TestNamesWithoutAnAnswerAreRememberedUpToALimit(t *testing.T) {
	t.Parallel()
	s := &Server{refused: make(map[string]string)}
	for i := range maxRefused + 1 {
		if name := fmt.Sprint(i); !s.refuses(name, "why") || s.refuses(name, "why") || !s.refuses(name, "another") {
			t.Fatalf("%s is not said once for each reason", name)
		}
	}
	if len(s.refused) > maxRefused {
		t.Errorf("%d are remembered", len(s.refused))
	}
	if last := fmt.Sprint(maxRefused); !s.answers(last) || s.answers(last) {
		t.Errorf("%s is not said to answer again, or is so twice", last)
	}
}

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
