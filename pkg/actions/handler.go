package actions

import (
	"context"
	"errors"
	"log/slog"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
)

// Handler adapts an Action to the handler of a consumer. It logs what it did; the consumer logs failures.
type Handler struct {
	Action Action
	Log    *slog.Logger
	DryRun bool // log what would be done, and do nothing

	left bounded.Notes // by target: why it is left alone
}

// Handle acts on an event. The error is the action's. A target that is left alone is no error: its event is
// settled, and the next one, at the heartbeat at the latest, tries again.
func (h *Handler) Handle(ctx context.Context, e events.ScaleEvent) error {
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
	if errors.Is(err, ErrRival) {
		if h.left.News(target, err.Error()) {
			log.Warn("left alone", "target", target, "error", err.Error())
		}
		return nil
	}
	if err != nil {
		return err
	}
	h.left.News(target, "")
	if changed {
		log.Info("acted", "target", target)
	} else {
		log.Debug("nothing to change", "target", target)
	}
	return nil
}
