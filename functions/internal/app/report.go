package app

import (
	"context"
	"time"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// Record is where a report reads what ran: a feedscale that is asked, or the state.
type Record interface {
	Report(ctx context.Context, names []string, since time.Time, progress func(done, all int)) (shadow.Report, error)
	History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error)
}

// OpenRecord opens the state that settings name. It takes the configuration, which says which processors
// there are, unless another process has the state file open, which is asked.
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
	return recordOf{a}, a.Close, nil
}

// recordOf is the Record in the store of an App.
type recordOf struct{ app *App }

func (r recordOf) Report(ctx context.Context, names []string, since time.Time, progress func(done, all int)) (shadow.Report, error) {
	return r.app.shown.Report(ctx, names, since, progress)
}

func (r recordOf) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	return r.app.store.History(ctx, name, from, to)
}
