package changefeedprocessor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Processor is one host of a change feed processor.
type Processor struct {
	monitored, leases Container
	options           Options
	memory            *memoryStore // of a processor without a lease container; else nil
	running           atomic.Bool
}

// New describes a host of the processor that handles the changes of monitored and keeps its leases in
// leases. It makes no request. The error joins every mistake in the options.
//
// The zero Container for leases keeps them in memory: for a single process that follows a container,
// such as an informer or a cache. A later Run of the same Processor goes on where the last one ended.
func New(monitored, leases Container, o Options) (*Processor, error) {
	if err := check(monitored, leases, o); err != nil {
		return nil, err
	}
	p := &Processor{monitored: monitored, leases: leases, options: o.withDefaults()}
	if leases == (Container{}) {
		p.memory = &memoryStore{documents: map[string]map[string]json.RawMessage{}}
		if p.options.Instance == "" {
			p.options.Instance = "memory"
		}
	}
	return p, nil
}

// Run processes changes until ctx ends. Then the contexts of the handlers end, Run waits for them,
// checkpoints the batches that they finish, and hands its leases back. It returns nil if all of that
// came about within Options.Drain; otherwise the error names the leases that other hosts get once they
// expire. Nothing of it runs after Run, except a handler that does not return.
//
// Before its first write Run checks what it needs. It fails if a client was built without
// [ClientOptions], a container is missing or cannot be read, the lease container is partitioned by
// something else than /id or /partitionKey, or it has leases of this processor in the formats of two
// SDKs or in another mode. Later errors are reported and what failed is tried again; only [ErrStop] of
// a Poison function ends Run.
func (p *Processor) Run(ctx context.Context) error {
	if !p.running.CompareAndSwap(false, true) {
		return errors.New("changefeedprocessor: this Processor runs already")
	}
	defer p.running.Store(false)
	h, err := p.open(ctx)
	for err != nil && throttled(err) && ctx.Err() == nil {
		p.options.Failed("", err)
		pause(ctx, retryAfter(err, p.options.RetryDelay))
		h, err = p.open(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("changefeedprocessor: starting %q on %s: %w", p.options.Name, p.monitored, err)
	}
	return h.run(ctx)
}

// open finds the processor's leases and how they are written. It writes nothing.
func (p *Processor) open(ctx context.Context) (*host, error) {
	h, prefixes, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	return h, p.choose(ctx, h.leases, prefixes)
}

// connect looks at the containers, and says with which prefixes the ids of leases can begin.
func (p *Processor) connect(ctx context.Context) (*host, []changefeed.Prefix, error) {
	container, err := p.monitored.open()
	if err != nil {
		return nil, nil, err
	}
	var found *feedPolicy
	described, err := container.Read(context.WithValue(ctx, markKey{}, &found), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("reading container %s: %w", p.monitored, brief(err))
	}
	if found == nil {
		return nil, nil, errors.New("the client of the monitored container was built without changefeedprocessor.ClientOptions")
	}
	h := &host{
		Options: p.options,
		feed: &feed{
			container: container, policy: found, mode: p.options.mode(), name: p.monitored.String(),
			path: "/dbs/" + p.monitored.Database + "/colls/" + p.monitored.ID + "/",
		},
		leases: &leases{host: p.options.Instance, store: p.memory},
		owned:  map[string]*partition{},
		pages:  make(chan struct{}, p.options.MaxConcurrency),
	}
	h.leases.Scheme = changefeed.Scheme{ContainerRID: described.ContainerProperties.ResourceID, Mode: h.feed.mode, Start: p.options.start()}
	if p.memory == nil {
		if err := p.openLeases(ctx, h.leases); err != nil {
			return nil, nil, err
		}
	}
	endpoint, err := url.Parse(p.monitored.Client.Endpoint())
	if err != nil {
		return nil, nil, err
	}
	prefixes, err := changefeed.Identity{
		ProcessorName: p.options.Name, AccountHost: endpoint.Hostname(),
		Database: p.monitored.Database, Container: p.monitored.ID, ContainerRID: h.leases.ContainerRID,
	}.Prefixes()
	return h, prefixes, err
}

// openLeases looks at the lease container.
func (p *Processor) openLeases(ctx context.Context, s *leases) error {
	container, err := p.leases.open()
	if err != nil {
		return err
	}
	described, err := container.Read(ctx, nil)
	if err != nil {
		return fmt.Errorf("reading the lease container %s: %w", p.leases, brief(err))
	}
	s.store = containerStore{container}
	switch paths := described.ContainerProperties.PartitionKeyDefinition.Paths; {
	case slices.Equal(paths, []string{"/id"}):
	case slices.Equal(paths, []string{"/partitionKey"}):
		s.Keyed = true
	default:
		return fmt.Errorf("the lease container %s is partitioned by %s: it has to be /id or /partitionKey", p.leases, strings.Join(paths, ", "))
	}
	return nil
}

// choose finds the format of the leases that exist, or takes that of the options if there are none.
func (p *Processor) choose(ctx context.Context, s *leases, prefixes []changefeed.Prefix) error {
	found := map[changefeed.Format]string{} // prefixes
	for _, prefix := range prefixes {
		s.Prefix = strings.TrimSuffix(prefix.Text, "..")
		all, _, err := s.all(ctx)
		if err != nil {
			return err
		}
		for _, l := range all {
			format := l.Format()
			if format != changefeed.FormatJavaPK && format != changefeed.FormatJavaEPK {
				format = changefeed.FormatDotNetPK
			}
			if found[format] == "" {
				found[format] = s.Prefix
			}
			said := format == changefeed.FormatDotNetPK || format == changefeed.FormatJavaEPK && l.Continuation != ""
			if said && l.Mode != s.Mode {
				return fmt.Errorf("lease %s is of the other mode of the change feed: use another Options.Name, or delete the leases", l.ID)
			}
		}
	}
	s.Format = p.options.format()
	s.Prefix = changefeed.SchemePrefix(s.Format, prefixes)
	for format, prefix := range found {
		s.Format, s.Prefix = format, prefix
	}
	switch {
	case len(found) > 1:
		return fmt.Errorf("the lease container %s has leases of this processor in %d formats, as different SDKs write them: one of them is another processor's, and needs another Options.Name", p.leases, len(found))
	case s.Format == changefeed.FormatJavaPK && s.Mode == changefeed.FullFidelity:
		return errors.New("the leases are Java's PK leases, which know the latest version only")
	}
	return nil
}

// host is a processor that runs.
type host struct {
	Options
	feed    *feed
	leases  *leases
	stop    context.CancelFunc
	working context.Context // ends when no more work is to be begun
	life    context.Context // ends at the drain deadline, and with it every request
	pages   chan struct{}   // holds a token for each page in memory

	mu      sync.Mutex
	owned   map[string]*partition // by lease token; nil while it is being acquired
	work    sync.WaitGroup        // on what is owned
	stopped error                 // of a Poison function
}

// run is the life of a host.
func (h *host) run(ctx context.Context) error {
	var kill context.CancelFunc
	h.working, h.stop = context.WithCancel(ctx)
	h.life, kill = context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	defer h.stop()
	err := h.start()
	for err != nil && transient(err) && h.working.Err() == nil {
		h.failed("", err)
		pause(h.working, retryAfter(err, h.RetryDelay))
		err = h.start()
	}
	for first := true; h.working.Err() == nil && err == nil; first = false {
		h.balance(first)
		pause(h.working, h.AcquireInterval)
	}
	h.stop()
	drained := h.drain(kill)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("changefeedprocessor: starting %q: %w", h.Name, err)
	}
	return errors.Join(h.stopped, drained)
}

