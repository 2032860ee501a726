package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/config"
)

// Serve is the custom handler: the host starts it, calls it for each tick and each request, and ends
// it with SIGKILL. Its log goes to standard output, since the host takes every line of standard error
// for an error.
func Serve() Command {
	return Command{"serve", "be the custom handler of an Azure Functions host", func(ctx context.Context, env Env, args []string) error {
		return host(ctx, env, "serve", args, env.Stdout, func(ctx context.Context, h *app.Host) error {
			h.HandlePoll(ctx)
			return h.Serve(ctx, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
		})
	}}
}

// Run is the same without a host: its own timer in place of the function.
func Run() Command {
	return Command{"run", "poll and answer HTTP without a Functions host", func(ctx context.Context, env Env, args []string) error {
		return host(ctx, env, "run", args, env.Stderr, func(ctx context.Context, h *app.Host) error {
			return h.Serve(ctx, h.TickForever)
		})
	}}
}

// host reads the configuration, listens, and hands over to serve until ctx ends.
func host(ctx context.Context, env Env, command string, args []string, logs io.Writer, serve func(context.Context, *app.Host) error) error {
	f := NewFlags(env, command, "[--config FILE]")
	file := f.String("config", "", "the processors file")
	if err := f.Parse(args); err != nil {
		return err
	}
	c, err := configure(env, *file)
	if err != nil {
		return err
	}
	h, err := Listen(env, c, newLog(logs, c.Settings.LogLevel))
	if err != nil {
		return err
	}
	defer h.Close()
	return serve(ctx, h)
}

// configure reads the configuration. Its mistakes are printed, each on a line of its own.
func configure(env Env, file string) (config.Config, error) {
	c, err := config.Read(config.Input{Environ: env.Environ, File: file, ReadFile: os.ReadFile})
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return config.Config{}, Usage(nil)
	}
	return c, nil
}

// Listen takes the address of a configuration and opens what it asks for.
func Listen(env Env, c config.Config, log *slog.Logger) (*app.Host, error) {
	h, err := app.Listen(c, app.Options{Log: log, EventLines: env.Stdout, Version: env.Version, Now: env.Now})
	if err != nil {
		return nil, Usage(err)
	}
	return h, nil
}

// newLog logs as JSON lines, with times in UTC.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: UTC}))
}

// UTC writes a log record's time in UTC, as RFC 3339.
func UTC(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
