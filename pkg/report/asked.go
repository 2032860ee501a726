package report

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// ErrUnknownName is the error of a name that no processor and no group has. Its text says where to
// look.
var ErrUnknownName = errors.New("the processors file says which there are")

// UnknownName returns an error for a name that no processor and no group has. It wraps
// ErrUnknownName.
func UnknownName(name string) error {
	return fmt.Errorf("no processor or group is named %q: %w", name, ErrUnknownName)
}

// Asked is a State with what decides whether a scaler may act on it. The HTTP API and KEDA's
// external scaler both use it (docs/http.md).
type Asked struct {
	Subject string // such as "processor orders"
	State   state.State
	// Next returns the first time after t at which a subject in state s is polled.
	Next        func(s state.State, t time.Time) time.Time
	NeverPolled string // why it is never polled; "" = it is
}

const (
	staleAfter   = 3               // poll intervals of the subject, after which a decision is too old
	overdueAfter = 2               // poll intervals that an event may wait
	settles      = 5 * time.Second // from the start of a poll until its result is stored
)

// Decision returns the decision that a scaler should act on. The error says why there is none, so
// that the scaler uses its own fallback: the subject was never polled, or not for too long, or
// nothing could be decided.
func (a Asked) Decision(now time.Time) (*scaling.Decision, error) {
	standing := a.State.Standing()
	switch {
	case a.State.AttemptedAt.IsZero():
		return nil, errors.New(NeverPolled(a.Subject, a.NeverPolled))
	case a.Stale(now):
		why := cmp.Or(a.NeverPolled, "the timer function may not be running")
		return nil, fmt.Errorf("%s was last polled at %s, more than %d of its poll intervals ago: %s", a.Subject, a.State.AttemptedAt.Format(time.RFC3339), staleAfter, why)
	case standing == nil && a.State.Paused:
		return nil, fmt.Errorf("%s is paused, and nothing was decided before the pause", a.Subject)
	case standing == nil && len(a.State.Members) > 0:
		return nil, fmt.Errorf("nothing could be decided for %s: none of its members could be measured", a.Subject)
	case standing == nil:
		return nil, fmt.Errorf("nothing could be decided for %s: %s", a.Subject, a.State.Lag.Problem())
	}
	return standing, nil
}

// NeverPolled says that a subject was never polled and, if why is not "", why.
func NeverPolled(subject, why string) string {
	if why == "" {
		return subject + " was never polled"
	}
	return subject + " was never polled, since " + why
}

// Stale reports whether the last poll is too long ago. A subject that was never polled is not
// stale.
func (a Asked) Stale(now time.Time) bool {
	return !a.State.AttemptedAt.IsZero() && now.After(a.after(staleAfter, a.State.AttemptedAt))
}

// Overdue reports whether an event decided at a time should have been published: two polls have
// passed since.
func (a Asked) Overdue(decided, now time.Time) bool {
	return !decided.IsZero() && now.After(a.after(overdueAfter, decided))
}

// Until returns how long a State that was read at now may be cached. After that, the next poll has
// probably replaced it, the subject is stale, or the event decided at decided is overdue.
func (a Asked) Until(decided, now time.Time) time.Time {
	until, polled := now.Add(settles), a.State.AttemptedAt
	if next := a.after(1, polled).Add(settles); next.After(until) {
		until = next
	}
	for _, t := range []time.Time{a.after(staleAfter, polled), a.after(overdueAfter, decided)} {
		if t.After(now) && t.Before(until) {
			until = t
		}
	}
	return until
}

// after returns the time of the nth poll after from; zero if from is zero.
func (a Asked) after(polls int, from time.Time) time.Time {
	for range polls {
		if !from.IsZero() {
			from = a.Next(a.State, from)
		}
	}
	return from
}
