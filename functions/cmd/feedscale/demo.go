package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/functions/dashboard"
	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/problem"
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
	defer screen.Close()
	if screen.Live {
		// When the terminal closes, the demo ends as after Ctrl-C, and removes its files.
		hungUp, stop := signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
		ctx = hungUp
	}
	if duration > 0 {
		defer time.AfterFunc(duration, end).Stop()
	}
	log := screen.Log(slog.LevelError)
	world, err := demo.Start(ctx, demo.Options{Seed: uint64(env.Now().UnixNano()), Log: log})
	if err != nil {
		return err
	}
	defer world.Close()
	env.Environ = demoEnviron(env, world)
	c, err := config.Read(config.Input{Environ: env.Environ, ReadFile: bounded.ReadFile})
	if err != nil {
		return program.Usage(err)
	}
	host, err := app.Listen(c, app.Options{
		Log: log, EventLines: screen, Version: env.Version, Now: env.Now, Controls: newControls(world),
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
		return host.TickForever(ctx, func(t report.Tick) {
			screen.Tick(t)
			s.tell(screen)
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

// routeEnviron is the route of the demo's settings.
const routeEnviron = dashboard.RouteControls + "/environ"

// newControls serves the controls of the page and "demo env". It refuses pages of other origins,
// which a browser on this machine may show.
func newControls(world *demo.World) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = console.WriteJSON(w, value) // a caller that went away has no use for an error
	}
	controls := func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"faults": world.Faults(), "watch": world.Watch()})
	}
	mux.HandleFunc("GET "+dashboard.RouteControls, controls)
	mux.HandleFunc("GET "+routeEnviron, func(w http.ResponseWriter, _ *http.Request) { answer(w, world.Environ()) })
	mux.HandleFunc("POST "+dashboard.RouteControls+"/{fault}", func(w http.ResponseWriter, r *http.Request) {
		on, err := strconv.ParseBool(r.URL.Query().Get("on"))
		if err != nil {
			problem.Write(w, r, http.StatusBadRequest, "on is missing; allowed are on=true and on=false")
			return
		}
		if err := world.Switch(r.PathValue("fault"), on); err != nil {
			problem.Write(w, r, http.StatusNotFound, err.Error())
			return
		}
		controls(w, r)
	})
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, http.StatusForbidden, "a page of another origin may not change the demo")
	}))
	return protection.Handler(mux)
}

// settingsOfDemo are the names that "demo env" accepts, since any program may answer at the
// address.
var settingsOfDemo = regexp.MustCompile(`^(COSMOS|SERVICEBUS|FEEDSCALE_[A-Z_]+)$`)

// printDemoEnviron prints the lines with which a shell uses the demo at a port or an address; "" is
// the demo's default address.
func printDemoEnviron(ctx context.Context, env program.Env, at string) error {
	address := cmp.Or(at, env.Getenv("FEEDSCALE_LISTEN"), usualAddress)
	if !strings.Contains(address, ":") {
		address = loopback + address
	}
	var environ []string
	api, err := connect.NewAPI("http://"+address, env.Getenv("FEEDSCALE_API_KEY"))
	if err == nil {
		err = api.Get(ctx, &environ, "controls", "environ")
	}
	if err != nil {
		return fmt.Errorf("no demo answers at %s (%w): start one with feedscale demo, or copy the line on its screen", address, err)
	}
	settings := map[string]string{"FEEDSCALE_LISTEN": address, "FEEDSCALE_URL": "http://" + address}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); settingsOfDemo.MatchString(name) {
			settings[name] = value
		}
	}
	for _, entry := range env.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := settings[name]; !set && name != "FEEDSCALE_API_KEY" && (strings.HasPrefix(name, "FEEDSCALE_") || strings.HasPrefix(name, "COSMOS__") || strings.HasPrefix(name, "SERVICEBUS__")) {
			fmt.Fprintf(env.Stdout, "unset %s\n", name)
		}
	}
	printExports(env.Stdout, settings)
	return nil
}

// printExports prints settings as lines for a shell.
func printExports(w io.Writer, settings map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(w, "export %s='%s'\n", name, strings.ReplaceAll(settings[name], "'", `'\''`))
	}
}
