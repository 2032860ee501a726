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

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/otlp"
	"github.com/feedscale/feedscale/functions/poll"
	"github.com/feedscale/feedscale/functions/shard"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// The limits of a caller. Under a Functions host, which has its own, the only caller is the host.
const (
	readTimeout  = 5 * time.Second // of a request: no route that others reach has a body
	writeTimeout = time.Minute
	idleTimeout  = 2 * time.Minute // between two requests with the key, or of this machine
	maxHeader    = 32 << 10        // bytes of a request's line and headers; net/http adds 4 KiB
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
	health   net.Listener // for probes alone; nil if there is none
	mux      *http.ServeMux
}

// Listen takes the address of a configuration, and then wires it: a process that cannot have the address
// has not touched the state. Beyond loopback it takes none without a key to ask for.
func Listen(c config.Config, o Options) (*Host, error) {
	if !o.BehindHost && c.Settings.APIKey.IsZero() && !config.IsLoopback(c.Settings.Listen) {
		return nil, fmt.Errorf("FEEDSCALE_LISTEN is %s, which others can reach: set FEEDSCALE_API_KEY to the key that they have to send, or listen on 127.0.0.1", c.Settings.Listen)
	}
	listener, err := ListenAt(c.Settings.Listen, "FEEDSCALE_LISTEN")
	if err != nil {
		return nil, err
	}
	h := &Host{listener: listener, mux: http.NewServeMux()}
	if c.Settings.Health != "" && !o.BehindHost {
		h.health, err = ListenAt(c.Settings.Health, "FEEDSCALE_HEALTH_LISTEN")
	}
	var store state.Store
	if err == nil {
		store, err = connect.New(c.Settings).Store(false)
	}
	if err == nil {
		h.App, err = New(c, o, store)
	}
	if err != nil {
		listener.Close()
		if h.health != nil {
			h.health.Close()
		}
		return nil, err
	}
	h.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "feedscale") }) // the Functions host's readiness and health ping
	answerProbes(h.mux)
	h.register(h.mux)
	return h, nil
}

// ListenAt takes the address in a setting.
func ListenAt(address, setting string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s, set %s to another address: %w", address, setting, err)
	}
	return listener, nil
}

// URL is where HTTP is answered.
func (h *Host) URL() string { return "http://" + h.listener.Addr().String() }

// HandlePoll adds the timer function and the function that polls shards. Their ticks end with ctx.
func (h *Host) HandlePoll(ctx context.Context) {
	h.mux.Handle(poll.Route, &poll.Handler{Base: ctx, Log: h.options.Log, Tick: func(ctx context.Context) error {
		_, err := h.Tick(ctx, poller.Mode{Brief: true})
		return err
	}})
	h.mux.Handle(shard.Route, &shard.Handler{Base: ctx, Log: h.options.Log, Poll: func(ctx context.Context, s poller.Shard) error {
		_, err := h.Tick(ctx, poller.Mode{Shard: &s, Brief: true})
		return err
	}})
}

// Serve answers HTTP until work, which ends with ctx or with the server, returns. Then requests in flight
// have some seconds to end.
func (h *Host) Serve(ctx context.Context, work func(context.Context) error) error {
	log := h.options.Log
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var c callers
	server := h.server(plain(h.guarded(h.mux, &c)))
	if !h.options.BehindHost { // an invocation of the host takes as long as a tick
		server.ReadTimeout, server.WriteTimeout, server.IdleTimeout = readTimeout, writeTimeout, idleTimeout
		c.watch(server)
	}
	defer h.serveProbes()()
	stopPushing := otlp.Start(otlp.Options{Metrics: h.meters, Version: h.options.Version, Log: log})
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(h.listener)
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
	stopPushing(flushing)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

func (h *Host) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: readTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(h.options.Log.Handler(), slog.LevelWarn),
	}
}

func answerProbes(mux *http.ServeMux) {
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
}

// serveProbes answers probes where nobody else asks, until stop. A flood of the other port does not keep it
// from that.
func (h *Host) serveProbes() (stop func()) {
	if h.health == nil {
		return func() {}
	}
	mux := http.NewServeMux()
	answerProbes(mux)
	server := h.server(plain(mux))
	server.ReadTimeout, server.WriteTimeout = readTimeout, readTimeout
	server.SetKeepAlivesEnabled(false)
	var c callers
	c.watch(server)
	go func() {
		if err := server.Serve(h.health); !errors.Is(err, http.ErrServerClosed) {
			h.options.Log.Error("probes are answered no more", "error", err.Error())
		}
	}()
	return func() { server.Close() }
}

// plain has the routes see each request in the same form.
//
// A request has no body but an invocation of the Functions host: no other is asked for with one. A connection that
// brings one is closed after the answer, so that the rest of it is not read.
//
// A path below /api may be written in any case and with a slash at its end, as the routes of a Functions host may
// be, which forwards the path as it was written. Names of processors are in lower case.
func plain(next http.Handler) http.Handler {
	const api = "/api/"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if asked := r.Method + " " + path; asked != poll.Route && asked != shard.Route && r.Body != http.NoBody {
			r.Body = http.NoBody
			w.Header().Set("Connection", "close")
		}
		if len(path) > len(api) && strings.EqualFold(path[:len(api)], api) {
			r.URL.Path, r.URL.RawPath = strings.TrimSuffix(strings.ToLower(path), "/"), ""
		}
		next.ServeHTTP(w, r)
	})
}

// TickForever polls at once and then at every time of the timer's schedule, until ctx ends. A tick that
// takes longer than the schedule's step lets the times pass that it covers. took is handed what came of
// each tick, with its partitions; nil = nobody looks at them.
func (h *Host) TickForever(ctx context.Context, took func(report.Tick)) error {
	for {
		result, err := h.Tick(ctx, poller.Mode{Brief: took == nil})
		if took != nil {
			took(result)
		}
		if err != nil && ctx.Err() == nil {
			h.options.Log.Error("the tick failed", "error", err.Error())
		}
		now := h.options.Now()
		select {
		case <-time.After(h.config.Settings.Timer.Next(now).Sub(now)):
		case <-ctx.Done():
			return nil
		}
	}
}
