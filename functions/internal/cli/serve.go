package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/config"
)

// StatusRestart is how serve ends on a signal: a Functions host starts a worker again that ended with
// it, does not count that as a crash, and never restarts one that ended with 0 (azure-functions-host,
// WorkerConstants.cs).
const StatusRestart = 200

// Serve is the custom handler: the host starts it, calls it for each tick and each request, and ends it.
func Serve() Command {
	return Command{"serve", "be the custom handler of an Azure Functions host", serve}
}

func serve(ctx context.Context, env Env, args []string) error {
	file, err := configFlag(env, "serve", args)
	if err != nil {
		return err
	}
	c, err := config.Read(config.Input{Environ: env.Environ, File: file, ReadFile: os.ReadFile})
	log := newHostLog(env.Stdout, env.Stderr, c.Settings.LogLevel)
	if err != nil {
		// In one line: the host takes each for a message of its own, and starts the handler three times.
		log.Error("the configuration has mistakes: nothing was started", "mistakes", strings.Split(err.Error(), "\n"))
		return Usage(nil)
	}
	// A host that is gone reads nothing any more: the first line after that would end the handler with
	// SIGPIPE, in the middle of what it still has to commit (package os/signal, SIGPIPE).
	signal.Ignore(syscall.SIGPIPE)
	never := underHost(env, log)
	h, err := app.Listen(c, app.Options{Log: log, EventLines: env.Stdout, Version: env.Version, Now: env.Now, BehindHost: true, NeverPolled: never})
	if err != nil {
		log.Error("the handler cannot start", "error", err.Error())
		return Usage(nil)
	}
	defer h.Close()
	ctx, cancel := withParent(ctx, env, log)
	defer cancel()
	h.HandlePoll(ctx)
	err = h.Serve(ctx, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if err == nil && ctx.Err() != nil {
		log.Info("the handler ends", "cause", context.Cause(ctx).Error())
		return Failure{Status: StatusRestart}
	}
	if err != nil {
		log.Error("the handler failed", "error", err.Error())
		return Incomplete(nil)
	}
	return nil
}

// underHost says what of the environment of a Functions host will not work as it looks, and returns why
// nothing is ever polled; "" where nothing keeps the host from it.
func underHost(env Env, log *slog.Logger) (never string) {
	if env.Getenv("FEEDSCALE_TIMER_SCHEDULE") == "" {
		never = "the app setting FEEDSCALE_TIMER_SCHEDULE is missing, without which the host disables the function poll: set it, for example to */15 * * * * *"
		log.Error("nothing is polled", "next", never)
	}
	for _, name := range []string{"WEBSITE_TIME_ZONE", "TZ"} {
		if zone := env.Getenv(name); zone != "" && zone != "UTC" && zone != "Etc/UTC" {
			log.Warn("the host's timer follows local time, while the schedules of processors are in UTC", "setting", name, "zone", zone, "next", "remove the setting, or mind the difference in FEEDSCALE_TIMER_SCHEDULE")
			break
		}
	}
	return never
}

// errParentGone is why serve ends without a signal.
var errParentGone = errors.New("the Functions host that started it is gone")

// parentCheck is how often the parent is looked for.
const parentCheck = time.Second

// withParent returns a context that ends with ctx, or when the process that started this one is gone: a
// host that ends leaves a handler behind that is in the middle of an invocation, beside the new one.
func withParent(ctx context.Context, env Env, log *slog.Logger) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if env.Parent == nil {
		return ctx, func() { cancel(nil) }
	}
	parent := env.Parent()
	go func() {
		look := time.NewTicker(parentCheck)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if env.Parent() != parent {
					log.Info("draining", "cause", errParentGone.Error())
					cancel(errParentGone)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Run is the same without a host: its own timer in place of the function and, where a setting asks for
// it, KEDA's external scaler beside HTTP. The scaler is handed in, since the deployed handler must not
// link gRPC.
func Run(scaler NewScaler) Command {
	return Command{"run", "poll and answer HTTP without a Functions host", func(ctx context.Context, env Env, args []string) error {
		return run(ctx, env, args, scaler)
	}}
}

func run(ctx context.Context, env Env, args []string, scaler NewScaler) error {
	file, err := configFlag(env, "run", args)
	if err != nil {
		return err
	}
	c, err := configure(env, file)
	if err != nil {
		return err
	}
	log := newLog(env.Stderr, c.Settings.LogLevel)
	var listener net.Listener
	if c.Settings.Scaler.Listen != "" {
		if listener, err = listenScaler(c.Settings.Scaler.Listen); err != nil {
			return err
		}
		defer listener.Close()
	}
	h, err := app.Listen(c, app.Options{Log: log, EventLines: env.Stdout, Version: env.Version, Now: env.Now})
	if err != nil {
		return Usage(err)
	}
	defer h.Close()
	if listener == nil {
		return h.Serve(ctx, h.TickForever)
	}
	serve, err := scaler(ScalerOptions{Scaler: c.Settings.Scaler, Answers: h.Answers(), Log: log})
	if err != nil {
		return Usage(err)
	}
	return h.Serve(ctx, func(ctx context.Context) error {
		both, ctx := errgroup.WithContext(ctx)
		both.Go(func() error { return serve(ctx, listener) })
		both.Go(func() error { return h.TickForever(ctx) })
		return both.Wait()
	})
}

// configFlag reads the one flag of serve and run.
func configFlag(env Env, command string, args []string) (file string, err error) {
	f := NewFlags(env, command, "[--config FILE]")
	f.StringVar(&file, "config", "", "the processors file")
	return file, f.Parse(args)
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
