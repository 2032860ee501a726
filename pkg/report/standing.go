package report

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// ErrUnknownName is of a name that no processor and no group has. Its text says where to look.
var ErrUnknownName = errors.New("the processors file says which there are")

// UnknownName is the error of a name that no processor and no group has: it wraps ErrUnknownName.
func UnknownName(name string) error {
	return fmt.Errorf("no processor or group is named %q: %w", name, ErrUnknownName)
}

// Standing is a State with what tells whether a scaler may act upon it. It is the one judgement of
// all that answer scalers: the HTTP API and KEDA's external scaler (docs/act.md).
type Standing struct {
	Subject string // "processor orders", say
	State   state.State
	// Next is when the subject in a state is polled for the first time after t.
	Next        func(s state.State, t time.Time) time.Time
	NeverPolled string // why nothing is ever polled; "" where nothing keeps it from that
}

// staleAfter is how many of its own poll intervals a decision may be old.
const staleAfter = 3

// Decision returns what a scaler is to act upon. The error says why there is nothing that can be
// stood by, so that the scaler's own fallback applies: it was never polled, not for too long, or
// nothing could be decided.
//
// Of what is paused it is the decision before the pause: later ones are shown to people alone.
func (s Standing) Decision(now time.Time) (*scaling.Decision, error) {
	held, decided := s.State.Memory, s.State.Decision
	switch {
	case s.State.AttemptedAt.IsZero():
		return nil, errors.New(NeverPolled(s.Subject, s.NeverPolled))
	case s.stale(now):
		return nil, fmt.Errorf("%s was last polled at %s, more than %d of its poll intervals ago: the timer function may not be running", s.Subject, s.State.AttemptedAt.Format(time.RFC3339), staleAfter)
	case s.State.Paused && held.Replicas == nil:
		return nil, fmt.Errorf("%s is paused, and nothing was decided before the pause", s.Subject)
	case s.State.Paused:
		d := &scaling.Decision{
			Time: s.State.AttemptedAt, Replicas: *held.Replicas, Previous: held.Replicas, Direction: scaling.None, Active: held.Active, MetricValue: held.MetricValue,
		}
		if decided != nil {
			d.Reasons = slices.Clone(decided.Reasons)
		}
		d.Reasons = append(d.Reasons, scaling.Reason{Step: "paused", Replicas: d.Replicas, Why: "scalers get the decision before the pause"})
		return d, nil
	case decided == nil && len(s.State.Members) > 0:
		return nil, fmt.Errorf("nothing could be decided for %s: none of its members could be measured", s.Subject)
	case decided == nil:
		return nil, fmt.Errorf("nothing could be decided for %s: %s", s.Subject, s.State.Lag.Problem())
	}
	return decided, nil
}

// NeverPolled says that a subject was never polled and, where it is known, why.
func NeverPolled(subject, why string) string {
	if why == "" {
		return subject + " was never polled"
	}
	return subject + " was never polled, since " + why
}

// stale reports whether the subject was not polled for too long.
func (s Standing) stale(now time.Time) bool {
	due := s.State.AttemptedAt
	for range staleAfter {
		due = s.Next(s.State, due)
	}
	return now.After(due)
}
