package actions

import (
	"context"
	"log/slog"

	"github.com/feedscale/feedscale/pkg/events"
)

// Handler adapts an Action to the handler of a consumer. It logs what was done; the consumer logs
// what fails.
type Handler struct {
	Action Action
	Log    *slog.Logger
	DryRun bool // log what would be done, and do nothing
}

// Handle acts on an event. The error is the action's.
func (h Handler) Handle(ctx context.Context, e events.ScaleEvent) error {
	of := "processor"
	if e.Group != "" {
		of = "group"
	}
	log := h.Log.With(of, e.Subject(), "sequence", e.Sequence, "desiredReplicas", e.DesiredReplicas)
	target, err := h.Action.Target(e)
	switch {
	case err != nil && h.DryRun:
		log.Warn("would be dead-lettered", "error", err.Error())
		return nil
	case err != nil:
		return err
	case h.DryRun:
		log.Info("would act", "target", target)
		return nil
	}
	changed, err := h.Action.Act(ctx, e)
	if err != nil {
		return err
	}
	if changed {
		log.Info("acted", "target", target)
	} else {
		log.Debug("nothing to change", "target", target)
	}
	return nil
}
