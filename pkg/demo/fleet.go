package demo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"golang.org/x/time/rate"

	"github.com/feedscale/feedscale/pkg/demo/worker"
)

// fleet is the replicas of one service, as a deployment has them.
type fleet struct {
	service service
	account *worker.Account
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

// workerTiming is .NET's defaults scaled down to a tenth, so that what takes two minutes in a real
// deployment is seen in twelve seconds.
func workerTiming() worker.Timing {
	return worker.Timing{
		Acquire: 1300 * time.Millisecond, Renew: 1700 * time.Millisecond, Expiration: 6 * time.Second,
		Poll: 500 * time.Millisecond, Bootstrap: 1500 * time.Millisecond,
	}
}

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
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	// Whichever partition they are of, a replica's changes go through one after the other.
	throughput := rate.NewLimiter(rate.Limit(f.service.throughput), 1)
	for f.wait(ctx, r, startUp) {
		f.running.Add(1)
		err := f.work(ctx, r, kill, throughput)
		f.running.Add(-1)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("a replica failed and is started again", "replica", r.name, "error", err.Error())
		}
	}
}

// work runs the host of a replica, and kills it where it takes too long to stop.
func (f *fleet) work(ctx context.Context, r *replica, kill context.CancelFunc, throughput *rate.Limiter) error {
	done := make(chan struct{})
	defer close(done)
	f.ended.Go(func() {
		select {
		case <-r.stop:
		case <-done:
			return
		}
		select {
		case <-time.After(grace):
			kill()
		case <-done:
		}
	})
	return worker.Run(ctx, r.stop, worker.Options{
		Account:       f.account,
		Monitored:     worker.Container{Database: database, ID: f.service.name},
		Leases:        worker.Container{Database: database, ID: leaseContainer},
		ProcessorName: f.service.processorName,
		Host:          r.name,
		Handle:        f.handler(ctx, throughput),
		Checkpointed:  func(_ string, changes int) { f.processed.Add(int64(changes)) },
		FromBeginning: true, // as processors.yaml says
		PageSize:      pageSize,
		Timing:        workerTiming(),
		Log:           f.log,
	})
}

// handler is what the service does with changes. A batch is finished even where the replica is told
// to stop meanwhile; ctx is that of the replica.
func (f *fleet) handler(ctx context.Context, throughput *rate.Limiter) worker.Handler {
	if f.service.stuck {
		return worker.Hangs()
	}
	return func(holding context.Context, b worker.Batch) error {
		if f.faults != nil {
			if err := f.faults.strike(holding, b); err != nil {
				return err
			}
		}
		for _, change := range b.Changes {
			if err := throughput.Wait(ctx); err != nil {
				return err
			}
			if !f.service.settles {
				continue
			}
			if err := settle(ctx, f.ledger, change); err != nil {
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
