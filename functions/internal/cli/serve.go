package cli

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
)

// StatusRestart is the exit status of serve after a signal. A Functions host starts such a worker
// again, and does not count a crash; after 0 it never does (azure-functions-host,
// WorkerConstants.cs).
const StatusRestart = 200

// Serve is the custom handler of a Functions host, which calls it for each tick and each request.
func Serve(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "serve", "be the custom handler of an Azure Functions host", program.GroupWork
	f.Example = "FUNCTIONS_CUSTOMHANDLER_PORT=8080 feedscale serve"
	f.Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_TIMER_SCHEDULE", "FEEDSCALE_RU_BUDGET", "FEEDSCALE_TICK_TIMEOUT", "FEEDSCALE_LOG_LEVEL")
	var file string
	configFlag(f, env, &file)
	f.Run(func(ctx context.Context, _ []string) error { return serve(ctx, env, file) })
}

func serve(ctx context.Context, env program.Env, file string) error {
	c, err := readConfig(env, file)
	log := program.NewHostLog(env.Stdout, env.Stderr, c.Settings.LogLevel)
	if err != nil {
		// One line, since each is a message to the host, which starts the handler three times.
		log.Error("the configuration has mistakes: nothing was started", "mistakes", strings.Split(err.Error(), "\n"))
		return program.Usage(nil)
	}
	// Without it, the first line that a dead host does not read would end the handler by SIGPIPE,
	// before it has committed (package os/signal, SIGPIPE).
	signal.Ignore(syscall.SIGPIPE)
	wiring := options(env, log, console.Lines{Writer: env.Stdout})
	wiring.BehindHost, wiring.NeverPolled = true, underHost(env, log)
	h, err := app.Listen(c, wiring)
	if err != nil {
		log.Error("the handler cannot start", "error", err.Error())
		return program.Usage(nil)
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
		return program.Failure{Status: StatusRestart}
	}
	if err != nil {
		log.Error("the handler failed", "error", err.Error())
		return program.Failure{Status: program.StatusIncomplete}
	}
	return nil
}

// underHost logs what is wrong with the environment of a Functions host. never says why it never
// polls; "" if it does.
func underHost(env program.Env, log *slog.Logger) (never string) {
	if setting := disabledBy(env, "poll"); setting != "" {
		never = "the function poll is disabled by the app setting " + setting + ": remove the setting, or set it to false, as the portal's Enable button does"
	} else if env.Getenv("FEEDSCALE_TIMER_SCHEDULE") == "" {
		never = "the app setting FEEDSCALE_TIMER_SCHEDULE is missing, without which the host disables the function poll: set it, for example to */15 * * * * *"
	}
	if never != "" {
		log.Error("nothing is polled", "next", never)
	}
	for _, name := range []string{"WEBSITE_TIME_ZONE", "TZ"} {
		if zone := env.Getenv(name); zone != "" && !utc.MatchString(zone) {
			log.Warn("the host's timer follows local time, while the schedules of processors are in UTC", "setting", name, "zone", zone, "next", "remove the setting, or mind the difference in FEEDSCALE_TIMER_SCHEDULE")
			break
		}
	}
	return never
}

// disabledBy returns the app setting that disables a function; "" if none does. The host ignores
// the case of names, and Linux has underscores for periods (azure-webjobs-sdk,
// HostListenerFactory.cs: IsDisabled; IConfigurationExtensions.cs: IsSettingEnabled).
func disabledBy(env program.Env, function string) string {
	for _, entry := range env.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.EqualFold(strings.ReplaceAll(name, ".", "_"), "AzureWebJobs_"+function+"_Disabled") && (value == "1" || strings.EqualFold(value, "true")) {
			return name
		}
	}
	return ""
}

// utc matches the names of UTC. POSIX writes an offset after the name, as in UTC0.
var utc = regexp.MustCompile(`(?i)^:?(Etc/)?(UTC|UCT|GMT|Zulu|Universal|Greenwich)[-+:0]*$`)

// errParentGone is why serve ends without a signal.
var errParentGone = errors.New("the Functions host that started it is gone")

// parentCheck is the interval between two looks for the parent.
const parentCheck = time.Second

// withParent returns a context that ends with ctx, or after the parent process. A host that crashes
// leaves its handler behind, beside that of the next host.
func withParent(ctx context.Context, env program.Env, log *slog.Logger) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if env.Parent == nil {
		return ctx, func() { cancel(nil) }
	}
	parent := env.Parent()
	go func() {
		for env.Parent() == parent {
			select {
			case <-ctx.Done():
				return
			case <-time.After(parentCheck):
			}
		}
		log.Info("draining", "cause", errParentGone.Error())
		cancel(errParentGone)
	}()
	return ctx, func() { cancel(nil) }
}
