package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state"
)

// NewScaler makes KEDA's external scaler. Its error says what is wrong with the certificates; serve
// answers on a listener until ctx ends. Commands are handed one, since the deployed handler must not
// link gRPC.
type NewScaler func(o ScalerOptions) (serve func(ctx context.Context, l net.Listener) error, err error)

// ScalerOptions are what a scaler needs.
type ScalerOptions struct {
	config.Scaler
	Answers  ScalerAnswers
	Interval time.Duration // between two looks at what a stream is about; 0 = Answers say when
	Log      *slog.Logger
}

// ScalerAnswers are what a scaler tells (package scaler, Source).
type ScalerAnswers interface {
	Replicas(ctx context.Context, name string) (int, error)
	Changed(name string) <-chan struct{}
}

const (
	// scalerAddress is where the command listens unless it is told otherwise.
	scalerAddress = "127.0.0.1:6000"
	// leastInterval keeps a mistyped interval from flooding what is asked.
	leastInterval = 100 * time.Millisecond
)

// Scaler is KEDA's external scaler over what another process decides.
func Scaler(scaler NewScaler) Command {
	return func(env Env) *cobra.Command {
		c := &cobra.Command{
			Use: "scaler", Short: "be KEDA's external scaler for a feedscale that runs elsewhere", GroupID: GroupAct,
			Example:     "feedscale scaler --url https://APP.azurewebsites.net --listen :6000",
			Annotations: Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_SCALER_LISTEN", "FEEDSCALE_STATE", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_LOG_LEVEL"),
		}
		f := flagsOf(c)
		o := scalerOptions{interval: time.Second}
		o.source.flags(f)
		f.text(&o.listen, "listen", "host:port", "where KEDA is answered; setting FEEDSCALE_SCALER_LISTEN (default "+scalerAddress+")")
		f.text(&o.events, "events", "place", "servicebus:SETTING/TOPIC/Subscriptions/NAME, a subscription of its own: its events say at once what has changed, beside the interval")
		number(f, &o.interval, "interval", durations, leastInterval, time.Hour, "how often what is streamed is looked at, for each processor")
		c.RunE = func(c *cobra.Command, _ []string) error { return serveScaler(c.Context(), env, f, o, scaler) }
		return c
	}
}

type scalerOptions struct {
	source
	listen, events string
	interval       time.Duration
}

func serveScaler(ctx context.Context, env Env, f *flags, o scalerOptions, scaler NewScaler) error {
	_, _, err := net.SplitHostPort(o.listen)
	f.mistake(o.listen != "" && err != nil, "--listen is %q; allowed is host:port, such as %s, or :6000 for every interface", o.listen, scalerAddress)
	o.source.check(f)
	var own config.Events
	if o.events != "" {
		own, err = ownSubscription(env, o.events)
		f.mistake(err != nil, "--events: %v", err)
	}
	if err := f.mistakes(); err != nil {
		return err
	}
	asked, err := o.open(env)
	if err != nil {
		return err
	}
	defer asked.close()
	settings, answers := asked.settings, asked.answers
	log := newLog(env.Stderr, settings.LogLevel)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if own.Subscription != "" {
		if answers, err = tellByEvents(ctx, settings, own, answers, log); err != nil {
			return err
		}
	}
	serve, err := misused(scaler(ScalerOptions{Scaler: settings.Scaler, Answers: answers, Interval: o.interval, Log: log}))
	if err != nil {
		return err
	}
	l, err := listenScaler(cmp.Or(o.listen, settings.Scaler.Listen, scalerAddress))
	if err != nil {
		return err
	}
	defer l.Close()
	log.Info("answering scalers", "asks", asked.name, "interval", o.interval.String(), "version", env.Version)
	return serve(ctx, l)
}

// scalerSource is what the scaler asks.
type scalerSource struct {
	name     string
	answers  ScalerAnswers
	settings config.Settings
	close    func()
}

// open opens an API or, without its address, the state, by the configuration of the process that writes it.
func (o scalerOptions) open(env Env) (none scalerSource, err error) {
	s, err := readSettings(env)
	if err != nil {
		return none, err
	}
	if api, err := o.api(s); err != nil {
		return none, err
	} else if api != nil {
		return scalerSource{api.Address(), api, s, func() {}}, nil
	}
	c, err := readConfig(env, o.file)
	if err != nil {
		return none, err
	}
	if c.Settings.State.BoltPath != "" {
		return none, Usage(fmt.Errorf("the state in FEEDSCALE_STATE is a file, which is for one process: set FEEDSCALE_SCALER_LISTEN in that of feedscale run, or ask it with --url http://%s", c.Settings.Listen))
	}
	a, err := misused(app.New(c, app.Options{
		Log: newLog(env.Stderr, c.Settings.LogLevel), EventLines: console.Lines{Writer: env.Stdout},
		ReadOnly: true, Version: env.Version, Now: env.Now,
	}))
	if err != nil {
		return none, err
	}
	return scalerSource{"the state", a.Answers(), c.Settings, a.Close}, nil
}

// listenScaler takes the address of KEDA's external scaler.
func listenScaler(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, Usage(fmt.Errorf("cannot listen on %s, set FEEDSCALE_SCALER_LISTEN to another address: %w", address, err))
	}
	return l, nil
}

// noticedAnswers are answers that an event says when to ask for again, and not the interval alone.
type noticedAnswers struct {
	ScalerAnswers
	notices *state.Notices
}

func (n noticedAnswers) Changed(name string) <-chan struct{} { return n.notices.Changed(name) }

// ownSubscription reads the flag --events. A queue is not allowed: its events are somebody else's.
func ownSubscription(env Env, text string) (config.Events, error) {
	e, err := config.ParseEvents(config.Lookup(env.Environ), text)
	if err == nil && e.Subscription == "" {
		err = errors.New("takes the events of a subscription of its own; allowed is servicebus:SETTING/TOPIC/Subscriptions/NAME")
	}
	return e, err
}

// tellByEvents has the events of a subscription tell what has changed, until ctx ends. Without events the
// interval goes on.
func tellByEvents(ctx context.Context, s config.Settings, e config.Events, answers ScalerAnswers, log *slog.Logger) (ScalerAnswers, error) {
	consumer, err := misused(connect.New(s).Consumer(e, servicebus.ConsumerOptions{Log: log}))
	if err != nil {
		return nil, err
	}
	n := noticedAnswers{answers, new(state.Notices)}
	go func() {
		err := consumer.Run(ctx, func(_ context.Context, event events.ScaleEvent) error {
			n.notices.Tell(event.Data.Subject())
			return nil
		})
		if ctx.Err() == nil {
			log.Warn("events no longer say what has changed; the interval goes on", "entity", e.Path(), "error", err.Error())
		}
	}()
	return n, nil
}
