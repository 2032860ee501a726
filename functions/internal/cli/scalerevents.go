package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state"
)

// toldByEvents are answers that an event says when to ask for again, and not the interval alone.
type toldByEvents struct {
	ScalerAnswers
	told *state.Notices
}

func (t toldByEvents) Changed(name string) <-chan struct{} { return t.told.Changed(name) }

// ownSubscription reads the flag --events. A queue is not allowed: its events are somebody else's.
func ownSubscription(env Env, text string) (config.Events, error) {
	e, err := config.ParseEvents(func(name string) (string, bool) { value := env.Getenv(name); return value, value != "" }, text)
	if err == nil && e.Subscription == "" {
		err = errors.New("takes the events of a subscription of its own; allowed is servicebus:SETTING/TOPIC/Subscriptions/NAME")
	}
	if err != nil {
		return e, fmt.Errorf("--events: %w", err)
	}
	return e, nil
}

// tellByEvents has the events of a subscription tell what has changed, until ctx ends. Without events the
// interval goes on.
func tellByEvents(ctx context.Context, s config.Settings, e config.Events, answers ScalerAnswers, log *slog.Logger) (ScalerAnswers, error) {
	consumer, err := connect.New(s).Consumer(e, servicebus.ConsumerOptions{Log: log})
	if err != nil {
		return nil, Usage(err)
	}
	t := toldByEvents{answers, new(state.Notices)}
	go func() {
		err := consumer.Run(ctx, func(_ context.Context, event events.ScaleEvent) error {
			t.told.Tell(event.Data.Subject())
			return nil
		})
		if ctx.Err() == nil {
			log.Warn("events no longer say what has changed; the interval goes on", "entity", e.Path(), "error", err.Error())
		}
	}()
	return t, nil
}
