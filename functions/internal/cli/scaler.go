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
			Use: "scaler", Short: "be KEDA's external scaler for a feedscale that runs elsewhere",
			Example:     "feedscale scaler --url https://APP.azurewebsites.net --listen :6000",
			Annotations: Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_SCALER_LISTEN", "FEEDSCALE_STATE", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_LOG_LEVEL"),
		}
		f := c.Flags()
		o := scalerFlags{url: addURL(c), file: addConfig(c)}
		o.listen = f.String("listen", "", "host:port to answer KEDA on; setting FEEDSCALE_SCALER_LISTEN (default "+scalerAddress+")")
		o.events = f.String("events", "", "servicebus:SETTING/TOPIC/Subscriptions/NAME, a subscription of its own: its events say at once what has changed, beside the interval")
		o.interval = f.Duration("interval", time.Second, "how often what is streamed is looked at, for each processor")
		c.RunE = func(c *cobra.Command, _ []string) error { return serveScaler(c.Context(), env, o, scaler) }
		return c
	}
}

type scalerFlags struct {
	url, file, listen, events *string
	interval                  *time.Duration
}

func serveScaler(ctx context.Context, env Env, f scalerFlags, scaler NewScaler) error {
	var mistakes flagMistakes
	if *f.interval < leastInterval {
		mistakes.add("--interval is %s; allowed are durations from %s", f.interval, leastInterval)
	}
	if _, _, err := net.SplitHostPort(*f.listen); *f.listen != "" && err != nil {
		mistakes.add("--listen is %q; allowed is host:port, such as %s, or :6000 for every interface", *f.listen, scalerAddress)
	}
	mistakes.eitherURL(*f.url, *f.file)
	var own config.Events
	if *f.events != "" {
		var err error
		if own, err = ownSubscription(env, *f.events); err != nil {
			mistakes.add("--events: %v", err)
		}
	}
	if err := mistakes.refuse(env.Stderr, "scaler"); err != nil {
		return err
	}
	source, err := openScalerSource(env, f)
	if err != nil {
		return err
	}
	defer source.close()
	o := ScalerOptions{
		Scaler: source.settings.Scaler, Answers: source.answers, Interval: *f.interval,
		Log: newLog(env.Stderr, source.settings.LogLevel),
	}
	o.Listen = cmp.Or(*f.listen, o.Listen, scalerAddress)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if own.Subscription != "" {
		if o.Answers, err = tellByEvents(ctx, source.settings, own, o.Answers, o.Log); err != nil {
			return err
		}
	}
	serve, err := scaler(o)
	if err != nil {
		return Usage(err)
	}
	l, err := listenScaler(o.Listen)
	if err != nil {
		return err
	}
	defer l.Close()
	o.Log.Info("answering scalers", "asks", source.name, "interval", o.Interval.String(), "version", env.Version)
	return serve(ctx, l)
}

// scalerSource is what the scaler asks.
type scalerSource struct {
	name     string
	answers  ScalerAnswers
	settings config.Settings
	close    func()
}

// openScalerSource opens an API or, without its address, the state, by the configuration of the process
// that writes it.
func openScalerSource(env Env, f scalerFlags) (none scalerSource, err error) {
	if *f.url != "" || env.Getenv("FEEDSCALE_URL") != "" {
		s, err := settings(env)
		if err != nil {
			return none, err
		}
		api, err := askable(cmp.Or(*f.url, s.URL), s)
		if err != nil {
			return none, err
		}
		return scalerSource{api.Address(), api, s, func() {}}, nil
	}
	c, err := configure(env, *f.file)
	if err != nil {
		return none, err
	}
	if c.Settings.State.BoltPath != "" {
		return none, Usage(fmt.Errorf("the state in FEEDSCALE_STATE is a file, which is for one process: set FEEDSCALE_SCALER_LISTEN in that of feedscale run, or ask it with --url http://%s", c.Settings.Listen))
	}
	a, err := app.New(c, app.Options{
		Log: newLog(env.Stderr, c.Settings.LogLevel), EventLines: console.Lines{Writer: env.Stdout},
		ReadOnly: true, Version: env.Version, Now: env.Now,
	})
	if err != nil {
		return none, Usage(err)
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

// toldByEvents are answers that an event says when to ask for again, and not the interval alone.
type toldByEvents struct {
	ScalerAnswers
	told *state.Notices
}

func (t toldByEvents) Changed(name string) <-chan struct{} { return t.told.Changed(name) }

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
