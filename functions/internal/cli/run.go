package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
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
	hangup chan os.Signal
	seen   string // the look of the processors file when it was read last
}

// reloadCheck is the interval between two looks at the processors file. Notifications are not
// enough: a mounted file sends none.
const reloadCheck = time.Second

// run serves, and starts again whenever the processors file changes. Settings stay those of the
// start.
func (r *runner) run(ctx context.Context) error {
	c, err := readConfig(r.env, r.file)
	if err != nil {
		return err
	}
	defer r.screen.Close()
	level := c.Settings.LogLevel
	if r.screen.Live && r.env.Getenv("FEEDSCALE_LOG_LEVEL") == "" { // the picture shows the rest
		level = slog.LevelWarn
	}
	r.log = r.screen.Log(level)
	r.hangup = make(chan os.Signal, 1)
	if !r.env.Person() { // a terminal sends SIGHUP when it closes, to end its processes
		signal.Notify(r.hangup, syscall.SIGHUP)
		defer signal.Stop(r.hangup)
	}
	r.seen = look(c.Source) // FEEDSCALE_PROCESSORS is no file, and never changes
	for {
		next, err := r.serve(ctx, &c)
		if err != nil || next == nil || ctx.Err() != nil {
			return err
		}
		next.Settings = c.Settings
		c = *next
	}
}

// serve polls and answers until ctx ends, or the processors file changes, which is next then. It writes
// the addresses that it listens on into c, so that a restart keeps them.
func (r *runner) serve(ctx context.Context, c *config.Config) (next *config.Config, err error) {
	h, err := misused(app.Listen(*c, options(r.env, r.log, r.screen)))
	if err != nil {
		return nil, err
	}
	defer h.Close()
	c.Settings.Listen = strings.TrimPrefix(h.URL(), "http://")
	ctx, end := context.WithCancel(ctx)
	defer end()
	var took func(report.Tick)
	work := []func(context.Context) error{
		func(ctx context.Context) error { return h.TickForever(ctx, took) },
		func(ctx context.Context) error {
			next = r.changed(ctx, c.Source)
			end()
			return nil
		},
	}
	if c.Settings.Scaler.Listen != "" {
		listener, err := misused(app.ListenAt(c.Settings.Scaler.Listen, scalerSetting))
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		c.Settings.Scaler.Listen = listener.Addr().String()
		scale, err := misused(r.scaler(c.Settings.Scaler, h, 0, r.log))
		if err != nil {
			return nil, err
		}
		work = append(work, func(ctx context.Context) error { return scale(ctx, listener) })
	}
	if r.screen.Live {
		took = r.screen.Tick
		r.show(c.Settings)
	}
	err = h.Serve(ctx, func(ctx context.Context) error {
		all, ctx := errgroup.WithContext(ctx)
		for _, one := range work {
			all.Go(func() error { return one(ctx) })
		}
		return all.Wait()
	})
	return next, err
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

// changed waits for a change of the file, or SIGHUP, and returns the new configuration; nil when
// ctx ends. It logs a file with mistakes once, and waits on.
func (r *runner) changed(ctx context.Context, file string) *config.Config {
	for before := r.seen; ; {
		asked := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangup:
			asked = true
		case <-time.After(reloadCheck):
		}
		now := look(file)
		// A file is read after it stayed the same between two looks: before, it may not be whole.
		settled := now == before
		before = now
		if !asked && (!settled || now == r.seen) {
			continue
		}
		r.seen = now
		c, err := readConfig(r.env, r.file)
		if err == nil {
			err = r.wires(c)
		}
		if err == nil {
			r.log.Info("the processors file is read again", "source", file, "processors", len(c.Processors))
			return &c
		}
		r.log.Error("the processors file has mistakes: what was read before goes on", "source", file, "mistakes", strings.Split(err.Error(), "\n"))
	}
}

// wires reports why a configuration cannot be run, though it has no mistake.
func (r *runner) wires(c config.Config) error {
	a, err := app.New(c, options(r.env, unlogged, io.Discard), state.Empty{})
	if err == nil {
		a.Close()
	}
	return err
}

// look is a text that changes with a file; "" if there is none.
func look(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime())
}
