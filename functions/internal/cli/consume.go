package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
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
	return func(env program.Env, f *program.Flags) {
		f.Use, f.Short, f.GroupID = "consume", "act on the scale events of a queue or subscription", program.GroupAct
		f.Example = "FEEDSCALE_EVENTS=servicebus:SERVICEBUS/scale-events feedscale consume --action kubernetes\nFEEDSCALE_EVENTS=servicebus:SERVICEBUS/decisions/Subscriptions/mine feedscale consume | jq .data.desiredReplicas"
		f.Settings("FEEDSCALE_EVENTS", "FEEDSCALE_WEBHOOK_SECRET", "FEEDSCALE_LOG_LEVEL")
		action := kinds[0].Name
		o := servicebus.ConsumerOptions{Concurrency: 16}
		f.Choice(&action, "action", "", "way", kinds.Summary(), kinds.Names()...)
		for _, kind := range kinds {
			for _, own := range kind.Flags {
				f.String(own.Name, "", own.Usage)
			}
		}
		f.BoolVar(&o.Sessions, "sessions", false, "the queue or subscription requires sessions")
		program.Number(f, &o.Concurrency, "concurrency", program.WholeNumbers, 1, maxConsumers, "how many processors to act on at once")
		dryRun := f.Bool("dry-run", false, "log each action in place of doing it; the events are completed all the same")
		var settings config.Settings
		var connections *connect.Connections
		var acting actions.Handler
		f.Check(func([]string) {
			var err error
			settings, err = config.ReadSettings(env.Environ)
			f.Wrong(err)
			place := strings.ToLower(strings.TrimSpace(env.Getenv("FEEDSCALE_EVENTS")))
			f.Mistake(slices.Contains([]string{"", "stdout:"}, place), "FEEDSCALE_EVENTS: names no queue to consume from; allowed are servicebus:SETTING/QUEUE "+
				"and servicebus:SETTING/TOPIC/Subscriptions/NAME, where SETTING is the name of a setting with a Service Bus connection")
			connections = connect.New(settings)
			o.Log = program.NewLog(env.Stderr, settings.LogLevel)
			kind := kinds.Find(action)
			acting = actions.Handler{Log: o.Log, DryRun: *dryRun}
			acting.Action, err = kind.New(actions.Options{
				Flag:     func(name string) string { return f.Lookup(name).Value.String() },
				Secret:   settings.WebhookSecret.Reveal(),
				Identity: func() (azcore.TokenCredential, error) { return connections.Credential(config.Identity{}) },
				Stdout:   console.Lines{Writer: env.Stdout},
				Log:      o.Log,
			})
			f.Wrong(err)
			for _, other := range kinds {
				for _, flag := range other.Flags {
					f.Mistake(other.Name != action && f.Changed(flag.Name), "--%s: needs --action %s; leave it out, or name that action", flag.Name, other.Name)
				}
			}
		})
		f.Run(func(ctx context.Context, _ []string) error {
			consumer, err := misused(connections.Consumer(settings.Events, o))
			if err != nil {
				return err
			}
			o.Log.Info("consuming", "namespace", settings.Events.ServiceBus.Namespace, "queue", settings.Events.Path(), "action", action, "dryRun", *dryRun, "version", env.Version)
			if caution := kinds.Find(action).Caution; caution != "" {
				o.Log.Warn(caution, "action", action)
			}
			err = consumer.Run(ctx, acting.Handle)
			if ctx.Err() != nil {
				o.Log.Info("consuming ends", "cause", context.Cause(ctx).Error())
			}
			return err
		})
	}
}
