package report

import (
	"cmp"
	"errors"
	"fmt"
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

// Asked is a State, with what decides whether a scaler may act upon it. The HTTP API and KEDA's external scaler
// both answer by it (docs/http.md).
type Asked struct {
	Subject string // "processor orders", say
	State   state.State
	// Next is when the subject in a state is polled for the first time after t.
	Next        func(s state.State, t time.Time) time.Time
	NeverPolled string // why nothing is polled; "" if nothing keeps it from that
}

// staleAfter is how many of its own poll intervals a decision may be old.
const staleAfter = 3

// overdueAfter is how many of its own poll intervals an event may wait.
const overdueAfter = 2

// Decision returns what a scaler is to act upon. The error says why there is no such decision, so that the
// scaler's own fallback applies: the subject was never polled, not for too long, or nothing could be decided.
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

// NeverPolled says that a subject was never polled and, if it is known, why.
func NeverPolled(subject, why string) string {
	if why == "" {
		return subject + " was never polled"
	}
	return subject + " was never polled, since " + why
}

// Stale reports whether the subject was polled once, and not for too long.
func (a Asked) Stale(now time.Time) bool {
	return !a.State.AttemptedAt.IsZero() && now.After(a.after(staleAfter, a.State.AttemptedAt))
}

// Overdue reports whether an event that was decided at a time should have been published since: two polls
// have tried.
func (a Asked) Overdue(decided, now time.Time) bool {
	return !decided.IsZero() && now.After(a.after(overdueAfter, decided))
}

// settles is how long a poll may take until its result is stored.
const settles = 5 * time.Second

// Until returns the last moment at which a State that was read at now may be shown. After that, the next
// poll has probably replaced it, the subject is stale, or the event that was decided at a time is overdue.
func (a Asked) Until(decided, now time.Time) time.Time {
	until := now.Add(settles)
	sooner := func(polls int, from time.Time) {
		if t := a.after(polls, from); t.After(now) && t.Before(until) {
			until = t
		}
	}
	if polled := a.State.AttemptedAt; !polled.IsZero() {
		if next := a.Next(a.State, polled).Add(settles); next.After(until) {
			until = next
		}
		sooner(staleAfter, polled)
	}
	if !decided.IsZero() {
		sooner(overdueAfter, decided)
	}
	return until
}

// after returns when the last of so many polls is due from a time on.
func (a Asked) after(polls int, from time.Time) time.Time {
	for range polls {
		from = a.Next(a.State, from)
	}
	return from
}
