package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newSamples(log *bytes.Buffer, every time.Duration) *samples {
	return &samples{log: slog.New(slog.NewJSONHandler(log, nil)), every: every}
}

// polled is a processor after a poll that found one partition pending and one unknown.
func polled(at time.Time, replicas int) state.State {
	return state.State{
		Processor: "orders", Group: "shop-workers", AttemptedAt: at, PolledAt: at,
		Lag: changefeed.ProcessorLag{Time: at, Charge: 2.5, Requests: 3, Retention: time.Hour, Partitions: []changefeed.Partition{
			{Lease: "0", Lag: new(int64(400)), Age: new(int64(34)), Status: changefeed.StatusLagging},
			{Lease: "1", Status: changefeed.StatusUnknown, Error: "it did not answer in time"},
		}},
		Decision: &scaling.Decision{Time: at, Replicas: replicas, Previous: new(3), Active: true},
		Memory:   scaling.Memory{Arrival: new(2.0), DrainPerReplica: 10},
	}
}

func TestASampleHasWhatIsKnownAndNullForWhatIsNot(t *testing.T) {
	t.Parallel()
	failed := state.State{Processor: "audit", AttemptedAt: noon, Lag: changefeed.ProcessorLag{Time: noon, Error: "no"}}
	group := state.State{Processor: "shop-workers", AttemptedAt: noon, Decision: &scaling.Decision{Replicas: 5, Previous: new(3)}, Members: []state.Member{
		{Processor: "orders", Replicas: new(5), Totals: changefeed.Totals{Lag: new(int64(400)), Age: new(int64(34)), Status: changefeed.StatusUnknown}},
	}}
	var log bytes.Buffer
	s := newSamples(&log, time.Minute)
	s.processor(polled(noon, 5))
	s.processor(failed)
	s.groups(report.Tick{Groups: []state.State{group}})
	want := []string{
		`"processor":"orders","group":"shop-workers","status":"unknown","lag":400,"ageSeconds":34,"desiredReplicas":5,"previousReplicas":3,"complete":false,` +
			`"partitions":2,"partitionsWithLag":1,"partitionsUnknown":1,"arrivalPerSecond":2,"catchUpSeconds":8.333333333333334,"retentionSecondsLeft":3566,"requestCharge":2.5,"requests":3}`,
		`"processor":"audit","group":null,"status":"unknown","lag":null,"ageSeconds":null,"desiredReplicas":null,"previousReplicas":null,"complete":false,` +
			`"partitions":null,"partitionsWithLag":null,"partitionsUnknown":null,"arrivalPerSecond":null,"catchUpSeconds":null,"retentionSecondsLeft":null,"requestCharge":0,"requests":0}`,
		`"processor":null,"group":"shop-workers","status":"unknown","lag":400,"ageSeconds":34,"desiredReplicas":5,"previousReplicas":3,"complete":false}`,
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), &log)
	}
	for i, line := range lines {
		if _, fields, _ := strings.Cut(line, `"msg":"sample",`); fields != want[i] {
			t.Errorf("got  %s\nwant %s", fields, want[i])
		}
	}
}

func TestASampleIsLoggedInEachIntervalAndAtEachChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		every time.Duration
		polls []state.State
		want  []string // times of the lines, since noon
	}{
		{"once in an interval", time.Minute, []state.State{polled(noon, 5), polled(noon.Add(15*time.Second), 5), polled(noon.Add(59*time.Second), 5), polled(noon.Add(time.Minute), 5)}, []string{"0s", "1m0s"}},
		{"a timer that is early has not left one out", time.Minute, []state.State{polled(noon, 5), polled(noon.Add(time.Minute-2*time.Millisecond), 5)}, []string{"0s", "59.998s"}},
		{"more replicas are said at once", time.Minute, []state.State{polled(noon, 5), polled(noon.Add(15*time.Second), 6), polled(noon.Add(30*time.Second), 6)}, []string{"0s", "15s"}},
		{"a poll each hour is a line each", time.Minute, []state.State{polled(noon, 5), polled(noon.Add(time.Hour), 5)}, []string{"0s", "1h0m0s"}},
		{"0 is none", 0, []state.State{polled(noon, 5)}, nil},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var got []string
			var log bytes.Buffer
			s := newSamples(&log, c.every)
			for _, poll := range c.polls {
				log.Reset()
				s.processor(poll)
				for line := range strings.Lines(log.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("not JSON: %s", line)
					}
					got = append(got, poll.AttemptedAt.Sub(noon).String())
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("lines at %q, want %q", got, c.want)
			}
		})
	}
}
