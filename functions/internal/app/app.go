// Package app is the Functions app: a configuration wired into a poller, the HTTP functions over its
// store, and the server and timer around both.
//
// It prints nothing and knows no command line. Start with [New]; host.go has the server.
//
// The package is internal to the program: its API may change in any release.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/feedscale/feedscale/functions/dashboard"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/internal/problem"
	"github.com/feedscale/feedscale/functions/metrics"
	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/crontab"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// Options are what a configuration does not say.
type Options struct {
	Log        *slog.Logger
	EventLines io.Writer // takes the events if they go to standard output
	Version    string    // of this build
	Now        func() time.Time

	// BehindHost says that a Functions host calls, which has asked for the key, and passes the Host
	// header on that its own caller sent.
	BehindHost bool

	// Controls answers what the page's controls ask for, at dashboard.RouteControls and below; nil if the world is
	// not this program's to change.
	Controls http.Handler

	// NeverPolled is why nothing is ever polled, for those who ask; "" if nothing keeps it from that.
	NeverPolled string
}

// App is everything that a configuration asks for, wired together.
type App struct {
	config  config.Config
	options Options
	store   *state.Commits
	closers []func(context.Context) error // of what talks to Service Bus
	poller  *poller.Poller
	shown   *overview.Overview
	meters  *metrics.Handler
	samples samples
}

// New wires a configuration over a store, which Close closes, and New itself if it fails. No request is
// made yet.
func New(c config.Config, o Options, store state.Store) (*App, error) {
	connections, clock := connect.New(c.Settings), poller.NewClock(o.Now)
	o.Now = clock.Now
	a := &App{config: c, options: o, samples: samples{log: o.Log, every: c.Settings.Samples}, store: &state.Commits{Store: store}}
	if name := c.Settings.Ignored; name != "" {
		o.Log.Warn("a setting is ignored: no part of the program reads it any more", "setting", name)
	}
	a.shown = &overview.Overview{Store: a.store, Now: o.Now, Log: o.Log, NeverPolled: o.NeverPolled, Partitions: c.Settings.MetricsPartitions}
	a.store.Wrote = a.shown.Wrote
	a.meters = metrics.New(a.shown, o.Version)
	a.poller = &poller.Poller{
		Clock:     clock,
		Estimator: estimator.New(c.Settings.Concurrency, o.Now),
		Store:     a.store,
		Settings: poller.Settings{
			Destination: connect.Destination(c.Settings.Events), Ticks: c.Settings.Timer, Heartbeat: c.Settings.Heartbeat,
			Timeout: c.Settings.TickTimeout, Retention: c.Settings.History,
		},
		Now: o.Now,
		Log: o.Log,
	}
	if err := errors.Join(a.addSubjects(connections), a.addThroughput(connections), a.addServiceBus(connections)); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return a, nil
}

// addServiceBus has events published, signal queues kept and, under a Functions host, large ticks handed over.
func (a *App) addServiceBus(connections *connect.Connections) error {
	publisher, err := connections.Publisher(a.config.Settings.Events, a.options.EventLines)
	if err != nil {
		return err
	}
	a.poller.Publisher = publisher
	a.closers = append(a.closers, publisher.Close)
	signals, err := connections.Signals(a.config.Settings.Events, servicebus.SignalsOptions{})
	if err != nil {
		return err
	}
	if signals != nil { // nil if nothing can have a signal queue
		a.poller.Signals = countedSignals{signals, a.meters}
		a.closers = append(a.closers, signals.Close)
	}
	if !a.options.BehindHost || a.config.Settings.Shards.Queue == "" {
		return nil
	}
	shards, err := connections.Queue(a.config.Settings.Shards)
	if err != nil {
		return err
	}
	a.poller.Shards, a.poller.ShardSize = shards, a.config.Settings.ShardSize
	a.closers = append(a.closers, shards.Close)
	return nil
}

// addSubjects has the processors and groups of the configuration polled and shown.
func (a *App) addSubjects(connections *connect.Connections) (err error) {
	ticks := a.config.Settings.Timer
	members := make(map[string][]poller.Processor)
	a.poller.Processors = make([]poller.Processor, len(a.config.Processors))
	for i, configured := range a.config.Processors {
		p := &a.poller.Processors[i]
		if *p, err = connections.Processor(configured); err != nil {
			return fmt.Errorf("processor %s: %w", configured.Name, err)
		}
		members[p.Group] = append(members[p.Group], *p)
		a.shown.Processors = append(a.shown.Processors, overview.Subject{Name: p.Name, Group: p.Group, Next: func(s state.State, t time.Time) time.Time {
			return p.NextPoll(ticks, s, t)
		}})
	}
	for _, g := range a.config.Groups {
		a.poller.Groups = append(a.poller.Groups, poller.Group{Name: g.Name, Policy: g.Policy, SignalQueue: g.SignalQueue, Target: g.Target})
		a.shown.Groups = append(a.shown.Groups, overview.Subject{Name: g.Name, Next: func(s state.State, t time.Time) time.Time {
			return poller.NextGroup(ticks, members[g.Name], s, t)
		}})
	}
	return nil
}

