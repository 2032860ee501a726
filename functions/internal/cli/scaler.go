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
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state"
)

// NewScaler makes KEDA's external scaler. Its error is about the certificates. serve answers on a
// listener until ctx ends. It is a parameter of commands, since the deployed handler must not link
// gRPC.
type NewScaler func(o ScalerOptions) (serve func(ctx context.Context, l net.Listener) error, err error)

// ScalerOptions are the parameters of a scaler.
type ScalerOptions struct {
	config.Scaler
	Answers  ScalerAnswers
	Interval time.Duration // between two looks at the processor of a stream; 0 = Answers tell of each change
	Log      *slog.Logger
}

// ScalerAnswers are the answers of a scaler (package scaler, Source).
type ScalerAnswers interface {
	Replicas(ctx context.Context, name string) (int, error)
	Changed(name string) <-chan struct{}
}

const (
	// scalerAddress is the default of --listen.
	scalerAddress = "127.0.0.1:6000"
	// leastInterval keeps a mistyped --interval from flooding the API.
	leastInterval = 100 * time.Millisecond
)

// Scaler serves KEDA's external scaler from the decisions of another process.
func Scaler(scaler NewScaler) program.Command {
	return func(env program.Env) *cobra.Command {
		c := &cobra.Command{
			Use: "scaler", Short: "be KEDA's external scaler for a feedscale that runs elsewhere", GroupID: program.GroupAct,
			Example:     "feedscale scaler --url https://APP.azurewebsites.net --listen :6000",
			Annotations: program.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_SCALER_LISTEN", "FEEDSCALE_STATE", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_LOG_LEVEL"),
		}
		f := program.FlagsOf(c)
		o := scalerOptions{interval: time.Second}
		o.source.flags(f)
		f.Text(&o.listen, "listen", "host:port", "where KEDA asks; setting FEEDSCALE_SCALER_LISTEN (default "+scalerAddress+")")
		f.Text(&o.events, "events", "place", "servicebus:SETTING/TOPIC/Subscriptions/NAME, a subscription for this scaler alone; its events tell KEDA of a change before the interval is over")
		program.Number(f, &o.interval, "interval", program.Durations, leastInterval, time.Hour, "how often to look at each processor that KEDA streams")
		c.RunE = func(c *cobra.Command, _ []string) error { return serveScaler(c.Context(), env, f, o, scaler) }
		return c
	}
}

type scalerOptions struct {
	source
	listen, events string
	interval       time.Duration
}

func serveScaler(ctx context.Context, env program.Env, f *program.Flags, o scalerOptions, scaler NewScaler) error {
	_, _, err := net.SplitHostPort(o.listen)
	f.Mistake(o.listen != "" && err != nil, "--listen is %q; allowed is host:port, such as %s, or :6000 for every interface", o.listen, scalerAddress)
	o.source.check(f)
	var own config.Events
	if o.events != "" {
		own, err = ownSubscription(env, o.events)
		f.Mistake(err != nil, "--events: %v", err)
	}
	if err := f.Mistakes(); err != nil {
		return err
	}
	settings, api, err := o.open(env)
	if err != nil {
		return err
	}
	name, answers := "the state", ScalerAnswers(api)
	if api != nil {
		name = api.Address()
	} else {
		a, c, err := o.openState(env)
		if err != nil {
			return err
		}
		defer a.Close()
		settings, answers = c.Settings, a.Answers()
	}
	log := program.NewLog(env.Stderr, settings.LogLevel)
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
	log.Info("answering scalers", "asks", name, "interval", o.interval.String(), "version", env.Version)
	return serve(ctx, l)
}

// openState opens the state by the configuration of the process that writes it.
func (o scalerOptions) openState(env program.Env) (*app.App, config.Config, error) {
	c, err := readConfig(env, o.file)
	if err != nil {
		return nil, c, err
	}
	if c.Settings.State.BoltPath != "" {
		return nil, c, program.Usage(fmt.Errorf("the state in FEEDSCALE_STATE is a file, which one process alone can open: set FEEDSCALE_SCALER_LISTEN for feedscale run, or ask it with --url http://%s", c.Settings.Listen))
	}
	wiring := options(env, program.NewLog(env.Stderr, c.Settings.LogLevel), console.Lines{Writer: env.Stdout})
	wiring.ReadOnly = true
	a, err := misused(app.New(c, wiring))
	return a, c, err
}

// listenScaler takes the address of KEDA's external scaler.
func listenScaler(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, program.Usage(fmt.Errorf("cannot listen on %s, set FEEDSCALE_SCALER_LISTEN to another address: %w", address, err))
	}
	return l, nil
}

// noticedAnswers are answers with the changes that events tell of.
type noticedAnswers struct {
	ScalerAnswers
	notices *state.Notices
}

func (n noticedAnswers) Changed(name string) <-chan struct{} { return n.notices.Changed(name) }

// ownSubscription reads the flag --events. A queue is refused: its events are for another consumer.
func ownSubscription(env program.Env, text string) (config.Events, error) {
	e, err := config.ParseEvents(config.Lookup(env.Environ), text)
	if err == nil && e.Subscription == "" {
		err = errors.New("it needs a subscription of its own; allowed is servicebus:SETTING/TOPIC/Subscriptions/NAME")
	}
	return e, err
}

// tellByEvents reports a change for each event of a subscription, until ctx ends.
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
