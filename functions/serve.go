package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/functions/poll"
)

const (
	readHeaderTimeout = 10 * time.Second
	shutdownTimeout   = 2 * time.Second
)

// serve is the custom handler: the host starts it, calls it for each tick and
// each request, and ends it with SIGKILL. Its log goes to standard output,
// since the host takes every line of standard error for an error.
func (p program) serve(ctx context.Context, args []string) int {
	f := p.flags("serve", "[--config FILE]")
	file := f.String("config", "", "the processors file")
	if status, done := p.parse(f, args); done {
		return status
	}
	return p.host(ctx, *file, p.stdout, func(ctx context.Context, a *app, mux *http.ServeMux) (work func() error) {
		mux.Handle(poll.Route, &poll.Handler{
			Tick: a.tick,
			Base: ctx,
			Log:  a.log,
		})
		return func() error {
			<-ctx.Done()
			return nil
		}
	})
}

// runAlone is the same without a host: its own timer in place of the function.
func (p program) runAlone(ctx context.Context, args []string) int {
	f := p.flags("run", "[--config FILE]")
	file := f.String("config", "", "the processors file")
	if status, done := p.parse(f, args); done {
		return status
	}
	return p.host(ctx, *file, p.stderr, func(ctx context.Context, a *app, _ *http.ServeMux) (work func() error) {
		return func() error { return a.tickForever(ctx) }
	})
}

// host configures the app, lets start add its routes and say what the work is,
// answers HTTP, and works until ctx ends.
func (p program) host(ctx context.Context, file string, logs io.Writer, start func(context.Context, *app, *http.ServeMux) (work func() error)) int {
	c, ok := p.configure(file)
	if !ok {
		return exitUsage
	}
	log := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: c.Settings.LogLevel, ReplaceAttr: utc}))
	// The address first: a process that cannot have it has not touched the state.
	listener, err := net.Listen("tcp", c.Settings.Listen)
	if err != nil {
		return p.fail(exitUsage, fmt.Errorf("cannot listen on %s, set FEEDSCALE_LISTEN to another address: %w", c.Settings.Listen, err))
	}
	a, err := newApp(c, log, p.stdout, false)
	if err != nil {
		listener.Close()
		return p.fail(exitUsage, err)
	}
	defer func() {
		if err := a.close(); err != nil {
			log.Warn("not everything was closed", "error", err.Error())
		}
	}()
	a.url = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "feedscale") }) // the host's readiness and health ping
	a.register(mux)
	work := start(ctx, a, mux)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		cancel()
	}()
	log.Info("listening", "address", listener.Addr().String(), "processors", len(c.Processors), "source", c.Source, "version", buildVersion())

	err = work()
	stopping, stopped := context.WithTimeout(context.Background(), shutdownTimeout)
	defer stopped()
	if shutdownErr := server.Shutdown(stopping); shutdownErr != nil {
		log.Warn("requests were cut off", "error", shutdownErr.Error())
	}
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	if err != nil {
		return p.fail(exitIncomplete, err)
	}
	return exitOK
}

// utc writes a record's time in UTC, as RFC 3339.
func utc(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// tickForever polls at once and then at every time of the timer's schedule,
// until ctx ends. A tick that takes longer than the schedule's step lets the
// times pass that it covers.
func (a *app) tickForever(ctx context.Context) error {
	for {
		if _, err := a.tick(ctx); err != nil && ctx.Err() == nil {
			a.log.Error("the tick failed", "error", err.Error())
		}
		now := time.Now()
		timer := time.NewTimer(a.config.Settings.Timer.Next(now).Sub(now))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}
