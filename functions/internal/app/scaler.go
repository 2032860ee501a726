package app

import "context"

// Replicas returns how many replicas a processor or group is to have, the same as over HTTP. KEDA's external
// scaler asks. The error is report.ErrUnknownName, or says why no count can be stood by.
func (a *App) Replicas(ctx context.Context, name string) (int, error) {
	s, err := a.shown.Answer(ctx, name)
	if err != nil {
		return 0, err
	}
	return s.Decision.Replicas, nil
}

// Changed returns a channel that is closed with the next commit of this process, when the count may have
// changed; nil if nothing has that name.
func (a *App) Changed(name string) <-chan struct{} {
	if !a.shown.Knows(name) {
		return nil
	}
	return a.store.Changed(name)
}
