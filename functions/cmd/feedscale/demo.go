package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/report"
)

// showDemo runs feedscale in an embedded world: an account, load, workers, and a consumer that
// starts and stops them by the scale events.
func showDemo(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "demo [env [PORT]]", "run a world of embedded processors under load; with env, print its settings", program.GroupTry
	f.Example = "feedscale demo\nfeedscale demo --duration 1m\neval \"$(feedscale demo env)\""
	f.Settings("FEEDSCALE_LISTEN", "FEEDSCALE_API_KEY", "NO_COLOR")
	duration := f.Duration("duration", 0, "end after so long; 0 = at Ctrl-C")
	f.Run(func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 0:
			return runDemo(ctx, env, *duration)
		case len(args) < 3 && args[0] == "env":
			return printDemoEnviron(ctx, env, strings.Join(args[1:], ""))
		}
		return program.Usage(fmt.Errorf("allowed are no arguments, env, and env PORT, not %q", strings.Join(args, " ")))
	})
}

func runDemo(ctx context.Context, env program.Env, duration time.Duration) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	screen := program.NewScreen(env, false)
	logged := slog.LevelWarn // the lowest level of the world's log
	if screen.Live {
		// When the terminal closes, the demo ends as after Ctrl-C, and removes its files.
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
		defer screen.Close()
		logged = slog.LevelError
	}
	if duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, duration)
		defer cancel()
	}
	world, err := demo.Start(ctx, demo.Options{Seed: uint64(env.Now().UnixNano()), Log: screen.Log(logged)})
	if err != nil {
		return err
	}
	defer func() {
		if err := world.Close(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(env.Stderr, "feedscale: %v\n", err)
		}
	}()
	env.Environ = demoEnviron(env, world)
	c, err := config.Read(config.Input{Environ: env.Environ, ReadFile: bounded.ReadFile})
	if err != nil {
		return program.Usage(err)
	}
	log := screen.Log(slog.LevelError)
	host, err := app.Listen(c, app.Options{
		Log: log, EventLines: screen, Version: env.Version, Now: env.Now, Controls: newControls(world, log),
	})
	if err != nil {
		return program.Usage(err)
	}
	defer host.Close()
	s := demoScreen{started: env.Now(), now: env.Now, url: host.URL(), world: world}
	if screen.Live && env.Keys != nil {
		if keys, restore, ok := env.Keys(); ok {
			defer restore()
			s.keys = true
			go s.press(keys, end)
		}
	}
	screen.Show(s.view)
	return host.Serve(ctx, func(ctx context.Context) error {
		return screen.Follow(ctx, func(ctx context.Context, took func(report.Tick)) error {
			return host.TickForever(ctx, func(t report.Tick) {
				took(t)
				s.tell(screen)
			})
		})
	})
}

// usualAddress is the default address of run and demo.
const (
	loopback     = "127.0.0.1:"
	usualAddress = loopback + "7071"
)

// demoEnviron returns the environment with the world's settings instead of the user's, except those
// of HTTP. If the usual port is taken, the demo listens on any.
func demoEnviron(env program.Env, world *demo.World) []string {
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
