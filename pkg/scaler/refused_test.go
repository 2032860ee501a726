package scaler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/feedscale/feedscale/pkg/report"
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
		if _, err := s.ask(t.Context(), fmt.Sprint(i)); err == nil {
			t.Fatal("there is an answer")
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines < maxWarnings || lines > 2*maxWarnings {
		t.Errorf("5,000 names are %d lines", lines)
	}
}

// unknowing is a source that knows no name.
type unknowing struct{ refusing }

func (unknowing) Replicas(_ context.Context, name string) (int, error) {
	return 0, report.UnknownName(name)
}

func TestANameThatNoEntryHasIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := New(Options{Source: unknowing{}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.ask(t.Context(), "order"); status.Code(err) != codes.NotFound {
			t.Fatal(err)
		}
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "KEDA asks for what no entry names") || !strings.Contains(text, "processor=order") {
		t.Errorf("the log says %s", text)
	}
}
