package poller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/lifeline"
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
	hung    chan struct{} // closed with the test: handlers that hang wait for it
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
	l.hung = make(chan struct{})
	t.Cleanup(func() { close(l.hung) })
	l.poller = &poller.Poller{
		Processors: []poller.Processor{l.processor(l.Client())},
		Estimator:  estimator.New(16, time.Now),
		Store:      l.store,
		Publisher:  events.NewStdout(l.broker),
		Settings:   poller.Settings{Timeout: tickTimeout, Ticks: everyHour{}},
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
	line  *lifeline.Line
	stop  context.CancelFunc
	ended chan error
}

// kill ends it as a process that is killed.
func (h *host) kill() {
	h.line.Cut()
	h.stop()
}

// start starts a host, which the end of the test kills. One that starts from now is as .NET's were
// before 3.59.
func (l *live) start(name string, handle changefeedprocessor.Handler, change func(*changefeedprocessor.Options)) *host {
	l.t.Helper()
	o := changefeedprocessor.Options{Name: projection, Instance: name, Handle: handle, FromBeginning: true, Retries: -1}
	if change != nil {
		change(&o)
	}
	var network http.RoundTripper = l.Transport
	if !o.FromBeginning {
		network = older{l}
	}
	ctx, stop := context.WithCancel(context.Background())
	h := &host{line: lifeline.New(network), stop: stop, ended: make(chan error, 1)}
	client := l.ProcessorClient(h.line)
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: testworld.Database, ID: "orders"},
		changefeedprocessor.Container{Client: client, Database: testworld.Database, ID: testworld.Leases}, o)
	testworld.Must(l.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ended <- p.Run(ctx)
	}()
	l.t.Cleanup(func() {
		h.kill()
		<-done
	})
	return h
}

// older is the network of a host that writes no continuation before its first change.
type older struct{ l *live }

var continuation = regexp.MustCompile(`"ContinuationToken":"[^,]*"`)

func (o older) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && o.l.count() == 0 {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = continuation.ReplaceAll(text, []byte(`"ContinuationToken":null`))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	return o.l.Transport.RoundTrip(r)
}

// hang does not return until the test ends, whatever its context says.
func (l *live) hang(context.Context, changefeedprocessor.Batch) error {
	<-l.hung
	return errors.New("the test ended")
}

// rewind sets a lease back to an LSN.
func (l *live) rewind(token string, lsn int64) {
	for _, lease := range testworld.ReadLeases(l.t, l.SDK(), testworld.Database, testworld.Leases, projection) {
		if lease.Token == token {
			lease.Continuation = leasefake.At(lsn)
			l.Put(testworld.Leases, lease)
		}
	}
}

// end stops a host and waits for its end.
func (l *live) end(h *host) {
	l.t.Helper()
	h.stop()
	testworld.Must(l.t, <-h.ended)
}

func fromNow(o *changefeedprocessor.Options) { o.FromBeginning = false }

// handle notes what was handled.
func (l *live) handle(_ context.Context, b changefeedprocessor.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, document := range b.Items {
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

func rewound(s state.State) *changefeed.Rewind {
	for i := range s.Lag.Partitions {
		if r := s.Lag.Partitions[i].Rewound; r != nil {
			return r
		}
	}
	return nil
}
