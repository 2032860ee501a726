package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/containerapp"
	"github.com/feedscale/feedscale/pkg/actions/webhook"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// consumeFlags are the flags of consume.
type consumeFlags struct {
	action              string
	url                 string
	kubeconfig, context string
	armEndpoint         string
	sessions, dryRun    bool
	concurrency         int
}

// consume acts on the scale events of the queue until it is stopped.
func (p program) consume(ctx context.Context, args []string) int {
	f := p.flags("consume", "[--action stdout|webhook|kubernetes|containerapp] [flags]")
	var c consumeFlags
	f.StringVar(&c.action, "action", "stdout", "stdout (a line each), webhook (POST), kubernetes (scale subresource) or containerapp (replica bounds)")
	f.StringVar(&c.url, "url", "", "where webhook posts to; the setting FEEDSCALE_WEBHOOK_SECRET signs")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "the file that kubernetes takes the cluster from (default as kubectl, or the pod's service account)")
	f.StringVar(&c.context, "context", "", "the context of the kubeconfig (default its current one)")
	f.StringVar(&c.armEndpoint, "arm-endpoint", "", "Azure Resource Manager of containerapp, in a national cloud (default https://management.azure.com)")
	f.BoolVar(&c.sessions, "sessions", false, "the queue requires sessions")
	f.IntVar(&c.concurrency, "concurrency", 16, "processors that are acted on at once, 1 to 1024")
	f.BoolVar(&c.dryRun, "dry-run", false, "log what would be done instead of doing it; the events are completed all the same")
	if status, done := p.parse(f, args); done {
		return status
	}
	settings, settingsErr := config.ReadSettings(p.environ)
	w := wiring{identities: make(map[config.Identity]azcore.TokenCredential), settings: settings}
	log := slog.New(slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: settings.LogLevel, ReplaceAttr: utc}))
	action, actionErr := p.action(c, w, log)
	if err := errors.Join(settingsErr, p.queueMistake(), c.mistakes(f), actionErr); err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	}
	consumer, err := w.consumer(settings.Events, servicebus.ConsumerOptions{Sessions: c.sessions, Concurrency: c.concurrency, Log: log})
	if err != nil {
		return p.fail(exitUsage, err)
	}
	log.Info("consuming", "namespace", settings.Events.ServiceBus.Namespace, "queue", settings.Events.Queue, "action", c.action, "dryRun", c.dryRun, "version", buildVersion())
	if err := consumer.Run(ctx, follower{action: action, log: log, dryRun: c.dryRun}.handle); err != nil {
		return p.fail(exitIncomplete, err)
	}
	return exitOK
}

// queueMistake tells whether there is no queue to consume from.
func (p program) queueMistake() error {
	place, _ := config.Lookup(p.environ)("FEEDSCALE_EVENTS")
	if place = strings.ToLower(strings.TrimSpace(place)); place == "" || place == "stdout:" {
		return errors.New("FEEDSCALE_EVENTS: names no queue to consume from; allowed is servicebus:SETTING/QUEUE, SETTING naming a setting that holds a Service Bus connection")
	}
	return nil
}

// mistakes are those of the flags beside --action, whose own are found by
// whoever makes the action.
func (c consumeFlags) mistakes(f *flag.FlagSet) error {
	var mistakes []error
	if c.concurrency < 1 || c.concurrency > 1024 {
		mistakes = append(mistakes, fmt.Errorf("--concurrency: %d is not allowed; allowed are whole numbers from 1 to 1024", c.concurrency))
	}
	if c.armEndpoint != "" && !isServer(c.armEndpoint) {
		mistakes = append(mistakes, errors.New("--arm-endpoint: is not that of an Azure Resource Manager; allowed is https://HOST or https://HOST:PORT, such as https://management.usgovcloudapi.net"))
	}
	owner := map[string]string{"url": "webhook", "kubeconfig": "kubernetes", "context": "kubernetes", "arm-endpoint": "containerapp"}
	f.Visit(func(given *flag.Flag) {
		if action := owner[given.Name]; action != "" && action != c.action {
			mistakes = append(mistakes, fmt.Errorf("--%s: is of --action %s alone; leave it out, or give that action", given.Name, action))
		}
	})
	return errors.Join(mistakes...)
}

// isServer tells whether an address is https://HOST[:PORT] and nothing more.
func isServer(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || !strings.EqualFold("https://"+u.Host, strings.TrimSuffix(address, "/")) {
		return false
	}
	_, err = strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	return err == nil
}

// action makes the action that the flags ask for. It makes no request.
func (p program) action(c consumeFlags, w wiring, log *slog.Logger) (actions.Action, error) {
	switch c.action {
	case "stdout":
		return actions.NewStdout(p.stdout), nil
	case "webhook":
		return newWebhook(c.url, w.settings.WebhookSecret.Reveal())
	case "kubernetes":
		return newKubernetes(c.kubeconfig, c.context, log)
	case "containerapp":
		identity, err := w.credential(config.Identity{})
		if err != nil {
			return nil, err
		}
		return containerapp.New(identity, containerapp.Options{Endpoint: c.armEndpoint})
	}
	return nil, fmt.Errorf("--action: there is no action %q; allowed are stdout, webhook, kubernetes and containerapp", c.action)
}

// newWebhook makes the action that posts. Events are not signed without a secret.
func newWebhook(address, secret string) (actions.Action, error) {
	var o webhook.Options
	var secretErr error
	if secret != "" {
		if o.Key, secretErr = webhook.ParseSecret(secret); secretErr != nil {
			secretErr = fmt.Errorf("FEEDSCALE_WEBHOOK_SECRET: %w", secretErr)
		}
	}
	if address == "" {
		return nil, errors.Join(errors.New("--url: is missing; --action webhook needs the address to post to, as in --url https://HOST/PATH"), secretErr)
	}
	action, err := webhook.New(address, o)
	if err != nil {
		err = fmt.Errorf("--url: %w", err)
	}
	return action, errors.Join(err, secretErr)
}

// consumer makes the consumer of the queue. Nothing is connected yet.
func (w wiring) consumer(c config.Events, o servicebus.ConsumerOptions) (*servicebus.Consumer, error) {
	if !c.ServiceBus.UsesIdentity() {
		return servicebus.NewConsumer(c.ServiceBus.ConnectionString.Reveal(), c.Queue, o)
	}
	identity, err := w.credential(c.ServiceBus.Identity)
	if err != nil {
		return nil, err
	}
	return servicebus.NewConsumerWithIdentity(c.ServiceBus.Namespace, identity, c.Queue, o)
}

// follower has an action follow the events.
type follower struct {
	action actions.Action
	log    *slog.Logger
	dryRun bool
}

// handle is a servicebus.Handler. The consumer logs what fails.
func (f follower) handle(ctx context.Context, e events.ScaleEvent) error {
	log := f.log.With("processor", e.Processor, "sequence", e.Sequence, "desiredReplicas", e.DesiredReplicas)
	target, err := f.action.Target(e)
	switch {
	case err != nil && f.dryRun:
		log.Warn("would be dead-lettered", "error", err.Error())
		return nil
	case err != nil:
		return err
	case f.dryRun:
		log.Info("would act", "target", target)
		return nil
	}
	changed, err := f.action.Act(ctx, e)
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