// halt has Run end with an error.
func (h *host) halt(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = fmt.Errorf("changefeedprocessor: %w", err)
	h.stop()
}

// settle is how long Run waits, after the drain deadline, for those whose requests were cut off.
const settle = time.Second

// drain waits until no lease is owned any more, at most until the deadline.
func (h *host) drain(kill context.CancelFunc) error {
	idle := make(chan struct{})
	go func() { // ends with the last handler
		h.work.Wait()
		close(idle)
	}()
	for _, wait := range []time.Duration{h.Drain, settle} {
		deadline := time.NewTimer(wait)
		select {
		case <-idle:
		case <-deadline.C:
		}
		deadline.Stop()
		kill()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var kept []string
	for token := range h.owned {
		kept = append(kept, token)
	}
	if len(kept) == 0 {
		return nil
	}
	slices.Sort(kept)
	return fmt.Errorf("changefeedprocessor: after %s these leases were not handed back, and expire: %s", h.Drain, strings.Join(kept, ", "))
}

// start sees to it that there are leases, and goes on with those that carry this host's name: it was
// killed, and is back before they expired (PartitionControllerCore.LoadLeasesAsync).
func (h *host) start() error {
	if err := h.bootstrap(); err != nil || h.working.Err() != nil {
		return err
	}
	all, err := h.cover()
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.Owner == h.Instance {
			h.take(l)
		}
	}
	return nil
}

