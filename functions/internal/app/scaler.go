package app

import (
	"context"

	"github.com/feedscale/feedscale/functions/internal/overview"
)

// Answers say how many replicas a processor or group is to have, and when that may have changed. KEDA's external
// scaler answers from them.
type Answers struct {
	*overview.Overview
	app *App
}

// Answers are those of the app's store, the same as over HTTP.
func (a *App) Answers() Answers { return Answers{a.shown, a} }

// Replicas returns the count. The error is report.ErrUnknownName, or says why no count can be stood by.
func (a Answers) Replicas(ctx context.Context, name string) (int, error) {
	s, err := a.Answer(ctx, name)
	if err != nil {
		return 0, err
	}
	return s.Decision.Replicas, nil
}

// Changed returns a channel that is closed with the next commit of this process; nil if nothing has
// that name.
func (a Answers) Changed(name string) <-chan struct{} {
	if !a.Knows(name) {
		return nil
	}
	return a.app.store.Changed(name)
}
