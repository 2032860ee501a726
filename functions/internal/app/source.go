package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
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
// processors there are, unless another process has the state file open, which is asked.
func SourceOfState(settings config.Settings, configure func() (config.Config, error), o Options) Source {
	o.ReadOnly = true
	open := func() (*App, error) {
		c, err := configure()
		if err != nil {
			return nil, err
		}
		return New(c, o)
	}
	if settings.State.BoltPath != "" {
		return Source{List: inFile(settings, open, o.Asking), Every: everyNear}
	}
	var table *App // once it is open; one that only reads has nothing to close
	return Source{Every: everyFar, List: func(ctx context.Context, names []string) (all report.List, err error) {
		if table == nil {
			if table, err = open(); err != nil {
				return report.List{}, err
			}
		}
		return table.shown.List(ctx, names), nil
	}}
}

// inFile opens the file for each look, so that it is free for others in between.
func inFile(settings config.Settings, open func() (*App, error), asking func(address string)) func(context.Context, []string) (report.List, error) {
	var running *connect.Running // once one was found
	return func(ctx context.Context, names []string) (report.List, error) {
		if running != nil {
			if all, err := running.List(ctx, names); err == nil || ctx.Err() != nil {
				return all, err
			}
		}
		connections := connect.New(settings)
		connections.Asking = asking
		store, err := connections.Store(settings.State, true)
		if err != nil {
			return report.List{}, err
		}
		var found bool
		if running, found = store.(*connect.Running); found {
			return running.List(ctx, names)
		}
		if err := store.Close(); err != nil {
			return report.List{}, err
		}
		a, err := open()
		if err != nil {
			return report.List{}, err
		}
		defer a.Close()
		return a.shown.List(ctx, names), nil
	}
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
		if known[name] {
			continue
		}
		everything, err := s.List(ctx, nil)
		if err != nil {
			return all, err
		}
		err = report.UnknownName(name)
		if near := config.Nearest(name, slices.Sorted(maps.Keys(namesOf(everything)))); near != "" {
			err = fmt.Errorf("%w; did you mean %s?", err, near)
		}
		return all, err
	}
	return all, nil
}

func namesOf(all report.List) map[string]bool {
	names := make(map[string]bool, len(all.Processors)+len(all.Groups))
	for _, p := range all.Processors {
		names[p.Name] = true
	}
	for _, g := range all.Groups {
		names[g.Name] = true
	}
	return names
}
