package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// Options describe a host. Those without a default are needed.
type Options struct {
	Account       *Account
	Monitored     Container // its changes are processed
	Leases        Container // partitioned by /id, with time to live switched on
	ProcessorName string    // the same for all hosts that share the work; may be empty
	Host          string    // name of this host, unlike that of any other
	Handle        Handler
	// Checkpointed is told of every batch that was checkpointed. What was handled again because a
	// partition changed hands is told of once. Default: nobody.
	Checkpointed func(partition string, changes int)
	// FromBeginning has a lease without a continuation read from the first change on, as
	// WithStartTime(DateTime.MinValue) does. Default: from now, see position in partition.go.
	FromBeginning bool
	// CheckpointUnchanged has the position checkpointed where a read finds nothing new, too. .NET
	// does not; Java does since Azure/azure-sdk-for-java#43013, where the position differs from the
	// one in the lease since #46521.
	CheckpointUnchanged bool
	PageSize            int          // changes in a batch; one transaction is never parted. Default: 100
	Timing              Timing       // zeros stand for .NET's defaults
	Log                 *slog.Logger // default: nobody
}

// Timing is the pace of a host.
type Timing struct {
	Acquire    time.Duration // between looks for leases to take; default 13 s
	Renew      time.Duration // between renewals of an owned lease; default 17 s
	Expiration time.Duration // after which a lease that was not renewed may be taken; default 60 s
	Poll       time.Duration // between reads of a feed that has nothing new; default 5 s
	Bootstrap  time.Duration // between looks whether another host has created the leases; default 15 s
}

// The defaults of .NET: ChangeFeedLeaseOptions.cs, ChangeFeedProcessorOptions.cs and
// BootstrapperCore.cs of Azure/azure-cosmos-dotnet-v3.
const (
	defaultAcquire    = 13 * time.Second
	defaultRenew      = 17 * time.Second
	defaultExpiration = 60 * time.Second
	defaultPoll       = 5 * time.Second
	defaultBootstrap  = 15 * time.Second
	defaultPageSize   = 100 // of the REST API, since .NET leaves the number to the service
)

