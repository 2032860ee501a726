package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/state"
)

// NewScaler makes KEDA's external scaler. Its error is about the certificates. interval is the time
// between two looks at the processor of a stream; 0 = the record tells of each change. serve answers
// on a listener until ctx ends. It is a parameter of commands, since the deployed handler must not
// link gRPC.
type NewScaler func(s config.Scaler, record app.Record, interval time.Duration, log *slog.Logger) (serve func(context.Context, net.Listener) error, err error)

const (
	// scalerAddress is the default of --listen.
	scalerAddress = "127.0.0.1:6000"
	scalerSetting = "FEEDSCALE_SCALER_LISTEN"
	// leastInterval keeps a mistyped --interval from flooding the API.
	leastInterval = 100 * time.Millisecond
)

// Scaler serves KEDA's external scaler from the decisions of another process.
func Scaler(scaler NewScaler) program.Command {
	return func(env program.Env, f *program.Flags) {
		f.Use, f.Short, f.GroupID = "scaler", "be KEDA's external scaler for a feedscale that runs elsewhere", program.GroupAct
		f.Example = "feedscale scaler --url https://APP.azurewebsites.net --listen :6000"
		f.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_SCALER_LISTEN", "FEEDSCALE_STATE", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_LOG_LEVEL")
		o := scalerOptions{interval: time.Second}
		var events string
		o.source.flags(f, env)
		f.Text(&o.listen, "listen", "host:port", "where KEDA asks; setting FEEDSCALE_SCALER_LISTEN (default "+scalerAddress+")")
		f.Text(&events, "events", "place", "servicebus:SETTING/TOPIC/Subscriptions/NAME, a subscription for this scaler alone; its events tell KEDA of a change before the interval is over")
		program.Number(f, &o.interval, "interval", program.Durations, leastInterval, time.Hour, "how often to look at each processor that KEDA streams")
		f.Check(func([]string) {
			_, _, err := net.SplitHostPort(o.listen)
			f.Mistake(o.listen != "" && err != nil, "--listen is %q; allowed is host:port, such as %s, or :6000 for every interface", o.listen, scalerAddress)
			if events == "" {
				return
			}
			o.events, err = config.ParseEvents(config.Lookup(env.Environ), events)
			f.Mistake(err != nil, "--events: %v", err)
			f.Mistake(err == nil && o.events.Subscription == "", // the events of a queue are for another consumer
				"--events: it needs a subscription of its own; allowed is servicebus:SETTING/TOPIC/Subscriptions/NAME")
		})
		f.Run(func(ctx context.Context, _ []string) error { return serveScaler(ctx, env, &o, scaler) })
	}
}

type scalerOptions struct {
	source
	listen   string
	events   config.Events // of a subscription, or zero
	interval time.Duration
}

func serveScaler(ctx context.Context, env program.Env, o *scalerOptions, scaler NewScaler) error {
	settings, err := readSettings(env)
	if err != nil {
		return err
	}
	address := o.address(settings)
	if address == "" && settings.State.BoltPath != "" {
		return program.Usage(fmt.Errorf("the state in FEEDSCALE_STATE is a file, which one process alone can open: set FEEDSCALE_SCALER_LISTEN for feedscale run, or ask it with --url http://%s", settings.Listen))
	}
	log := program.NewLog(env.Stderr, settings.LogLevel)
	record, end, err := o.record(env, log)
	if err != nil {
		return program.Usage(err)
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.events.Subscription != "" {
		consumer, err := misused(connect.New(settings).Consumer(o.events, servicebus.ConsumerOptions{Log: log}))
		if err != nil {
			return err
		}
		record = tellByEvents(ctx, consumer, o.events.Path(), record, log)
	}
	serve, err := misused(scaler(settings.Scaler, record, o.interval, log))
	if err != nil {
		return err
	}
	l, err := misused(app.ListenAt(cmp.Or(o.listen, settings.Scaler.Listen, scalerAddress), scalerSetting))
	if err != nil {
		return err
	}
	defer l.Close()
	log.Info("answering scalers", "asks", cmp.Or(address, "the state"), "interval", o.interval.String(), "version", env.Version)
	return serve(ctx, l)
}

// noticedRecord is a record with the changes that events tell of.
type noticedRecord struct {
	app.Record
	*state.Notices
}

// Changed is that of the notices.
func (n noticedRecord) Changed(name string) <-chan struct{} { return n.Notices.Changed(name) }

// tellByEvents reports a change for each event of a subscription, until ctx ends.
func tellByEvents(ctx context.Context, consumer *servicebus.Consumer, path string, record app.Record, log *slog.Logger) app.Record {
	n := noticedRecord{record, new(state.Notices)}
	go func() {
		err := consumer.Run(ctx, func(_ context.Context, event events.ScaleEvent) error {
			n.Tell(event.Data.Subject())
			return nil
		})
		if ctx.Err() == nil {
			log.Warn("events no longer say what has changed; the interval goes on", "entity", path, "error", err.Error())
		}
	}()
	return n
}
