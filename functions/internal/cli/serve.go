package cli

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/spf13/cobra"
)

// StatusRestart is how serve ends on a signal: a Functions host starts a worker again that ended with
// it, does not count that as a crash, and never restarts one that ended with 0 (azure-functions-host,
// WorkerConstants.cs).
const StatusRestart = 200

// Serve is the custom handler: the host starts it, calls it for each tick and each request, and ends it.
func Serve(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "serve", Short: "be the custom handler of an Azure Functions host", GroupID: GroupWork,
		Example:     "FUNCTIONS_CUSTOMHANDLER_PORT=8080 feedscale serve",
		Annotations: Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_TIMER_SCHEDULE", "FEEDSCALE_RU_BUDGET", "FEEDSCALE_TICK_TIMEOUT", "FEEDSCALE_LOG_LEVEL"),
	}
	var file string
	flagsOf(c).file(&file)
	c.RunE = func(c *cobra.Command, _ []string) error { return serve(c.Context(), env, file) }
	return c
}

func serve(ctx context.Context, env Env, file string) error {
	c, err := readConfig(env, file)
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
	h, err := app.Listen(c, app.Options{Log: log, EventLines: console.Lines{Writer: env.Stdout}, Version: env.Version, Now: env.Now, Getenv: env.Getenv, BehindHost: true, NeverPolled: never})
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
	if setting := disabledBy(env, "poll"); setting != "" {
		never = "the function poll is disabled by the app setting " + setting + ": remove the setting, or set it to false, as the portal's Enable button does"
	} else if env.Getenv("FEEDSCALE_TIMER_SCHEDULE") == "" {
		never = "the app setting FEEDSCALE_TIMER_SCHEDULE is missing, without which the host disables the function poll: set it, for example to */15 * * * * *"
	}
	if never != "" {
		log.Error("nothing is polled", "next", never)
	}
	for _, name := range []string{"WEBSITE_TIME_ZONE", "TZ"} {
		if zone := env.Getenv(name); zone != "" && !isUTC(zone, env.Now()) {
			log.Warn("the host's timer follows local time, while the schedules of processors are in UTC", "setting", name, "zone", zone, "next", "remove the setting, or mind the difference in FEEDSCALE_TIMER_SCHEDULE")
			break
		}
	}
	return never
}

// disabledBy returns the app setting that disables a function, "" where none does. The host compares names of
// settings without case. On Linux the platform writes underscores for periods (azure-webjobs-sdk,
// HostListenerFactory.cs: IsDisabled; IConfigurationExtensions.cs: IsSettingEnabled).
func disabledBy(env Env, function string) string {
	for _, entry := range env.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.EqualFold(strings.ReplaceAll(name, ".", "_"), "AzureWebJobs_"+function+"_Disabled") && (value == "1" || strings.EqualFold(value, "true")) {
			return name
		}
	}
	return ""
}

// isUTC reports whether a time zone is UTC now and ever after, whatever its name. An offset of zero behind the
// name, as in POSIX' UTC0, changes nothing.
func isUTC(zone string, now time.Time) bool {
	location, err := time.LoadLocation(strings.TrimRight(strings.TrimPrefix(zone, ":"), "+-:0"))
	if err != nil {
		return false
	}
	_, offset := now.In(location).Zone()
	_, changes := now.In(location).ZoneBounds()
	return offset == 0 && changes.IsZero()
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
