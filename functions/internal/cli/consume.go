package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// maxConsumers is how many processors can be acted on at once.
const maxConsumers = 1024

// Consume acts on the scale events of a queue or subscription, in one of some ways, until it is stopped.
func Consume(kinds actions.Kinds) Command {
	return func(env Env) *cobra.Command {
		c := &cobra.Command{
			Use: "consume", Short: "act on the scale events of a queue or subscription",
			Example:     "FEEDSCALE_EVENTS=servicebus:SERVICEBUS/scale-events feedscale consume --action kubernetes\nFEEDSCALE_EVENTS=servicebus:SERVICEBUS/decisions/Subscriptions/mine feedscale consume | jq .data.desiredReplicas",
			Annotations: Settings("FEEDSCALE_EVENTS", "FEEDSCALE_WEBHOOK_SECRET", "FEEDSCALE_LOG_LEVEL"),
		}
		f := c.Flags()
		action := f.String("action", kinds[0].Name, kinds.Summary())
		complete(c, "action", kinds.Names()...)
		for _, kind := range kinds {
			for _, own := range kind.Flags {
				f.String(own.Name, "", own.Usage)
			}
		}
		sessions := f.Bool("sessions", false, "the queue or subscription requires sessions")
		concurrency := f.Int("concurrency", 16, fmt.Sprintf("processors that are acted on at once, 1 to %d", maxConsumers))
		dryRun := f.Bool("dry-run", false, "log what would be done instead of doing it; the events are completed all the same")
		c.RunE = func(c *cobra.Command, _ []string) error {
			return consume(c.Context(), env, f, kinds, *action, *sessions, *concurrency, *dryRun)
		}
		return c
	}
}

func consume(ctx context.Context, env Env, f *pflag.FlagSet, kinds actions.Kinds, action string, sessions bool, concurrency int, dryRun bool) error {
	settings, settingsErr := config.ReadSettings(env.Environ)
	connections := connect.New(settings)
	log := newLog(env.Stderr, settings.LogLevel)
	acting, actionErr := newAction(kinds, action, actions.Options{
		Flag:     func(name string) string { return f.Lookup(name).Value.String() },
		Secret:   settings.WebhookSecret.Reveal(),
		Identity: func() (azcore.TokenCredential, error) { return connections.Credential(config.Identity{}) },
		Stdout:   console.Lines{Writer: env.Stdout},
		Log:      log,
	})
	var concurrencyErr error
	if concurrency < 1 || concurrency > maxConsumers {
		concurrencyErr = fmt.Errorf("--concurrency: %d is not allowed; allowed are whole numbers from 1 to %d", concurrency, maxConsumers)
	}
	if err := errors.Join(settingsErr, queueMistake(env), concurrencyErr, othersFlags(f, kinds, action), actionErr); err != nil {
		fmt.Fprintln(env.Stderr, err)
		return Usage(nil)
	}
	consumer, err := connections.Consumer(settings.Events, servicebus.ConsumerOptions{Sessions: sessions, Concurrency: concurrency, Log: log})
	if err != nil {
		return Usage(err)
	}
	log.Info("consuming", "namespace", settings.Events.ServiceBus.Namespace, "queue", settings.Events.Path(), "action", action, "dryRun", dryRun, "version", env.Version)
	if kind, _ := kinds.Find(action); kind.Caution != "" {
		log.Warn(kind.Caution, "action", action)
	}
	handler := &actions.Handler{Action: acting, Log: log, DryRun: dryRun}
	err = consumer.Run(ctx, handler.Handle)
	if ctx.Err() != nil {
		log.Info("consuming ends", "cause", context.Cause(ctx).Error())
	}
	var refusal *servicebus.Refusal
	if errors.As(err, &refusal) && refusal.Kind == servicebus.WrongEntity {
		return fmt.Errorf("%w (FEEDSCALE_EVENTS=servicebus:%s/%s/Subscriptions/SUBSCRIPTION)", err, settings.Events.ServiceBus.Setting, settings.Events.Queue)
	}
	return err
}

// newAction makes the action that --action asks for.
func newAction(kinds actions.Kinds, name string, o actions.Options) (actions.Action, error) {
	kind, ok := kinds.Find(name)
	if !ok {
		return nil, fmt.Errorf("--action: there is no action %q; allowed are %s", name, listed(kinds.Names()))
	}
	return kind.New(o)
}

// queueMistake reports that there is no queue to consume from.
func queueMistake(env Env) error {
	place, _ := config.Lookup(env.Environ)("FEEDSCALE_EVENTS")
	if place = strings.ToLower(strings.TrimSpace(place)); place == "" || place == "stdout:" {
		return errors.New("FEEDSCALE_EVENTS: names no queue to consume from; allowed is servicebus:SETTING/QUEUE, or servicebus:SETTING/TOPIC/Subscriptions/NAME, SETTING naming a setting that holds a Service Bus connection")
	}
	return nil
}

// othersFlags refuses flags that belong to another action than the chosen one.
func othersFlags(f *pflag.FlagSet, kinds actions.Kinds, action string) error {
	var mistakes []error
	f.Visit(func(given *pflag.Flag) {
		for _, kind := range kinds {
			if kind.Name != action && slices.ContainsFunc(kind.Flags, func(own actions.Flag) bool { return own.Name == given.Name }) {
				mistakes = append(mistakes, fmt.Errorf("--%s: is of --action %s alone; leave it out, or give that action", given.Name, kind.Name))
			}
		}
	})
	return errors.Join(mistakes...)
}
