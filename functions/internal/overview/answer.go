package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// List reads everything there is, or what has one of some names, with its partitions. What cannot be
// loaded is an entry with its error: it is no reason to say nothing about the others.
func (o *Overview) List(ctx context.Context, names []string) report.List {
	ctx, cancel := context.WithTimeout(ctx, allTime)
	defer cancel()
	now := o.Now().UTC().Truncate(time.Millisecond)
	asked := o.all()
	if len(names) > 0 {
		asked = slices.DeleteFunc(slices.Clone(asked), func(s *slot) bool { return !slices.Contains(names, s.Name) })
	}
	var errs []error
	all := report.List{Processors: []report.Stored{}, Groups: []report.StoredGroup{}}
	for i, found := range o.loadAll(ctx, asked) {
		if found.Err != nil {
			errs = append(errs, found.Err)
		}
		if s := asked[i]; s.kind == group {
			all.Groups = append(all.Groups, report.NewStoredGroup(o.shown(s, found, now)))
		} else {
			all.Processors = append(all.Processors, report.NewStored(o.shown(s, found, now)))
		}
	}
	if len(names) == 0 {
		o.say(errs)
	}
	return report.NewList(now, all.Processors, all.Groups)
}

// loadAll looks rows up, some at once.
func (o *Overview) loadAll(ctx context.Context, slots []*slot) []report.Lookup {
	rows := make([]report.Lookup, len(slots))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, s := range slots {
		loads.Go(func() error {
			rows[i] = o.load(ctx, s.Name)
			return nil
		})
	}
	_ = loads.Wait() // none fails for all
	return rows
}

// load looks a row up.
func (o *Overview) load(ctx context.Context, name string) (found report.Lookup) {
	ctx, cancel := context.WithTimeout(ctx, rowTime)
	defer cancel()
	stored, err := o.Store.Load(ctx, name)
	if err == nil {
		found.State, err = stored.State()
	}
	found.Waiting, found.Err = stored.Outbox, err
	return found
}

// shown adds to a row what is shown of it at a time.
func (o *Overview) shown(s *slot, found report.Lookup, now time.Time) report.Lookup {
	found.Stale, found.Overdue = s.stale(found, now), s.overdue(found, now)
	switch {
	case found.Err != nil:
		found.Problem = "the state cannot be read: " + found.Err.Error()
	case found.AttemptedAt.IsZero() && o.NeverPolled != "":
		found.Problem = o.neverPolled(s)
	}
	found.Processor, found.Decision = s.Name, found.Standing()
	if s.kind == processor {
		found.Group = s.Group
	}
	return found
}

// Answer looks a processor or group up, with the Decision that a scaler may act upon: the answer to every
// scaler, over HTTP or otherwise. It reads the row, so that it is never older than that. The error is
// report.ErrUnknownName, or says why there is no such decision.
func (o *Overview) Answer(ctx context.Context, name string) (report.Lookup, error) {
	s := o.find(name)
	if s == nil {
		return report.Lookup{}, o.Unknown(name)
	}
	found := o.load(ctx, name)
	if found.Err != nil {
		o.Log.Error("the state cannot be read", "error", found.Err.Error())
		return report.Lookup{}, fmt.Errorf("the state cannot be read: %w", found.Err)
	}
	now := o.Now()
	if err := o.undecided(s, found, now); err != nil {
		return report.Lookup{}, err
	}
	found.Decision, found.Overdue = found.Standing(), s.overdue(found, now)
	return found, nil
}

// undecided says why a scaler should use its own fallback: the subject was never polled, or not for too long, or
// nothing could be decided. It is nil if the standing decision may be acted on.
func (o *Overview) undecided(s *slot, found report.Lookup, now time.Time) error {
	subject := s.kind + " " + s.Name
	switch {
	case found.AttemptedAt.IsZero():
		return errors.New(o.neverPolled(s))
	case s.stale(found, now):
		why := cmp.Or(o.NeverPolled, "the timer function may not be running")
		return fmt.Errorf("%s was last polled at %s, more than %d of its poll intervals ago: %s", subject, found.AttemptedAt.Format(time.RFC3339), staleAfter, why)
	case found.Standing() != nil:
		return nil
	case found.Paused:
		return fmt.Errorf("%s is paused, and nothing was decided before the pause", subject)
	case len(found.Members) > 0:
		return fmt.Errorf("nothing could be decided for %s: none of its members could be measured", subject)
	}
	return fmt.Errorf("nothing could be decided for %s: %s", subject, found.Lag.Problem())
}

// neverPolled says that a subject was never polled, and why if that is known.
func (o *Overview) neverPolled(s *slot) string {
	text := s.kind + " " + s.Name + " was never polled"
	if o.NeverPolled != "" {
		text += ", since " + o.NeverPolled
	}
	return text
}

const (
	staleAfter   = 3               // poll intervals of the subject, after which a decision is too old
	overdueAfter = 2               // poll intervals that an event may wait
	settles      = 5 * time.Second // from the start of a poll until its result is stored
)

// stale reports whether the last poll is too long ago. A subject that was never polled is not stale.
func (s Subject) stale(found report.Lookup, now time.Time) bool {
	return !found.AttemptedAt.IsZero() && now.After(s.after(staleAfter, found, found.AttemptedAt))
}

// overdue reports whether the oldest event should have been published: two polls have passed since it was decided.
func (s Subject) overdue(found report.Lookup, now time.Time) bool {
	decided := found.Oldest()
	return !decided.IsZero() && now.After(s.after(overdueAfter, found, decided))
}

// shownUntil returns how long a row that was read at now may be shown. After that, the next poll has probably replaced it,
// the subject is stale, or its oldest event is overdue.
func (s Subject) shownUntil(found report.Lookup, now time.Time) time.Time {
	until := now.Add(settles)
	if next := s.after(1, found, found.AttemptedAt).Add(settles); next.After(until) {
		until = next
	}
	for _, t := range []time.Time{s.after(staleAfter, found, found.AttemptedAt), s.after(overdueAfter, found, found.Oldest())} {
		if t.After(now) && t.Before(until) {
			until = t
		}
	}
	return until
}

// after returns the time of the nth poll after from; zero if from is zero.
func (s Subject) after(polls int, found report.Lookup, from time.Time) time.Time {
	for range polls {
		if !from.IsZero() {
			from = s.Next(found.State, from)
		}
	}
	return from
}

// Stored returns the State that is stored under a name, configured or not, and whether one is.
func (o *Overview) Stored(ctx context.Context, name string) (s state.State, stored bool, err error) {
	found := o.load(ctx, name)
	return found.State, found.Processor != "", found.Err
}

// Knows reports whether a processor or group is configured.
func (o *Overview) Knows(name string) bool { return o.find(name) != nil }

// IsGroup reports whether a group is configured.
func (o *Overview) IsGroup(name string) bool {
	s := o.find(name)
	return s != nil && s.kind == group
}

// Unknown is the error of a name that nothing has, with the nearest one that something has. It wraps
// report.ErrUnknownName.
func (o *Overview) Unknown(name string) error {
	var names []string
	for _, s := range slices.Concat(o.Processors, o.Groups) {
		names = append(names, s.Name)
	}
	if near := config.Nearest(name, names); near != "" {
		return fmt.Errorf("%w; did you mean %s?", report.UnknownName(name), near)
	}
	return report.UnknownName(name)
}
