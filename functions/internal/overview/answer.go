package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// List reads everything there is, or what has one of some names. What cannot be loaded is an entry with its
// error: it is no reason to say nothing about the others.
func (o *Overview) List(ctx context.Context, names []string, partitions bool) report.List {
	ctx, cancel := context.WithTimeout(ctx, allTime)
	defer cancel()
	now, asked := o.Now(), o.all()
	if len(names) > 0 {
		asked = slices.DeleteFunc(slices.Clone(asked), func(s *slot) bool { return !slices.Contains(names, s.Name) })
	}
	entries := o.read(ctx, asked, now, partitions)
	if len(names) == 0 {
		o.say(entries)
	}
	return listOf(now, entries)
}

// Summary is the list of the entries, without partitions, and a number that changes with it.
func (o *Overview) Summary() (all report.List, generation uint64) {
	entries, generation := o.Current()
	all = listOf(o.Now(), entries)
	for i := range all.Processors {
		all.Processors[i].Partitions = []report.Partition{}
	}
	return all, generation
}

func listOf(now time.Time, entries []*Entry) report.List {
	processors, groups := []report.Stored{}, []report.StoredGroup{}
	for _, e := range entries {
		if e.Group.Name != "" {
			groups = append(groups, e.Group)
		} else {
			processors = append(processors, e.Processor)
		}
	}
	return report.NewList(now.UTC().Truncate(time.Millisecond), processors, groups)
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

// shownUntil returns how long a row that was read at now may be shown. After that, the next poll has probably replaced
// it. A row that no poll replaces is read every few seconds, so that what becomes stale or overdue is noticed.
func (s Subject) shownUntil(found report.Lookup, now time.Time) time.Time {
	if next := s.after(1, found, found.AttemptedAt); next.After(now) {
		now = next
	}
	return now.Add(settles)
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
