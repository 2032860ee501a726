package overview

import (
	"context"
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
	rows := make([]report.Lookup, len(asked))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	for i, s := range asked {
		loads.Go(func() error {
			rows[i] = o.shown(s, o.load(ctx, s.Name), now)
			return nil
		})
	}
	_ = loads.Wait() // none fails for all
	var errs []error
	all := report.List{Processors: []report.Stored{}, Groups: []report.StoredGroup{}}
	for i, s := range asked {
		if rows[i].Err != nil {
			errs = append(errs, rows[i].Err)
		}
		if s.kind == group {
			all.Groups = append(all.Groups, report.NewStoredGroup(rows[i]))
		} else {
			all.Processors = append(all.Processors, report.NewStored(rows[i]))
		}
	}
	if len(names) == 0 {
		o.say(errs)
	}
	return report.NewList(now, all.Processors, all.Groups)
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
	asked := report.Asked{State: found.State, Next: s.Next}
	found.Stale, found.Overdue = asked.Stale(now), asked.Overdue(found.Oldest(), now)
	switch {
	case found.Err != nil:
		found.Problem = "the state cannot be read: " + found.Err.Error()
	case found.AttemptedAt.IsZero() && o.NeverPolled != "":
		found.Problem = report.NeverPolled(s.kind+" "+s.Name, o.NeverPolled)
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
	asked := report.Asked{Subject: s.kind + " " + name, State: found.State, Next: s.Next, NeverPolled: o.NeverPolled}
	var err error
	if found.Decision, err = asked.Decision(o.Now()); err != nil {
		return report.Lookup{}, err
	}
	found.Overdue = asked.Overdue(found.Oldest(), o.Now())
	return found, nil
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
