package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/feedscale/feedscale/functions/dashboard"
	"github.com/feedscale/feedscale/functions/metrics"
	"github.com/feedscale/feedscale/functions/problem"
	"github.com/feedscale/feedscale/functions/processors"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// handlerPort is set by a Functions host for the custom handler it starts.
const handlerPort = "FUNCTIONS_CUSTOMHANDLER_PORT"

// app is everything that a configuration asks for, wired together.
type app struct {
	config config.Config
	log    *slog.Logger
	store  state.Store
	events events.Publisher
	poller *poller.Poller
	meters *metrics.Handler
	url    string // where HTTP is answered; "" in a single poll
}

// configure reads the configuration. Where it has mistakes they are printed,
// and ok is false.
func (p program) configure(file string) (c config.Config, ok bool) {
	c, err := config.Read(config.Input{Environ: p.environ, File: file, ReadFile: os.ReadFile})
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return config.Config{}, false
	}
	return c, true
}

// newApp wires a configuration. No request is made yet; only a bolt file is
// opened, unless readOnly says that nothing may be written. eventLines takes
// the events where they go to standard output.
func newApp(c config.Config, log *slog.Logger, eventLines io.Writer, readOnly bool) (*app, error) {
	a := &app{config: c, log: log}
	w := wiring{accounts: make(map[accountKey]*cosmos.Account), identities: make(map[config.Identity]azcore.TokenCredential), settings: c.Settings}
	list := make([]poller.Processor, 0, len(c.Processors))
	names := make([]string, 0, len(c.Processors))
	for _, configured := range c.Processors {
		processor, err := w.processor(configured)
		if err != nil {
			return nil, fmt.Errorf("processor %s: %w", configured.Name, err)
		}
		list, names = append(list, processor), append(names, configured.Name)
	}
	var err error
	if a.events, err = w.publisher(c.Settings.Events, eventLines); err != nil {
		return nil, err
	}
	if a.store, err = w.store(c.Settings.State, readOnly); err != nil {
		return nil, err
	}
	a.meters = metrics.New(metrics.Options{Processors: names, Store: a.store, Version: buildVersion(), Now: time.Now, Log: log})
	a.poller = &poller.Poller{
		Processors: list,
		Estimator:  estimator.New(c.Settings.Concurrency, time.Now),
		Store:      a.store,
		Publisher:  a.meters.Publisher(a.events),
		Heartbeat:  c.Settings.Heartbeat,
		Timeout:    c.Settings.TickTimeout,
		Retention:  c.Settings.History,
		Now:        time.Now,
		Log:        log,
	}
	return a, nil
}

// tick is one tick over the processors that are due, counted.
func (a *app) tick(ctx context.Context) (poller.Result, error) {
	start := time.Now()
	result, err := a.poller.Tick(ctx, poller.Mode{})
	a.meters.Observe(result, time.Since(start), err)
	return result, err
}

// register adds what people and scalers may ask for to a mux.
func (a *app) register(mux *http.ServeMux) {
	a.processors().Register(mux)
	a.meters.Register(mux)
	dashboard.New(a.log).Register(mux)
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, a.log, http.StatusNotFound, "there is no such path; allowed are /api/processors, /api/processors/NAME, /api/metrics and /api/dashboard")
	})
}

// closeTimeout bounds the closing of the publisher.
const closeTimeout = 2 * time.Second

// close releases what the app holds open.
func (a *app) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(a.events.Close(ctx), a.store.Close())
}

// processors is the HTTP function over the app's store.
func (a *app) processors() *processors.Handler {
	h := &processors.Handler{Store: a.store, Now: time.Now, Log: a.log}
	for _, p := range a.config.Processors {
		h.Processors = append(h.Processors, processors.Processor{Name: p.Name, Next: func(s state.State, t time.Time) time.Time {
			return nextPoll(p, a.config.Settings.Timer, s, t)
		}})
	}
	return h
}

// nextPoll is when a processor in a state is polled for the first time after t:
// at the first tick at which its schedule is due.
func nextPoll(p config.Processor, ticks config.Schedule, s state.State, t time.Time) time.Time {
	own := p.Schedule
	if !p.IdleSchedule.IsZero() && poller.Idle(s, p.Policy) {
		own = p.IdleSchedule
	}
	if own.IsZero() {
		return ticks.Next(t)
	}
	return ticks.Next(own.Next(t).Add(-time.Nanosecond))
}

