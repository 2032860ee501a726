package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
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
		url := f.String("url", "", "the feedscale whose HTTP API is asked, such as https://APP.azurewebsites.net; setting FEEDSCALE_URL, with the function key in FEEDSCALE_API_KEY. Without it the state in FEEDSCALE_STATE is read")
		file := addConfig(c)
		listen := f.String("listen", "", "host:port to answer KEDA on; setting FEEDSCALE_SCALER_LISTEN (default "+scalerAddress+")")
		told := f.String("events", "", "servicebus:SETTING/TOPIC/Subscriptions/NAME, a subscription of its own: its events say at once what has changed, beside the interval")
		interval := f.Duration("interval", time.Second, "how often what is streamed is looked at, for each processor")
		c.RunE = func(c *cobra.Command, _ []string) error {
			return serveScaler(c.Context(), env, *url, *file, *listen, *told, *interval, scaler)
		}
		return c
	}
}

func serveScaler(ctx context.Context, env Env, url, file, listen, told string, interval time.Duration, scaler NewScaler) error {
	var mistakes flagMistakes
	if interval < leastInterval {
		mistakes.add("--interval is %s; allowed are durations from %s", interval, leastInterval)
	}
	if _, _, err := net.SplitHostPort(listen); listen != "" && err != nil {
		mistakes.add("--listen is %q; allowed is host:port, such as %s, or :6000 for every interface", listen, scalerAddress)
	}
	if url != "" && file != "" {
		mistakes.add("--config: is of no use with --url; leave one of the two out")
	}
	var own *config.Events
	if told != "" {
		e, err := ownSubscription(env, told)
		if err != nil {
			mistakes.add("%v", err)
		}
		own = &e
	}
	if err := mistakes.refuse(env.Stderr, "scaler"); err != nil {
		return err
	}
	if url == "" && env.Getenv("FEEDSCALE_URL") == "" {
		return scaleByState(ctx, env, file, listen, interval, own, scaler)
	}
	settings, err := settings(env)
	if err != nil {
		return err
	}
	if url == "" {
		url = settings.URL
	}
	api, err := connect.NewAPI(url, settings.APIKey.Reveal())
	if err != nil {
		return Usage(fmt.Errorf("--url, or FEEDSCALE_URL: %w", err))
	}
	return answerScalers(ctx, env, settings, listen, api.Address(), ScalerOptions{Answers: api, Interval: interval}, own, scaler)
}

// scaleByState answers from the state, by the configuration of who writes it.
func scaleByState(ctx context.Context, env Env, file, listen string, interval time.Duration, own *config.Events, scaler NewScaler) error {
	c, err := configure(env, file)
	if err != nil {
		return err
	}
	if c.Settings.State.BoltPath != "" {
		return Usage(fmt.Errorf("the state in FEEDSCALE_STATE is a file, which is for one process: set FEEDSCALE_SCALER_LISTEN in that of feedscale run, or ask it with --url http://%s", c.Settings.Listen))
	}
	a, err := app.New(c, app.Options{Log: newLog(env.Stderr, c.Settings.LogLevel), EventLines: console.Lines{Writer: env.Stdout}, ReadOnly: true, Version: env.Version, Now: env.Now})
	if err != nil {
		return Usage(err)
	}
	defer a.Close()
	return answerScalers(ctx, env, c.Settings, listen, "the state", ScalerOptions{Answers: a.Answers(), Interval: interval}, own, scaler)
}

// answerScalers answers until ctx ends. listen wins over the setting.
func answerScalers(ctx context.Context, env Env, s config.Settings, listen, source string, o ScalerOptions, own *config.Events, scaler NewScaler) error {
	o.Scaler, o.Log = s.Scaler, newLog(env.Stderr, s.LogLevel)
	switch {
	case listen != "":
		o.Listen = listen
	case o.Listen == "":
		o.Listen = scalerAddress
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if own != nil {
		var err error
		if o.Answers, err = tellByEvents(ctx, s, *own, o.Answers, o.Log); err != nil {
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
	o.Log.Info("answering scalers", "asks", source, "interval", o.Interval.String(), "version", env.Version)
	return serve(ctx, l)
}

// listenScaler takes the address of KEDA's external scaler.
func listenScaler(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, Usage(fmt.Errorf("cannot listen on %s, set FEEDSCALE_SCALER_LISTEN to another address: %w", address, err))
	}
	return l, nil
}
