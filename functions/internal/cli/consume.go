package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// maxConsumers bounds --concurrency.
const maxConsumers = 1024

// Consume acts on the scale events of a queue or subscription until it is stopped.
func Consume(kinds actions.Kinds) program.Command {
	return func(env program.Env) *cobra.Command {
		c := &cobra.Command{
			Use: "consume", Short: "act on the scale events of a queue or subscription", GroupID: program.GroupAct,
			Example:     "FEEDSCALE_EVENTS=servicebus:SERVICEBUS/scale-events feedscale consume --action kubernetes\nFEEDSCALE_EVENTS=servicebus:SERVICEBUS/decisions/Subscriptions/mine feedscale consume | jq .data.desiredReplicas",
			Annotations: program.Settings("FEEDSCALE_EVENTS", "FEEDSCALE_WEBHOOK_SECRET", "FEEDSCALE_LOG_LEVEL"),
		}
		f := program.FlagsOf(c)
		o := consumeOptions{action: kinds[0].Name, ConsumerOptions: servicebus.ConsumerOptions{Concurrency: 16}}
		f.Choice(&o.action, "action", "", "way", kinds.Summary(), kinds.Names()...)
		for _, kind := range kinds {
			for _, own := range kind.Flags {
				f.String(own.Name, "", own.Usage)
			}
		}
		f.BoolVar(&o.Sessions, "sessions", false, "the queue or subscription requires sessions")
		program.Number(f, &o.Concurrency, "concurrency", program.WholeNumbers, 1, maxConsumers, "how many processors to act on at once")
		f.BoolVar(&o.dryRun, "dry-run", false, "log each action in place of doing it; the events are completed all the same")
		c.RunE = func(c *cobra.Command, _ []string) error { return consume(c.Context(), env, f, kinds, o) }
		return c
	}
}

type consumeOptions struct {
	servicebus.ConsumerOptions
	action string
	dryRun bool
}

func consume(ctx context.Context, env program.Env, f *program.Flags, kinds actions.Kinds, o consumeOptions) error {
	settings, settingsErr := config.ReadSettings(env.Environ)
	connections := connect.New(settings)
	log := program.NewLog(env.Stderr, settings.LogLevel)
	kind, _ := kinds.Find(o.action)
	acting, actionErr := kind.New(actions.Options{
		Flag:     func(name string) string { return f.Lookup(name).Value.String() },
		Secret:   settings.WebhookSecret.Reveal(),
		Identity: func() (azcore.TokenCredential, error) { return connections.Credential(config.Identity{}) },
		Stdout:   console.Lines{Writer: env.Stdout},
		Log:      log,
	})
	for _, other := range kinds {
		for _, flag := range other.Flags {
			f.Mistake(other.Name != o.action && f.Changed(flag.Name), "--%s: needs --action %s; leave it out, or name that action", flag.Name, other.Name)
		}
	}
	f.Wrong(settingsErr, queueMistake(env), actionErr)
	if err := f.Mistakes(); err != nil {
		return err
	}
	o.Log = log
	consumer, err := connections.Consumer(settings.Events, o.ConsumerOptions)
	if err != nil {
		return program.Usage(err)
	}
	log.Info("consuming", "namespace", settings.Events.ServiceBus.Namespace, "queue", settings.Events.Path(), "action", o.action, "dryRun", o.dryRun, "version", env.Version)
	if kind.Caution != "" {
		log.Warn(kind.Caution, "action", o.action)
	}
	handler := &actions.Handler{Action: acting, Log: log, DryRun: o.dryRun}
	err = consumer.Run(ctx, handler.Handle)
	if ctx.Err() != nil {
		log.Info("consuming ends", "cause", context.Cause(ctx).Error())
	}
	if refusal, ok := errors.AsType[*servicebus.Refusal](err); ok && refusal.Kind == servicebus.WrongEntity {
		return fmt.Errorf("%w (FEEDSCALE_EVENTS=servicebus:%s/%s/Subscriptions/SUBSCRIPTION)", err, settings.Events.ServiceBus.Setting, settings.Events.Queue)
	}
	return err
}

// queueMistake reports that the settings name no queue.
func queueMistake(env program.Env) error {
	place, _ := config.Lookup(env.Environ)("FEEDSCALE_EVENTS")
	if place = strings.ToLower(strings.TrimSpace(place)); place == "" || place == "stdout:" {
		return errors.New("FEEDSCALE_EVENTS: names no queue to consume from; allowed are servicebus:SETTING/QUEUE and servicebus:SETTING/TOPIC/Subscriptions/NAME, where SETTING is the name of a setting with a Service Bus connection")
	}
	return nil
}
