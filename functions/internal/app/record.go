package app

import (
	"context"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// Record is where commands and scalers read what is and what was: an App over the state, or a feedscale that
// is asked (connect.API).
type Record interface {
	// Replicas returns how many replicas a processor or group is to have. The error is report.ErrUnknownName, or says
	// why no count can be stood by.
	Replicas(ctx context.Context, name string) (int, error)

	// Changed returns a channel that is closed when the count may have changed; nil if nothing tells.
	Changed(name string) <-chan struct{}

	// List is of everything there is, or of what has one of some names. The error of another name is
	// report.ErrUnknownName.
	List(ctx context.Context, names []string) (report.List, error)
	Report(ctx context.Context, names []string, since time.Time, progress func(done int)) (shadow.Report, error)
	History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error)
}

// List is what is stored, as overview.Overview has it.
func (a *App) List(ctx context.Context, names []string) (report.List, error) {
	if _, err := a.shown.Members(names); err != nil {
		return report.List{}, err
	}
	return a.shown.List(ctx, names, true), nil
}

// Report is what ran since a time, as overview.Overview has it.
func (a *App) Report(ctx context.Context, names []string, since time.Time, progress func(done int)) (shadow.Report, error) {
	asked, err := a.shown.Members(names)
	if err != nil {
		return shadow.Report{}, err
	}
	return a.shown.Report(ctx, asked, since, progress)
}

// History is what is recorded of a processor.
func (a *App) History(ctx context.Context, name string, from, to time.Time) ([]state.Sample, error) {
	return a.store.History(ctx, name, from, to)
}

// Replicas is the same count as over HTTP.
func (a *App) Replicas(ctx context.Context, name string) (int, error) {
	s, err := a.shown.Answer(ctx, name)
	if err != nil {
		return 0, err
	}
	return s.Decision.Replicas, nil
}

// Changed tells of the next commit of this process.
func (a *App) Changed(name string) <-chan struct{} {
	if !a.shown.Knows(name) {
		return nil
	}
	return a.store.Changed(name)
}