func (o Options) withDefaults() Options {
	o.PageSize = cmp.Or(o.PageSize, defaultPageSize)
	o.Timing = Timing{
		Acquire:    cmp.Or(o.Timing.Acquire, defaultAcquire),
		Renew:      cmp.Or(o.Timing.Renew, defaultRenew),
		Expiration: cmp.Or(o.Timing.Expiration, defaultExpiration),
		Poll:       cmp.Or(o.Timing.Poll, defaultPoll),
		Bootstrap:  cmp.Or(o.Timing.Bootstrap, defaultBootstrap),
	}
	if o.Checkpointed == nil {
		o.Checkpointed = func(string, int) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Run processes changes until stop is closed or ctx ends. After stop it waits for the handlers,
// whose contexts end, checkpoints the batches that they finish nevertheless and releases its
// leases; a handler that hangs holds it up. When ctx ends it returns as a killed process does: its
// leases stay as they are until they expire. The error says why the processor could not start; what
// fails later is logged and tried again.
func Run(ctx context.Context, stop <-chan struct{}, o Options) error {
	o = o.withDefaults()
	leases, err := openLeases(ctx, o)
	if err != nil {
		return fmt.Errorf("starting host %s: %w", o.Host, err)
	}
	running, halt := context.WithCancel(ctx)
	defer halt()
	h := &host{Options: o, leases: leases, running: running, owned: map[string]bool{}}
	h.tasks.Go(func() {
		select {
		case <-stop:
			halt()
		case <-running.Done():
		}
	})
	defer h.tasks.Wait()
	if err := h.start(ctx); err != nil {
		halt()
		return fmt.Errorf("starting host %s: %w", o.Host, err)
	}
	for running.Err() == nil {
		h.balance(ctx)
		pause(running, h.Timing.Acquire)
	}
	return nil
}

// host is a running host.
type host struct {
	Options
	leases  *leases
	running context.Context // ends when no more work is to be begun
	tasks   sync.WaitGroup

	mu    sync.Mutex
	owned map[string]bool // lease tokens of the partitions that are being processed here
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// start sees to it that there are leases, and goes on with those that carry this host's name: it
// was killed, and is back before they expired (PartitionControllerCore.LoadLeasesAsync).
func (h *host) start(ctx context.Context) error {
	if err := h.bootstrap(ctx); err != nil || h.running.Err() != nil {
		return err
	}
	all, err := h.leases.list(ctx)
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.OwnedBy(h.Host) {
			h.take(ctx, l)
		}
	}
	return nil
}

// bootstrap sees to it that there is a lease for every partition: one host creates them, the others
// wait for it (BootstrapperCore). What is missing later is not created.
func (h *host) bootstrap(ctx context.Context) error {
	for h.running.Err() == nil {
		done, err := h.leases.initialized(ctx)
		if done || err != nil {
			return err
		}
		tag, locked, err := h.leases.lock(ctx)
		if err != nil {
			return err
		}
		if !locked {
			pause(h.running, h.Timing.Bootstrap)
			continue
		}
		return errors.Join(h.createLeases(ctx), h.leases.unlock(ctx, tag))
	}
	return nil
}

func (h *host) createLeases(ctx context.Context) error {
	ranges, err := h.Account.ranges(ctx, h.Monitored)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if _, _, err := h.leases.add(ctx, h.leases.processor.PKLease(r.ID, r.span(), leasefake.Fields{})); err != nil {
			return err
		}
	}
	return h.leases.markInitialized(ctx)
}

// balance takes this host's share of the leases, one after the other (PartitionLoadBalancerCore).
// One that cannot be taken keeps it from no other.
func (h *host) balance(ctx context.Context) {
	all, err := h.leases.list(ctx)
	if err != nil {
		if ctx.Err() == nil {
			h.Log.Warn("leases cannot be taken", "host", h.Host, "error", err.Error())
		}
		return
	}
	for _, l := range share(all, h.Host, time.Now(), h.Timing.Expiration) {
		h.take(ctx, l)
	}
}

// take acquires a lease and begins to work on its partition, unless another host was quicker.
func (h *host) take(ctx context.Context, l leasefake.DotNetLease) {
	if h.running.Err() != nil {
		return
	}
	if !h.claim(l.Token) {
		// The lease was not renewed in time, but the work on it goes on. The SDK says so in the
		// lease.
		if l.OwnedBy(h.Host) {
			h.tell(ctx, l.ID, "a lease cannot be renewed", h.leases.renew(ctx, l.ID))
		}
		return
	}
	acquired, err := h.acquire(ctx, l)
	if err != nil {
		h.disclaim(l.Token)
		h.tell(ctx, l.ID, "a lease cannot be taken", err)
		// The SDK gives back what it could not take: this finds that another host has the lease.
		h.tell(ctx, l.ID, "a lease cannot be released", h.leases.release(ctx, l.ID))
		return
	}
	h.tasks.Go(func() {
		h.work(ctx, acquired)
		h.disclaim(l.Token)
	})
}

// acquire makes this host the owner of a lease. One that dates from before leases said their range
// says it from then on (DocumentServiceLeaseManagerCosmos.AcquireAsync).
func (h *host) acquire(ctx context.Context, l leasefake.DotNetLease) (leasefake.DotNetLease, error) {
	if l.FeedRange == nil {
		ranges, err := h.Account.ranges(ctx, h.Monitored)
		if err != nil {
			return leasefake.DotNetLease{}, err
		}
		for _, r := range ranges {
			if r.ID == l.Token {
				l.FeedRange = &leasefake.FeedRange{Range: r.span()}
			}
		}
	}
	return h.leases.acquire(ctx, l)
}

// tell logs an error, unless it is that of a lease that is another host's by now, or comes of the
// host being killed.
func (h *host) tell(ctx context.Context, leaseID, what string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLost) {
		h.Log.Warn(what, "lease", leaseID, "error", err.Error())
	}
}

func (h *host) claim(token string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.owned[token] {
		return false
	}
	h.owned[token] = true
	return true
}

func (h *host) disclaim(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.owned, token)
}
