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

// fleet is the replicas of one service, as a deployment has them.
type fleet struct {
	service service
	account string                    // connection string
	network http.RoundTripper         // by which it is reached
	ledger  *azcosmos.ContainerClient // of a service that settles
	faults  *faults                   // of a service that can be hung and broken; nil = of none
	log     *slog.Logger

	processed atomic.Int64
	running   atomic.Int64

	mu       sync.Mutex
	replicas []*replica // that are asked for, the oldest first
	started  int        // ever, for names that are never used again
	ended    sync.WaitGroup
}

// replica is one instance of a service. It runs until stop is closed.
type replica struct {
	name string
	stop chan struct{}
}

// Times of a replica, shorter than a container's so that there is something to see.
const (
	startUp = 500 * time.Millisecond // until it looks for work, and before it is started again after a failure
	grace   = 5 * time.Second        // from being told to stop until it is killed
)

// pageSize is how many changes a replica takes at a time. It bounds what is done twice where a
// partition changes hands.
const pageSize = 10

// scale asks for a number of replicas, and returns how many were asked for before. The newest go
// first. ctx ends them all, as a crash of the machine would.
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

// asked is how many replicas are asked for.
func (f *fleet) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.replicas)
}

// run is the life of a replica.
func (f *fleet) run(ctx context.Context, r *replica) {
	// Whichever partition they are of, a replica's changes go through one after the other.
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

// work runs the host of a replica, until it is to stop or ctx ends. Either way what has not ended after
// the grace is killed.
func (f *fleet) work(ctx context.Context, r *replica, throughput *rate.Limiter) error {
	life, kill := context.WithCancel(ctx)
	defer kill()
	line := lifeline.New(f.network)
	defer line.Cut()
	defer context.AfterFunc(life, line.Cut)() // a crash cuts off what is under way
	client, err := azcosmos.NewClientFromConnectionString(f.account,
		changefeedprocessor.ClientOptions(&azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: line}}))
	if err != nil {
		return err
	}
	defer client.Close()
	// .NET's defaults scaled down to a tenth, so that what takes two minutes in a real deployment is seen
	// in twelve seconds. A handler that fails has its lease released at once, as .NET has it.
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
			Log: slog.New(alive{f.log.Handler(), life}),
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
	return nil // what it did not hand back is as good as killed
}

// alive is the log of a host, which says nothing once it was killed.
type alive struct {
	slog.Handler
	life context.Context
}

func (a alive) Enabled(ctx context.Context, level slog.Level) bool {
	return a.life.Err() == nil && a.Handler.Enabled(ctx, level)
}

// handler is what the service does with changes. A batch is finished even where the replica is told to
// stop meanwhile; life is that of the replica.
func (f *fleet) handler(life context.Context, throughput *rate.Limiter) changefeedprocessor.Handler {
	if f.service.stuck {
		return func(context.Context, changefeedprocessor.Batch) error { return hang(life, nil) }
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

// wait waits; false says that the replica is to end.
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
