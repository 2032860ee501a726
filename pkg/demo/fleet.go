package demo

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/time/rate"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/lifeline"
)

// fleet is the replicas of one service, as a deployment runs them.
type fleet struct {
	service service
	account string                    // connection string
	network http.RoundTripper         // transport to the account
	ledger  *azcosmos.ContainerClient // of a service that settles payments
	faults  *faults                   // that affect this service; nil = none can
	log     *slog.Logger

	processed atomic.Int64
	running   atomic.Int64

	mu       sync.Mutex
	replicas []*replica // that were asked for, oldest first
	started  int        // number of replicas ever started, so that no name is used twice
	ended    sync.WaitGroup
}

// replica is one instance of a service. It runs until stop is closed.
type replica struct {
	name string
	stop chan struct{}
}

// Times of a replica, shorter than a container's so that there is something to see.
const (
	// until it takes leases; also the pause before it starts again after a failure
	startUp = 500 * time.Millisecond
	grace   = 5 * time.Second // from the stop signal until it is killed
)

// pageSize is how many changes a replica reads at once. It bounds how many are processed twice when
// a partition changes its owner.
const pageSize = 10

// scale sets the number of replicas and returns the number before. The newest stop first. The end
// of ctx kills them all, as a crash of the machine would.
func (f *fleet) scale(ctx context.Context, desired int) (before int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = len(f.replicas)
	for len(f.replicas) < desired {
		f.started++
		r := &replica{name: fmt.Sprintf("%s-%d", f.service.name, f.started), stop: make(chan struct{})}
		f.replicas = append(f.replicas, r)
		f.ended.Go(func() { f.run(ctx, r) })
	}
	for _, surplus := range f.replicas[desired:] {
		close(surplus.stop)
	}
	f.replicas = f.replicas[:desired]
	return before
}

// asked returns the number of replicas that were asked for.
func (f *fleet) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.replicas)
}

// run is one replica from its start to its end.
func (f *fleet) run(ctx context.Context, r *replica) {
	// A replica handles one change at a time, whichever partition it is of.
	throughput := rate.NewLimiter(rate.Limit(f.service.throughput), 1)
	for f.wait(ctx, r, startUp) {
		f.running.Add(1)
		err := f.work(ctx, r, throughput)
		f.running.Add(-1)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("a replica failed and is started again", "replica", r.name, "error", err.Error())
		}
	}
}

// work runs the host of a replica until it must stop or ctx ends. In both cases the grace period is
// the limit.
func (f *fleet) work(ctx context.Context, r *replica, throughput *rate.Limiter) error {
	life, kill := context.WithCancel(ctx)
	defer kill()
	line := lifeline.New(f.network)
	defer line.Cut()
	defer context.AfterFunc(life, line.Cut)() // a crash breaks the connections
	client, err := azcosmos.NewClientFromConnectionString(f.account,
		changefeedprocessor.ClientOptions(&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: line}}))
	if err != nil {
		return err
	}
	defer client.Close()
	// .NET's defaults, divided by ten, so that what takes two minutes in a deployment takes twelve
	// seconds here. As in .NET, the lease of a failed handler is released at once.
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: f.service.in(), ID: f.service.name},
		changefeedprocessor.Container{Client: client, Database: f.service.in(), ID: leaseContainer},
		changefeedprocessor.Options{
			Name: f.service.processorName, Instance: r.name, Handle: f.handler(life, throughput),
			FromBeginning: true, // as processors.yaml says
			MaxItems:      pageSize, Retries: -1, Drain: grace,
			AcquireInterval: 1300 * time.Millisecond, RenewInterval: 1700 * time.Millisecond,
			ExpirationInterval: 6 * time.Second, PollInterval: 500 * time.Millisecond,
			Observe: func(o changefeedprocessor.Observation) {
				if o.Checkpointed {
					f.processed.Add(int64(o.Items))
				}
			},
			Log: slog.New(hostLog{f.log.Handler(), life}),
		})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	f.ended.Go(func() {
		select {
		case <-r.stop:
			stop()
		case <-done:
		}
	})
	defer close(done)
	if err := p.Run(working); working.Err() == nil {
		return err
	}
	return nil // leases that it did not release expire, as after a kill
}

// hostLog is the log of a host. It is silent after the host was killed.
type hostLog struct {
	slog.Handler
	life context.Context
}

func (l hostLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.life.Err() == nil && l.Handler.Enabled(ctx, level)
}

// handler processes the changes of the service. It finishes a batch even if the replica is told to
// stop meanwhile. life ends when the replica is killed.
func (f *fleet) handler(life context.Context, throughput *rate.Limiter) changefeedprocessor.Handler {
	if f.service.stuck {
		// It ends when its lease is lost, or this host would never take the lease again.
		return func(ctx context.Context, _ changefeedprocessor.Batch) error { return hang(ctx, nil) }
	}
	return func(_ context.Context, b changefeedprocessor.Batch) error {
		if f.faults != nil {
			if err := f.faults.strike(life); err != nil {
				return err
			}
		}
		for _, change := range b.Items {
			if err := throughput.Wait(life); err != nil {
				return err
			}
			if !f.service.settles {
				continue
			}
			if err := settle(life, f.ledger, change); err != nil {
				return err
			}
		}
		return nil
	}
}

// wait waits; it returns false if the replica must end.
func (f *fleet) wait(ctx context.Context, r *replica, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stop:
		return false
	case <-ctx.Done():
		return false
	}
}
