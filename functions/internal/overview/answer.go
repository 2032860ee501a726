package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Summary is the list of some entries, without partitions.
func (o *Overview) Summary(entries []*Entry) report.List {
	all := listOf(o.Now(), entries)
	for i := range all.Processors {
		all.Processors[i].Partitions = []report.Partition{}
	}
	return all
}

func listOf(now time.Time, entries []*Entry) report.List {
	processors, groups := []report.StoredProcessor{}, []report.StoredGroup{}
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
	found = o.known(s, found, o.Now())
	if found.Decision != nil && !found.Stale {
		return found, nil
	}
	var why []string
	for _, f := range report.Findings(found) {
		why = append(why, f.Sentence)
	}
	if !found.AttemptedAt.IsZero() && found.Stale && o.NeverPolled != "" {
		why = append(why, o.NeverPolled)
	}
	return report.Lookup{}, fmt.Errorf("no decision on %s %s holds: %s", s.kind, s.Name, strings.Join(why, "; "))
}

// known adds to a row what is known of it at a time, and has the decision that stands.
func (o *Overview) known(s *slot, found report.Lookup, now time.Time) report.Lookup {
	found.Stale, found.Overdue = s.stale(found, now), s.overdue(found, now)
	switch {
	case found.Err != nil:
		found.Problem = "the state cannot be read: " + found.Err.Error()
	case found.AttemptedAt.IsZero() && o.NeverPolled != "":
		found.Problem = "it was never polled, since " + o.NeverPolled
	}
	found.Processor, found.Group, found.Decision = s.Name, s.Group, found.Standing()
	return found
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
