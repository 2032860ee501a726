package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// Run polls by its own timer and answers HTTP, without a Functions host. If a setting asks for it,
// it also serves KEDA's external scaler. The scaler is a parameter, since the deployed handler must
// not link gRPC.
func Run(scaler NewScaler) program.Command {
	return func(env program.Env, f *program.Flags) {
		f.Use, f.Short, f.GroupID = "run", "poll and answer HTTP without a Functions host", program.GroupWork
		f.Example = "feedscale run\nFEEDSCALE_TIMER_SCHEDULE='0 * * * * *' feedscale run --config processors.yaml\nfeedscale run --plain > events.jsonl"
		f.Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_TIMER_SCHEDULE", "FEEDSCALE_LISTEN", "FEEDSCALE_API_KEY", "FEEDSCALE_HEALTH_LISTEN", "FEEDSCALE_SCALER_LISTEN", "FEEDSCALE_RU_BUDGET", "FEEDSCALE_TICK_TIMEOUT", "FEEDSCALE_LOG_LEVEL", "NO_COLOR")
		r := runner{env: env, scaler: scaler}
		configFlag(f, env, &r.file)
		plain := f.Bool("plain", false, "print events and the log as lines, also on a terminal")
		f.Run(func(ctx context.Context, _ []string) error {
			r.screen = program.NewScreen(env, *plain)
			return r.run(ctx)
		})
	}
}

// runner is a process of feedscale run.
type runner struct {
	env    program.Env
	file   string // flag --config
	scaler NewScaler
	screen *program.Screen
	log    *slog.Logger
}

// run serves, and starts again whenever the processors file changes. Settings stay those of the
// start.
func (r *runner) run(ctx context.Context) error {
	c, err := readConfig(r.env, r.file)
	if err != nil {
		return err
	}
	r.log = r.screen.Log(c.Settings.LogLevel)
	if r.screen.Live {
		if r.env.Getenv("FEEDSCALE_LOG_LEVEL") == "" { // the picture shows the rest
			r.log = r.screen.Log(slog.LevelWarn)
		}
		defer r.screen.Close()
	}
	reloads, stop := newReloads(r.env, r.file, c.Source, r.log)
	defer stop()
	var before *config.Config // one that worked, while c was not tried yet
	for {
		serving, end := context.WithCancel(ctx)
		var next *config.Config
		var watching sync.WaitGroup
		watching.Go(func() {
			next = reloads.next(serving)
			end()
		})
		err := r.serve(serving, &c)
		end()
		watching.Wait()
		failure, _ := errors.AsType[program.Failure](err)
		switch {
		case before != nil && failure.Status == program.StatusUsage:
			r.log.Error("the processors file cannot be run: what was read before goes on", "source", c.Source, "error", failure.Error())
			c, before = *before, nil
		case err != nil || next == nil || ctx.Err() != nil:
			return err
		default:
			next.Settings = c.Settings
			c, before = *next, new(c)
		}
	}
}

// serve polls and answers until ctx ends. It writes the addresses that it listens on into c, so
// that a restart keeps them.
func (r *runner) serve(ctx context.Context, c *config.Config) error {
	var listener net.Listener
	if c.Settings.Scaler.Listen != "" {
		var err error
		if listener, err = listenScaler(c.Settings.Scaler.Listen); err != nil {
			return err
		}
		defer listener.Close()
		c.Settings.Scaler.Listen = listener.Addr().String()
	}
	events := io.Writer(console.Lines{Writer: r.env.Stdout})
	if r.screen.Live {
		events = r.screen
	}
	h, err := misused(app.Listen(*c, options(r.env, r.log, events)))
	if err != nil {
		return err
	}
	defer h.Close()
	c.Settings.Listen = strings.TrimPrefix(h.URL(), "http://")
	tick := func(ctx context.Context) error { return h.TickForever(ctx, nil) }
	if r.screen.Live {
		r.show(c.Settings)
		tick = func(ctx context.Context) error { return r.screen.Follow(ctx, h.TickForever) }
	}
	if listener == nil {
		return h.Serve(ctx, tick)
	}
	serve, err := misused(r.scaler(c.Settings.Scaler, h.Answers(), 0, r.log))
	if err != nil {
		return err
	}
	return h.Serve(ctx, func(ctx context.Context) error {
		both, ctx := errgroup.WithContext(ctx)
		both.Go(func() error { return serve(ctx, listener) })
		both.Go(func() error { return tick(ctx) })
		return both.Wait()
	})
}

// show begins the picture: the addresses, then every processor, the worst first.
func (r *runner) show(s config.Settings) {
	scaler := ""
	if s.Scaler.Listen != "" {
		scaler = "  KEDA at " + s.Scaler.Listen
	}
	started := r.env.Now()
	r.screen.Show(func(polled, groups []state.State, style console.Style) (lines, foot []string) {
		since := r.env.Now().Sub(started).Round(time.Second)
		head := style.Cut(fmt.Sprintf("feedscale run  %s  http://%s/api/dashboard%s", since, s.Listen, scaler))
		polled = console.Arrange(console.Listing{Sort: "status"}, polled, report.New)
		table := program.Table(console.ProcessorRows(polled, groups, false), style)
		return append([]string{style.Paint(head, console.Bold), ""}, table...), nil
	})
}
