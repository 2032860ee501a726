package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/feedscale/feedscale/functions/dashboard"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/demo"
)

// routeEnviron is the route of the demo's settings.
const routeEnviron = dashboard.RouteControls + "/environ"

// worldControls is the JSON that the page's controls read.
type worldControls struct {
	Faults []demo.Fault `json:"faults"`
	Watch  string       `json:"watch"`
}

// newControls serves the controls of the page and "demo env". It refuses pages of other origins,
// which a browser on this machine may show.
func newControls(world *demo.World, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if err := console.WriteJSON(w, value); err != nil {
			log.Debug("a caller went away before its answer", "error", err.Error())
		}
	}
	mux.HandleFunc("GET "+dashboard.RouteControls, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, worldControls{world.Faults(), world.Watch()})
	})
	mux.HandleFunc("GET "+routeEnviron, func(w http.ResponseWriter, _ *http.Request) { answer(w, world.Environ()) })
	mux.HandleFunc("POST "+dashboard.RouteControls+"/{fault}", func(w http.ResponseWriter, r *http.Request) {
		on, err := strconv.ParseBool(r.URL.Query().Get("on"))
		if err != nil {
			problem.Write(w, r, log, http.StatusBadRequest, "on is missing; allowed are on=true and on=false")
			return
		}
		if err := world.Switch(r.PathValue("fault"), on); err != nil {
			problem.Write(w, r, log, http.StatusNotFound, err.Error())
			return
		}
		answer(w, worldControls{world.Faults(), world.Watch()})
	})
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, log, http.StatusForbidden, "a page of another origin may not change the demo")
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
