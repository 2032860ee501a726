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
	asked, now := o.named(names), o.Now().UTC().Truncate(time.Millisecond)
	processors, groups := make([]report.Stored, len(asked.Processors)), make([]report.StoredGroup, len(asked.Groups))
	var loads errgroup.Group
	loads.SetLimit(parallel)
	read := func(kind string, s Subject) report.Lookup {
		found := o.load(ctx, s.Name)
		if found.Err != nil {
			o.Log.Error("the state cannot be read", kind, s.Name, "error", found.Err.Error())
		}
		return o.shown(kind, s, found, now)
	}
	for i, s := range asked.Processors {
		loads.Go(func() error {
			processors[i] = report.NewStored(read(processor, s))
			return nil
		})
	}
	for i, s := range asked.Groups {
		loads.Go(func() error {
			groups[i] = report.NewStoredGroup(read(group, s))
			return nil
		})
	}
	_ = loads.Wait() // none fails for all
	return report.NewList(now, processors, groups)
}

// choice is what a list is about.
type choice struct{ Processors, Groups []Subject }

// named leaves of everything there is what has one of some names; without names it is everything.
func (o *Overview) named(names []string) choice {
	if len(names) == 0 {
		return choice{o.Processors, o.Groups}
	}
	other := func(s Subject) bool { return !slices.Contains(names, s.Name) }
	return choice{slices.DeleteFunc(slices.Clone(o.Processors), other), slices.DeleteFunc(slices.Clone(o.Groups), other)}
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
func (o *Overview) shown(kind string, s Subject, found report.Lookup, now time.Time) report.Lookup {
	asked := report.Asked{State: found.State, Next: s.Next}
	found.Stale, found.Overdue = asked.Stale(now), asked.Overdue(found.Oldest(), now)
	switch {
	case found.Err != nil:
		found.Problem = "the state cannot be read: " + found.Err.Error()
	case found.AttemptedAt.IsZero() && o.NeverPolled != "":
		found.Problem = report.NeverPolled(kind+" "+s.Name, o.NeverPolled)
	}
	found.Processor, found.Decision = s.Name, found.Standing()
	if kind == processor {
		found.Group = s.Group
	}
	return found
}

// Answer looks a processor or group up, with the Decision that a scaler may act upon: the answer to every
// scaler, over HTTP or otherwise. It reads the row, so that it is never older than that. The error is
// report.ErrUnknownName, or says why there is no such decision.
func (o *Overview) Answer(ctx context.Context, name string) (report.Lookup, error) {
	asked := report.Asked{NeverPolled: o.NeverPolled}
	for _, s := range o.Processors {
		if s.Name == name {
			asked.Subject, asked.Next = processor+" "+name, s.Next
		}
	}
	for _, s := range o.Groups {
		if s.Name == name {
			asked.Subject, asked.Next = group+" "+name, s.Next
		}
	}
	if asked.Next == nil {
		return report.Lookup{}, o.unknown(name)
	}
	found := o.load(ctx, name)
	if found.Err != nil {
		o.Log.Error("the state cannot be read", "error", found.Err.Error())
		return report.Lookup{}, fmt.Errorf("the state cannot be read: %w", found.Err)
	}
	asked.State = found.State
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
func (o *Overview) Knows(name string) bool {
	return has(o.Processors, name) || has(o.Groups, name)
}

// IsGroup reports whether a group is configured.
func (o *Overview) IsGroup(name string) bool { return has(o.Groups, name) }

func has(all []Subject, name string) bool {
	return slices.ContainsFunc(all, func(s Subject) bool { return s.Name == name })
}

// unknown is the error of a name that nothing has, with the nearest one that something has.
func (o *Overview) unknown(name string) error {
	var names []string
	for _, s := range slices.Concat(o.Processors, o.Groups) {
		names = append(names, s.Name)
	}
	if near := config.Nearest(name, names); near != "" {
		return fmt.Errorf("%w; did you mean %s?", report.UnknownName(name), near)
	}
	return report.UnknownName(name)
}
