package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// Options describe a host. Every field is needed.
type Options struct {
	Account       *Account
	Monitored     Container // its changes are processed, from the beginning
	Leases        Container // partitioned by /id, with time to live switched on
	ProcessorName string    // the same for all hosts that share the work; may be empty
	Host          string    // name of this host, unlike that of any other
	// Handle processes a page of changes of one partition, in their order. A checkpoint follows
	// where it returns nil; an error gives the partition up, for this or another host to begin
	// again behind the last checkpoint. Its context ends when the partition was lost or the host is
	// killed.
	Handle func(ctx context.Context, partition string, changes []json.RawMessage) error
	// Checkpointed is told of every page that was checkpointed. What was handled again because a
	// partition changed hands is told of once.
	Checkpointed func(partition string, changes int)
	PageSize     int // changes in a page, at least 1; one transaction is never parted
	Timing       Timing
	Now          func() time.Time
	Log          *slog.Logger
}

// Timing is the pace of a host. The SDK's defaults stand behind each.
type Timing struct {
	Acquire    time.Duration // between looks for leases to take; 13 s
	Renew      time.Duration // between renewals of an owned lease; 17 s
	Expiration time.Duration // after which a lease that was not renewed is free; 60 s
	Poll       time.Duration // between reads of a feed that has nothing new; 5 s
	Bootstrap  time.Duration // between looks whether another host has created the leases; 15 s
}

// Run processes changes until stop is closed or ctx ends. After stop it finishes the pages under
// way, checkpoints them and releases its leases; a handler that hangs holds it up. When ctx ends it
// returns as a killed process does: its leases stay as they are until they expire. The error says
// why the processor could not start; what fails later is logged and tried again.
func Run(ctx context.Context, stop <-chan struct{}, o Options) error {
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
	if err := h.bootstrap(ctx); err != nil {
		halt()
		return fmt.Errorf("starting host %s: %w", o.Host, err)
	}
	for running.Err() == nil {
		if err := h.balance(ctx); err != nil && ctx.Err() == nil {
			h.Log.Warn("leases cannot be taken", "host", h.Host, "error", err.Error())
		}
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

// bootstrap sees to it that there is a lease for every partition: one host creates them, the others
// wait for it.
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

// balance takes this host's share of the leases.
func (h *host) balance(ctx context.Context) error {
	all, err := h.leases.list(ctx)
	if err != nil {
		return err
	}
	for _, l := range take(all, h.Host, h.Now(), h.Timing.Expiration) {
		if err := h.process(ctx, l); err != nil && !errors.Is(err, errLost) {
			return err
		}
	}
	return nil
}

// process acquires a lease and begins to work on its partition; errLost where another host was
// quicker.
func (h *host) process(ctx context.Context, l leasefake.DotNetLease) error {
	if h.running.Err() != nil || !h.claim(l.Token) {
		return nil
	}
	acquired, err := h.leases.acquire(ctx, l)
	if err != nil {
		h.disclaim(l.Token)
		return err
	}
	h.tasks.Go(func() {
		successors := h.work(ctx, acquired)
		h.disclaim(l.Token)
		for _, successor := range successors {
			if err := h.process(ctx, successor); err != nil && !errors.Is(err, errLost) {
				h.Log.Warn("the lease of a partition that was split or merged cannot be taken", "lease", successor.ID, "error", err.Error())
			}
		}
	})
	return nil
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