// balance takes this host's share of the leases, one after the other (PartitionLoadBalancerCore.cs).
// One that cannot be taken keeps it from no other. A host steals from its second look on, and then one
// lease with each: P leases are spread over m hosts within P/m intervals, as measured of .NET.
func (h *host) balance(first bool) {
	began := time.Now()
	all, bad, err := h.leases.all(h.working)
	if err != nil {
		h.failed("", err)
		return
	}
	for _, err := range bad {
		h.failed("", err)
	}
	for _, l := range all {
		h.mu.Lock()
		// A list may be older than the lease that this host has: not every replica of the account is up to date.
		if p := h.owned[l.Token]; p != nil && p.since.Before(began) && l.Owner != h.Instance && l.Newer(p.current().Lease) {
			p.lose(ErrLeaseLost) // sooner than by a renewal
		}
		h.mu.Unlock()
	}
	rule := changefeed.Balance{Host: h.Instance, Expiration: h.ExpirationInterval, Min: h.MinLeases, Max: h.MaxLeases}
	wanted, stealing := rule.Take(all, time.Now())
	for _, l := range wanted {
		if stealing && first || h.take(l) && stealing {
			return
		}
	}
}

// take acquires a lease and begins to work on its partition, unless another host was quicker. What
// fails is tried again with the next look for leases.
func (h *host) take(l *changefeed.Record) (taken bool) {
	h.mu.Lock()
	p, mine := h.owned[l.Token]
	if mine || h.working.Err() != nil {
		h.mu.Unlock()
		// The lease was not renewed in time, and the work on it goes on.
		if mine && p != nil && l.Owner == h.Instance {
			_ = p.update(p.owning, h.leases.renew) // the renewals say what is wrong
		}
		return false
	}
	h.owned[l.Token] = nil
	h.mu.Unlock()
	// A request that is under way when Run is to end goes on, so that what it took is handed back.
	acquired, err := h.claim(l)
	if err != nil {
		if !errors.Is(err, ErrLeaseLost) {
			h.failed(l.Token, err)
		}
		h.disown(l.Token)
		return false
	}
	h.Acquired(l.Token)
	h.Log.Info("lease acquired", "lease", l.Token, "instance", h.Instance)
	p = newPartition(h, acquired)
	h.mu.Lock()
	h.owned[l.Token] = p
	h.mu.Unlock()
	h.work.Go(func() {
		why := p.work()
		if p.released || h.working.Err() == nil { // drain names the others
			h.disown(l.Token)
		}
		h.Released(l.Token, why)
	})
	return true
}

// claim makes this host the owner.
func (h *host) claim(l *changefeed.Record) (*changefeed.Record, error) {
	ctx, cancel := context.WithTimeout(h.life, h.ExpirationInterval)
	defer cancel()
	ranges, err := h.feed.ranges(ctx, false)
	if err != nil {
		return nil, err
	}
	h.leases.Bound(l, ranges)
	acquired, err := h.leases.acquire(ctx, l)
	if err != nil && !errors.Is(err, ErrLeaseLost) { // the answer may have been lost, and not the write
		if now, err := h.leases.again(h.life, l); err == nil {
			_, _ = h.leases.release(h.life, now) // if it fails, the lease expires
		}
	}
	return acquired, err
}

// disown forgets a lease that is not worked on any more.
func (h *host) disown(token string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.owned, token)
}

// failed reports an error that is no reason to end.
func (h *host) failed(lease string, err error) {
	if h.life.Err() != nil {
		return
	}
	h.Failed(lease, err)
	h.Log.Warn("a part of the change feed processor failed and is tried again", "lease", lease, "instance", h.Instance, "error", err.Error())
}
