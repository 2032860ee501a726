package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// Source tells what a feedscale that runs, or the state that it left, holds of the processors.
type Source struct {
	// List is of everything there is, or of what has one of some names.
	List  func(ctx context.Context, names []string) (report.List, error)
	Every time.Duration // how often it is worth asking
}

const (
	everyNear = 2 * time.Second  // a process or a file of this machine, or an API
	everyFar  = 10 * time.Second // a table, each look at which reads a row of every processor
)

// SourceOfAPI asks a feedscale over HTTP.
func SourceOfAPI(api *connect.API) Source { return Source{List: api.List, Every: everyNear} }

// SourceOfState looks into the state that settings name. It takes the configuration, which says which
// processors there are, unless another process has the state file open, which is asked. A file is opened for
// each look, so that it is free for others in between.
func SourceOfState(settings config.Settings, configure func() (config.Config, error), o Options) Source {
	var kept Record // a process that was found, or a table, which has nothing to close
	list := func(ctx context.Context, names []string) (report.List, error) {
		if kept != nil {
			if all, err := kept.List(ctx, names); err == nil || ctx.Err() != nil {
				return all, err
			}
		}
		found, end, err := OpenRecord(settings, configure, o)
		if kept = found; err != nil {
			return report.List{}, err
		}
		if _, own := found.(*App); own && settings.State.BoltPath != "" {
			kept = nil
			defer end()
		}
		return found.List(ctx, names)
	}
	if settings.State.BoltPath == "" {
		return Source{list, everyFar}
	}
	return Source{list, everyNear}
}

// Record is where commands read what is and what was: a feedscale that is asked, or the state.
type Record interface {
	List(ctx context.Context, names []string) (report.List, error)
	Report(ctx context.Context, names []string, since time.Time, progress func(done, all int)) (shadow.Report, error)
	History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error)
}

// OpenRecord opens the state that settings name, until end, or finds the process that has its file open.
func OpenRecord(settings config.Settings, configure func() (config.Config, error), o Options) (record Record, end func(), err error) {
	if settings.State.BoltPath != "" {
		connections := connect.New(settings)
		connections.Asking = o.Asking
		store, err := connections.Store(settings.State, true)
		if err != nil {
			return nil, nil, err
		}
		if running, found := store.(*connect.Running); found {
			return running, func() {}, nil
		}
		if err := store.Close(); err != nil {
			return nil, nil, err
		}
	}
	c, err := configure()
	if err != nil {
		return nil, nil, err
	}
	o.ReadOnly = true
	a, err := New(c, o)
	if err != nil {
		return nil, nil, err
	}
	return a, a.Close, nil
}

// List is what is stored, as overview.Overview has it.
func (a *App) List(ctx context.Context, names []string) (report.List, error) {
	return a.shown.List(ctx, names), nil
}

// Report is what ran since a time, as overview.Overview has it.
func (a *App) Report(ctx context.Context, names []string, since time.Time, progress func(done, all int)) (shadow.Report, error) {
	return a.shown.Report(ctx, names, since, progress)
}

// History is what is recorded of a processor.
func (a *App) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	return a.store.History(ctx, name, from, to)
}

// Find is List, and holds that everything that is named is there. The error of another name wraps
// report.ErrUnknownName, and says which name is nearest.
func (s Source) Find(ctx context.Context, names []string) (report.List, error) {
	all, err := s.List(ctx, names)
	if err != nil || len(names) == 0 {
		return all, err
	}
	known := namesOf(all)
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		everything, err := s.List(ctx, nil)
		if err != nil {
			return all, err
		}
		err = report.UnknownName(name)
		if near := config.Nearest(name, namesOf(everything)); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return all, err
	}
	return all, nil
}

// namesOf returns all names, sorted.
func namesOf(all report.List) []string {
	var names []string
	for _, p := range all.Processors {
		names = append(names, p.Name)
	}
	for _, g := range all.Groups {
		names = append(names, g.Name)
	}
	slices.Sort(names)
	return names
}
