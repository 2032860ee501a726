package poller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/demo/worker"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/health"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

const (
	interval      = 15 * time.Second // of polling
	projection    = "projection"     // processorName of the hosts
	workerHost    = "127.0.0.1"      // of the account, as the hosts know it
	stalledAfter  = 5 * time.Minute
	leaseExpires  = time.Minute // .NET's default
	cooldown      = 5 * time.Minute
	tickTimeout   = 12 * time.Second
	loadsPerTick  = 3
	acquireLeases = 13 * time.Second // .NET's default
)

// live is a processor that runs as .NET's does, with its default times, and a poller that watches it,
// all in memory and in a bubble in which no time really passes.
type live struct {
	*testworld.World
	t       *testing.T
	poller  *poller.Poller
	store   *boltstore.Store
	broker  *broker
	clients *worker.Account
	written int

	mu      sync.Mutex
	handled map[string]int // ids of documents
}

func inBubble(t *testing.T, partitions int, test func(t *testing.T, l *live)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newLive(t, partitions)) })
}

func newLive(t *testing.T, partitions int) *live {
	t.Helper()
	l := &live{World: testworld.New(t, testworld.Options{InMemory: true}), t: t, broker: &broker{}, handled: map[string]int{}}
	l.Container("orders", partitions)
	var err error
	l.store, err = boltstore.Open(filepath.Join(t.TempDir(), "feedscale.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, l.store.Close()) })
	l.clients, err = worker.NewAccount(l.Account.Endpoint(), cosmosfake.WellKnownKey, l.Transport)
	testworld.Must(t, err)
	t.Cleanup(l.clients.Close)
	l.poller = &poller.Poller{
		Processors: []poller.Processor{l.processor(l.Client())},
		Estimator:  estimator.New(16, time.Now),
		Store:      l.store,
		Publisher:  events.NewStdout(l.broker),
		Settings:   poller.Settings{Timeout: tickTimeout},
		Now:        time.Now,
		Log:        slog.New(slog.DiscardHandler),
	}
	return l
}

// processor is that of orders, as it is configured.
func (l *live) processor(account *cosmos.Account) poller.Processor {
	return poller.Processor{
		Processor: estimator.Processor{
			Name: "orders", ProcessorName: projection, AccountHost: workerHost,
			Account: account, Container: cosmos.Container{Database: testworld.Database, ID: "orders"},
			LeaseAccount: account, LeaseContainer: cosmos.Container{Database: testworld.Database, ID: testworld.Leases},
		},
		Policy: scaling.Policy{
			Threshold: 100, Cooldown: cooldown, Health: health.Policy{StalledAfter: stalledAfter, StalledPolls: 2, LeaseExpiration: leaseExpires},
			Fallback: scaling.Fallback{FailureThreshold: 3, Behavior: scaling.FallbackMax},
		},
	}
}

// client is a connection to the account with options of its own.
func (l *live) client(o cosmos.Options) *cosmos.Account {
	l.t.Helper()
	o.Endpoint, o.Setting, o.Key, o.Concurrency = l.Account.Endpoint(), "COSMOS", cosmosfake.WellKnownKey, 16
	o.Transport = &http.Client{Transport: l.Transport}
	a, err := cosmos.NewAccount(o)
	testworld.Must(l.t, err)
	return a
}

// host is one that runs.
type host struct {
	stop  chan struct{}
	kill  context.CancelFunc
	ended chan error
}

// start starts a host, which the end of the test kills.
func (l *live) start(name string, handle worker.Handler, change func(*worker.Options)) *host {
	l.t.Helper()
	o := worker.Options{
		Account:       l.clients,
		Monitored:     worker.Container{Database: testworld.Database, ID: "orders"},
		Leases:        worker.Container{Database: testworld.Database, ID: testworld.Leases},
		ProcessorName: projection, Host: name, Handle: handle, FromBeginning: true,
	}
	if change != nil {
		change(&o)
	}
	ctx, kill := context.WithCancel(context.Background())
	h := &host{stop: make(chan struct{}), kill: kill, ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ended <- worker.Run(ctx, h.stop, o)
	}()
	l.t.Cleanup(func() {
		kill()
		<-done
	})
	return h
}

// end stops a host and waits for its end.
func (l *live) end(h *host) {
	l.t.Helper()
	close(h.stop)
	testworld.Must(l.t, <-h.ended)
}

func fromNow(o *worker.Options) { o.FromBeginning = false }

// handle notes what was handled.
func (l *live) handle(_ context.Context, b worker.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, document := range b.Changes {
		var d struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(document, &d); err != nil {
			return err
		}
		l.handled[d.ID]++
	}
	return nil
}

// count is how many documents were handled, each once.
func (l *live) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.handled)
}

func (l *live) write(n int) {
	l.Write("orders", n)
	l.written += n
}

// soon takes what is published within a second from now; the function that it returns waits until that
// has passed.
func (l *live) soon() (published func() []string) {
	got := make(chan []string, 1)
	time.AfterFunc(time.Second, func() { got <- l.broker.take(l.t) })
	return func() []string { return <-got }
}

// tick polls once.
func (l *live) tick() state.State {
	l.t.Helper()
	r, err := l.poller.Tick(l.t.Context(), poller.Mode{})
	testworld.Must(l.t, err)
	if len(r.Polled) != 1 {
		l.t.Fatalf("%d processors were polled", len(r.Polled))
	}
	return r.Polled[0]
}

// watch polls for a time, and writes some changes between the polls.
func (l *live) watch(during time.Duration, write int, look func(s state.State)) {
	l.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end) && !l.t.Failed(); {
		look(l.tick())
		for range loadsPerTick {
			l.write(write)
			time.Sleep(interval / loadsPerTick)
		}
	}
}

// shown is the status of a processor, with the kind of a stall and what went backwards.
func shown(s state.State) string {
	text := string(s.Lag.Status())
	for i := range s.Lag.Partitions {
		p := &s.Lag.Partitions[i]
		if p.Stall != nil {
			text = fmt.Sprintf("%s %s", changefeed.StatusStalled, p.Stall.Kind)
		}
	}
	return text
}

func rewound(s state.State) *changefeed.Rewound {
	for i := range s.Lag.Partitions {
		if r := s.Lag.Partitions[i].Rewound; r != nil {
			return r
		}
	}
	return nil
}
