package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// Options configure a world. The zero value works.
type Options struct {
	// Seed determines the content of the documents, not their number.
	Seed uint64
	// Reshaping says when a partition of orders is split and merged.
	Reshaping Reshaping
	// OnEvent is called for every scale event after the fleet was scaled, one call at a time. It
	// must return at once.
	OnEvent func(Event)
	// Log receives errors. Default: none are logged.
	Log *slog.Logger
}

// World is a running world.
type World struct {
	account   *cosmosfake.Server
	namespace *servicebusfake.Server
	folder    string // has the processors file and the state of feedscale
	services  []service
	fleets    map[string]*fleet
	writers   map[string]*writer
	reshaper  *reshaper
	faults    *faults
	journal   *journal
	consumer  *consumer
	network   *http.Transport // transport of the replicas to the account

	end     context.CancelFunc
	running sync.WaitGroup
}

// Service is the state of one service.
type Service struct {
	Name      string  // of its processor
	Replicas  int     // running, including those that are stopping
	Asked     int     // by the last scale event
	Written   int64   // documents so far
	Processed int64   // changes up to the checkpoints
	Events    []Event // the last few that were consumed, oldest first
}

// duplicateWindow is how long the topic remembers message ids, so that an event that is published
// twice arrives once.
const duplicateWindow = 10 * time.Minute

// Start starts a world. When it returns, everything runs and the first documents are about to be
// written. The world ends with ctx; the caller must call Close in any case. The error says what
// could not be started.
func Start(ctx context.Context, o Options) (*World, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, end := context.WithCancel(ctx)
	w := &World{
		end: end, services: services(), fleets: map[string]*fleet{}, writers: map[string]*writer{},
		network: &http.Transport{MaxIdleConnsPerHost: 64}, faults: &faults{}, journal: &journal{now: time.Now},
	}
	if err := w.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the demo: %w", err), w.Close())
	}
	for _, s := range w.services {
		w.start(o.Log, func() error { return w.writers[s.name].run(ctx, w.account, s) })
	}
	w.start(o.Log, func() error { return w.consumer.run(ctx) })
	w.start(o.Log, func() error { return w.reshaper.run(ctx) })
	return w, nil
}

func (w *World) start(log *slog.Logger, run func() error) {
	w.running.Go(func() {
		if err := run(); err != nil {
			log.Error("a part of the demo ended", "error", err.Error())
		}
	})
}

// build makes the parts of the world without starting them.
func (w *World) build(o Options) (err error) {
	if w.folder, err = os.MkdirTemp("", "feedscale-demo-"); err != nil {
		return err
	}
	if err := os.WriteFile(w.processorsFile(), []byte(processors), 0o600); err != nil {
		return err
	}
	if w.account, err = cosmosfake.Start(cosmosfake.Options{Logger: o.Log}); err != nil {
		return err
	}
	if w.namespace, err = servicebusfake.Start(servicebusfake.Options{
		Logger: o.Log,
		Topics: []servicebusfake.TopicSpec{{
			Name: topic, DuplicateDetectionWindow: duplicateWindow,
			Subscriptions: []servicebusfake.SubscriptionSpec{{Name: ownSubscription}, {Name: visitorSubscription, DefaultTTL: visitorTTL}},
		}},
	}); err != nil {
		return err
	}
	w.account.Control(w.faults.throttle)
	w.namespace.Control(w.faults.cut)
	if err := w.createContainers(); err != nil {
		return err
	}
	w.reshaper = newReshaper(w.account, o.Reshaping, w.journal)
	settled, err := openContainer(w.account.Endpoint(), ledger)
	if err != nil {
		return err
	}
	for i, s := range w.services {
		w.fleets[s.name] = &fleet{service: s, account: w.account.ConnectionString(), network: w.network, ledger: settled, log: o.Log}
		w.writers[s.name] = &writer{random: rand.New(rand.NewPCG(o.Seed, uint64(i))), now: time.Now}
	}
	w.fleets[troubled].faults = w.faults
	taken, err := servicebus.NewConsumer(w.namespace.ConnectionString(), topic, servicebus.ConsumerOptions{Subscription: ownSubscription, RetryDelay: reconnectAfter, Log: o.Log})
	if err != nil {
		return err
	}
	w.consumer = &consumer{queue: taken, fleets: w.fleets, onEvent: o.OnEvent, recent: map[string][]Event{}}
	return nil
}

func (w *World) createContainers() error {
	if err := w.account.CreateDatabase(database); err != nil {
		return err
	}
	// The lock that a host holds while it creates leases needs a time to live.
	if err := w.account.CreateContainer(database, cosmosfake.ContainerSpec{ID: leaseContainer, PartitionKey: []string{"/id"}, DefaultTTL: -1}); err != nil {
		return err
	}
	if err := w.account.CreateContainer(database, cosmosfake.ContainerSpec{ID: ledger, PartitionKey: []string{ledgerKey}, Throughput: ledgerThroughput}); err != nil {
		return err
	}
	for _, s := range w.services {
		if err := w.account.CreateContainer(database, cosmosfake.ContainerSpec{ID: s.name, PartitionKey: []string{s.key}, Partitions: s.partitions}); err != nil {
			return err
		}
	}
	return nil
}

// Environ returns the settings with which feedscale watches this world. They name files that Close
// removes.
func (w *World) Environ() []string {
	return []string{
		"COSMOS=" + w.account.ConnectionString(),
		"SERVICEBUS=" + w.namespace.ConnectionString(),
		"FEEDSCALE_CONFIG=" + w.processorsFile(),
		"FEEDSCALE_EVENTS=servicebus:SERVICEBUS/" + topic,
		"FEEDSCALE_STATE=bolt:" + filepath.Join(w.folder, "feedscale.db"),
		"FEEDSCALE_TIMER_SCHEDULE=* * * * * *",
	}
}

func (w *World) processorsFile() string { return filepath.Join(w.folder, "processors.yaml") }

// Snapshot returns the state of the services, in the order of the processors file.
func (w *World) Snapshot() []Service {
	all := make([]Service, 0, len(w.services))
	for _, s := range w.services {
		fleet := w.fleets[s.name]
		all = append(all, Service{
			Name:      s.name,
			Replicas:  int(fleet.running.Load()),
			Asked:     fleet.asked(),
			Written:   w.writers[s.name].written.Load(),
			Processed: fleet.processed.Load(),
			Events:    w.consumer.events(s.name),
		})
	}
	return all
}

// Happenings returns the last changes to the world, oldest first.
func (w *World) Happenings() []Happening { return w.journal.happenings() }

// Close ends the world at once, as a power failure would, and returns when nothing of it runs. Stop
// what uses Environ first. A second Close does nothing.
func (w *World) Close() error {
	w.end()
	w.running.Wait() // after this nobody scales a fleet
	for _, f := range w.fleets {
		f.ended.Wait()
	}
	var errs []error
	w.network.CloseIdleConnections()
	if w.namespace != nil {
		errs = append(errs, w.namespace.Close())
	}
	if w.account != nil {
		errs = append(errs, w.account.Close())
	}
	if w.folder != "" {
		errs = append(errs, os.RemoveAll(w.folder))
	}
	return errors.Join(errs...)
}
