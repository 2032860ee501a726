package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/demo"
)

// showDemo runs feedscale on a world that is embedded: accounts, load, workers and a consumer of the
// scale events, which closes the loop.
func showDemo(env cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "demo [env [PORT]]", Short: "run a world of embedded processors under load",
		Long: "Run a world of embedded processors under load. With env, print the settings with which other commands\n" +
			"work on the demo that runs.",
		Example:     "feedscale demo\nfeedscale demo --duration 1m\neval \"$(feedscale demo env)\"",
		Annotations: cli.Settings("FEEDSCALE_LISTEN", "FEEDSCALE_API_KEY", "NO_COLOR"),
		Args:        cobra.ArbitraryArgs,
	}
	duration := c.Flags().Duration("duration", 0, "end after this time; 0 = at Ctrl-C")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return runDemo(c.Context(), env, *duration)
		case len(args) < 3 && args[0] == "env":
			return printDemoEnviron(c.Context(), env, strings.Join(args[1:], ""))
		}
		return cli.Usage(fmt.Errorf("demo: allowed are no arguments and env [PORT], not %q", strings.Join(args, " ")))
	}
	return c
}

func runDemo(ctx context.Context, env cli.Env, duration time.Duration) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &screen{env: env, started: env.Now(), end: end, said: make(map[string]int64), provisioned: make(map[string]int)}
	if _, _, s.live = env.Terminal(); s.live {
		// A terminal that hangs up ends the demo as Ctrl-C does, so that nothing of it stays behind.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	if duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, duration)
		defer cancel()
	}
	s.log = s.logger(slog.LevelError)
	ofWorld := s.log
	if !s.live {
		ofWorld = s.logger(slog.LevelWarn)
	}
	var err error
	if s.world, err = demo.Start(ctx, demo.Options{Seed: uint64(env.Now().UnixNano()), Log: ofWorld}); err != nil {
		return err
	}
	defer func() {
		if err := s.world.Close(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(env.Stderr, "feedscale: %v\n", err)
		}
	}()
	env.Environ = demoEnviron(env, s.world)
	c, err := config.Read(config.Input{Environ: env.Environ, ReadFile: bounded.ReadFile})
	if err != nil {
		return cli.Usage(err)
	}
	if s.host, err = app.Listen(c, app.Options{
		Log: s.log, EventLines: console.Lines{Writer: env.Stdout}, Version: env.Version, Now: env.Now, Getenv: env.Getenv, Controls: newControls(s.world, s.log),
	}); err != nil {
		return cli.Usage(err)
	}
	defer s.host.Close()
	if s.live && env.Keys != nil {
		if keys, restore, ok := env.Keys(); ok {
			s.restore = sync.OnceFunc(restore)
			defer s.restore()
			s.keys = readKeys(keys)
		}
	}
	return s.host.Serve(ctx, s.run)
}

// logger logs to standard error or, where the picture stands there, to a line of it, which has room
// for the message alone.
func (s *screen) logger(level slog.Level) *slog.Logger {
	if !s.live {
		return slog.New(slog.NewJSONHandler(s.env.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: cli.UTC}))
	}
	return slog.New(slog.NewTextHandler(&s.trouble, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// usualAddress is where run and demo listen by default.
const (
	loopback     = "127.0.0.1:"
	usualAddress = loopback + "7071"
)

// demoEnviron is the world's environment in place of the user's, of which only what concerns this
// process is kept. Where the usual port is taken, any is fine.
func demoEnviron(env cli.Env, world *demo.World) []string {
	environ := slices.DeleteFunc(slices.Clone(env.Environ), func(entry string) bool {
		return strings.HasPrefix(entry, "FEEDSCALE_") && !strings.HasPrefix(entry, "FEEDSCALE_LISTEN=") && !strings.HasPrefix(entry, "FEEDSCALE_API_KEY=")
	})
	if env.Getenv("FEEDSCALE_LISTEN") == "" {
		if probe, err := net.Listen("tcp", usualAddress); err == nil {
			probe.Close()
		} else {
			environ = append(environ, "FEEDSCALE_LISTEN=127.0.0.1:0")
		}
	}
	return append(environ, world.Environ()...)
}