// wiring makes each account and each credential once, however many processors
// share it.
type wiring struct {
	accounts   map[accountKey]*cosmos.Account
	identities map[config.Identity]azcore.TokenCredential
	settings   config.Settings
}

type accountKey struct {
	endpoint string
	key      string
	identity config.Identity
}

func (w wiring) processor(c config.Processor) (poller.Processor, error) {
	account, err := w.account(c.Connection)
	if err != nil {
		return poller.Processor{}, err
	}
	leaseAccount, err := w.account(c.LeaseConnection)
	if err != nil {
		return poller.Processor{}, err
	}
	p := poller.Processor{
		Processor: estimator.Processor{
			Name:           c.Name,
			Account:        account,
			Container:      cosmos.Container{Database: c.DatabaseID, ID: c.ContainerID},
			LeaseAccount:   leaseAccount,
			LeaseContainer: cosmos.Container{Database: c.LeaseDatabaseID, ID: c.LeaseContainerID},
			ProcessorName:  c.ProcessorName,
			AccountHost:    c.AccountHost,
			StartFrom:      c.StartFrom,
		},
		Policy: c.Policy,
		Target: c.Target,
	}
	if !c.Schedule.IsZero() {
		p.Schedule = c.Schedule
	}
	if !c.IdleSchedule.IsZero() {
		p.IdleSchedule = c.IdleSchedule
	}
	return p, nil
}

func (w wiring) account(c config.CosmosConnection) (*cosmos.Account, error) {
	key := accountKey{c.Endpoint, c.Key.Reveal(), c.Identity}
	if a := w.accounts[key]; a != nil {
		return a, nil
	}
	o := cosmos.Options{
		Endpoint: c.Endpoint, Setting: c.Setting, Key: c.Key.Reveal(),
		Concurrency: w.settings.Concurrency, Budget: w.settings.RUBudget, Region: w.settings.Region,
	}
	if c.UsesIdentity() {
		var err error
		if o.Credential, err = w.credential(c.Identity); err != nil {
			return nil, err
		}
	}
	a, err := cosmos.NewAccount(o)
	if err == nil {
		w.accounts[key] = a
	}
	return a, err
}

// credential makes the credential that proves an identity. It asks for no token.
func (w wiring) credential(i config.Identity) (credential azcore.TokenCredential, err error) {
	if credential = w.identities[i]; credential != nil {
		return credential, nil
	}
	switch i.Credential {
	case config.CredentialManagedIdentity:
		o := &azidentity.ManagedIdentityCredentialOptions{}
		if i.ClientID != "" {
			o.ID = azidentity.ClientID(i.ClientID)
		}
		credential, err = azidentity.NewManagedIdentityCredential(o)
	case config.CredentialWorkloadIdentity:
		credential, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientID: i.ClientID, TenantID: i.TenantID})
	default:
		credential, err = azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{TenantID: i.TenantID})
	}
	if err == nil {
		w.identities[i] = credential
	}
	return credential, err
}

func (w wiring) publisher(c config.Events, lines io.Writer) (events.Publisher, error) {
	switch {
	case c.Queue == "":
		return events.NewStdout(lines), nil
	case c.ServiceBus.UsesIdentity():
		credential, err := w.credential(c.ServiceBus.Identity)
		if err != nil {
			return nil, err
		}
		return servicebus.NewPublisherWithIdentity(c.ServiceBus.Namespace, credential, c.Queue, servicebus.PublisherOptions{})
	default:
		return servicebus.NewPublisher(c.ServiceBus.ConnectionString.Reveal(), c.Queue, servicebus.PublisherOptions{})
	}
}

func (w wiring) store(c config.State, readOnly bool) (state.Store, error) {
	switch {
	case c.BoltPath != "" && readOnly:
		if _, err := os.Stat(c.BoltPath); errors.Is(err, os.ErrNotExist) {
			return state.Empty{}, nil
		}
		return boltstore.Open(c.BoltPath)
	case c.BoltPath != "":
		return boltstore.Open(c.BoltPath)
	case c.Table.ServiceURL != "":
		credential, err := w.credential(config.Identity{})
		if err != nil {
			return nil, err
		}
		return tablestore.OpenWithIdentity(c.Table.ServiceURL, c.Table.Name, credential, azcore.ClientOptions{})
	default:
		return tablestore.OpenWithConnectionString(c.Table.Connection.ConnectionString.Reveal(), c.Table.Name, azcore.ClientOptions{})
	}
}