// addThroughput has the throughput of the configuration kept. Without any, the keeper gives back what an earlier
// configuration provisioned.
func (a *App) addThroughput(connections *connect.Connections) error {
	k := &throughput.Keeper{Store: a.store, Log: a.options.Log, Open: func(setting string) (throughput.Client, error) {
		connection, err := a.config.Connection(setting)
		if err != nil {
			return nil, err
		}
		return connections.WayToThroughput(connection)
	}}
	index := map[string]*throughput.Container{}
	for _, p := range a.config.Processors {
		for _, named := range p.Throughput.Containers {
			key := named.Connection.Endpoint + named.DatabaseID + "/" + named.ContainerID
			if index[key] == nil {
				made, err := connections.Throughput(p.Throughput, named)
				if err != nil {
					return fmt.Errorf("throughput of processor %s: %w", p.Name, err)
				}
				index[key] = made
				k.Containers = append(k.Containers, made)
			}
			index[key].Processors = append(index[key].Processors, throughput.Processor{
				Name: p.Name, RUPerReplica: named.RUPerReplica,
				Monitors: named.Connection.Endpoint == p.Connection.Endpoint && named.DatabaseID == p.DatabaseID && named.ContainerID == p.ContainerID,
			})
		}
	}
	a.poller.Throughput = k
	return nil
}

// countedSignals are signal queues whose fillings are counted.
type countedSignals struct {
	*servicebus.Signals
	meters *metrics.Handler
}

// Keep makes a queue hold so many messages.
func (c countedSignals) Keep(ctx context.Context, queue string, replicas int) error {
	err := c.Signals.Keep(ctx, queue, replicas)
	c.meters.ObserveSignals(queue, replicas, err)
	return err
}

// Poll is one tick that no meter counts.
func (a *App) Poll(ctx context.Context, mode poller.Mode) (report.Tick, error) {
	return a.poller.Tick(ctx, mode)
}

// Tick is one tick, counted. It logs one that takes longer than passes from its slot to the next, with what it
// waited for: under a Functions host the next one begins at once.
func (a *App) Tick(ctx context.Context, mode poller.Mode) (report.Tick, error) {
	if mode.Brief {
		defer debug.FreeOSMemory() // the process idles until the next tick
	}
	start := a.options.Now()
	mode.Each = func(s state.State) {
		a.meters.ObservePoll(s)
		a.samples.processor(s)
	}
	result, err := a.poller.Tick(ctx, mode)
	took := a.options.Now().Sub(start)
	overran := mode.Shard == nil && took > slotLength(a.config.Settings.Timer, start) // no timer waits for a shard
	a.meters.Observe(result, took, overran, err)
	a.samples.groups(result)
	if overran && ctx.Err() == nil {
		attributes := []any{"took", took.Round(time.Millisecond).String(), "schedule", a.config.Settings.Timer.String()}
		if longest := result.Longest; longest.Who != "" {
			attributes = append(attributes, "longest", longest.Who, "longestTook", longest.Time.Round(time.Millisecond).String())
		}
		a.options.Log.Warn("a tick took longer than its schedule allows", attributes...)
	}
	return result, err
}

// slotLength returns the time for a tick that starts at start: until the next slot or, if it starts
// late, the time from the next slot to the one after. A host fires some milliseconds early, so start
// is rounded to a second.
func slotLength(ticks crontab.Schedule, start time.Time) time.Duration {
	start = start.Round(time.Second)
	next := ticks.Next(start)
	return max(next.Sub(start), ticks.Next(next).Sub(next))
}

// register adds what people and scalers may ask for to a mux.
func (a *App) register(mux *http.ServeMux) {
	h := &processors.Handler{Overview: a.shown}
	if !a.options.BehindHost {
		h.Policies, h.ServeState = a.policies, true
	}
	h.Register(mux)
	a.meters.Register(mux)
	dashboard.Register(mux, a.options.Controls != nil)
	if a.options.Controls != nil {
		mux.Handle(dashboard.RouteControls, a.options.Controls)
		mux.Handle(dashboard.RouteControls+"/", a.options.Controls)
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, http.StatusNotFound, "there is no such path; allowed are /api/processors, /api/processors/NAME, /api/report, /api/metrics and /api/dashboard")
	})
}

// policies are what the history of a processor may be replayed against: its own policy, the default one, and KEDA.
// None for a group.
func (a *App) policies(name string) []simulate.Scaler {
	i := slices.IndexFunc(a.config.Processors, func(p config.Processor) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	own, every := Own(a.config.Settings, a.config.Processors[i], a.options.Now())
	return []simulate.Scaler{own, simulate.Feedscale("default", config.DefaultPolicy(), every), simulate.KEDA()}
}

// Own is the policy of a processor, paused or not, for a replay, with the interval of its polls.
func Own(s config.Settings, p config.Processor, now time.Time) (own simulate.Scaler, every time.Duration) {
	polls := p.Schedule
	if polls.IsZero() {
		polls = s.Timer
	}
	first := polls.Next(now)
	every = polls.Next(first).Sub(first)
	p.Policy.Paused = false
	return simulate.Feedscale("own", p.Policy, every), every
}

// closeTimeout bounds the closing of the publisher.
const closeTimeout = 2 * time.Second

// Close releases what the app holds open, and logs what could not be closed.
func (a *App) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	for _, closing := range a.closers {
		err = errors.Join(err, closing(ctx))
	}
	if err = errors.Join(err, a.store.Close()); err != nil {
		a.options.Log.Warn("not everything was closed", "error", err.Error())
	}
}
