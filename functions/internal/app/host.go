package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/netutil"

	"github.com/feedscale/feedscale/functions/internal/otlp"
	"github.com/feedscale/feedscale/functions/poll"
	"github.com/feedscale/feedscale/functions/shard"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/poller"
)

// The limits of a caller. Under a Functions host, which has its own, the only caller is the host.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second // of a request: no route that others reach has a body
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeader         = 32 << 10 // bytes of a request's line and headers; net/http adds 4 KiB
	maxConnections    = 1_000    // at once: more wait until one is closed
)

const (
	// shutdownTimeout is for requests in flight, the tick among them. With closeTimeout it is 10 s: a
	// Functions host gives 11 to 12 s from its own signal to its end.
	shutdownTimeout = 8 * time.Second
	flushTimeout    = 2 * time.Second // of that, for the metrics that were not pushed yet
)

// Host is an App that answers HTTP.
type Host struct {
	*App
	listener net.Listener
	mux      *http.ServeMux
}

// Listen takes the address of a configuration, and then wires it: a process that cannot have the address
// has not touched the state. Beyond loopback it takes none without a key to ask for.
func Listen(c config.Config, o Options) (*Host, error) {
	if !o.BehindHost && c.Settings.APIKey.IsZero() && !isLoopback(c.Settings.Listen) {
		return nil, fmt.Errorf("FEEDSCALE_LISTEN is %s, which others can reach: set FEEDSCALE_API_KEY to the key that they have to send, or listen on 127.0.0.1", c.Settings.Listen)
	}
	listener, err := net.Listen("tcp", c.Settings.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s, set FEEDSCALE_LISTEN to another address: %w", c.Settings.Listen, err)
	}
	a, err := New(c, o)
	if err != nil {
		listener.Close()
		return nil, err
	}
	h := &Host{App: a, listener: listener, mux: http.NewServeMux()}
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "feedscale") }) // the Functions host's readiness and health ping
	h.mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	a.register(h.mux)
	return h, nil
}

// URL is where HTTP is answered.
func (h *Host) URL() string { return "http://" + h.listener.Addr().String() }

// Settings are those of the configuration.
func (h *Host) Settings() config.Settings { return h.config.Settings }

// HandlePoll adds the timer function, whose ticks end with ctx, and that which polls their shards.
func (h *Host) HandlePoll(ctx context.Context) {
	h.mux.Handle(poll.Route, &poll.Handler{Tick: h.TickBriefly, Base: ctx, Log: h.options.Log})
	h.mux.Handle(shard.Route, &shard.Handler{Base: ctx, Log: h.options.Log, Poll: func(ctx context.Context, s poller.Shard) error {
		_, err := h.tick(ctx, poller.Mode{Shard: &s, Brief: true})
		return err
	}})
}

// Serve answers HTTP until work, which ends with ctx or with the server, returns. Then requests in flight
// have some seconds to end.
func (h *Host) Serve(ctx context.Context, work func(context.Context) error) error {
	log := h.options.Log
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{Handler: bodiless(h.guarded(spelled(h.mux))), ReadHeaderTimeout: readHeaderTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	listener := h.listener
	if !h.options.BehindHost { // an invocation of the host takes as long as a tick
		server.ReadTimeout, server.WriteTimeout, server.IdleTimeout = readTimeout, writeTimeout, idleTimeout
		listener = netutil.LimitListener(listener, maxConnections)
	}
	pusher := h.push()
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		cancel()
	}()
	log.Info("listening", "address", h.listener.Addr().String(), "processors", len(h.config.Processors), "source", h.config.Source, "version", h.options.Version)

	err := work(ctx)
	stopping, stopped := context.WithTimeout(context.Background(), shutdownTimeout)
	defer stopped()
	if shutdownErr := server.Shutdown(stopping); shutdownErr != nil {
		log.Warn("requests were cut off", "error", shutdownErr.Error())
	}
	flushing, flushed := context.WithTimeout(stopping, flushTimeout)
	defer flushed()
	pusher.Stop(flushing)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// bodiless gives every request an empty body, but an invocation of the Functions host: no other is asked for
// with one. A connection that brings one is closed after the answer, so that the rest of it is not read.
func bodiless(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if invocation := r.Method + " " + r.URL.Path; invocation != poll.Route && invocation != shard.Route && r.Body != http.NoBody {
			r.Body = http.NoBody
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// push begins to push the metrics, where the environment asks for it.
func (h *Host) push() otlp.Pusher {
	if h.options.Getenv == nil {
		return otlp.Pusher{}
	}
	return otlp.Start(otlp.Options{Metrics: h.meters, Version: h.options.Version, Instance: processID(), Getenv: h.options.Getenv, Log: h.options.Log})
}

// spelled lets a path below /api be written in any case and with a slash at its end, as the routes of a
// Functions host may be, which forwards the path as it was written. Names of processors are in lower
// case.
func spelled(next http.Handler) http.Handler {
	const api = "/api/"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Path; len(path) > len(api) && strings.EqualFold(path[:len(api)], api) {
			if plain := strings.TrimSuffix(strings.ToLower(path), "/"); plain != path {
				u := *r.URL
				u.Path, u.RawPath = plain, ""
				r = r.Clone(r.Context())
				r.URL = &u
			}
		}
		next.ServeHTTP(w, r)
	})
}

// TickForever polls at once and then at every time of the timer's schedule, until ctx ends. A tick that
// takes longer than the schedule's step lets the times pass that it covers.
func (h *Host) TickForever(ctx context.Context) error {
	for {
		if _, err := h.TickBriefly(ctx); err != nil && ctx.Err() == nil {
			h.options.Log.Error("the tick failed", "error", err.Error())
		}
		now := h.options.Now()
		timer := time.NewTimer(h.config.Settings.Timer.Next(now).Sub(now))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}
