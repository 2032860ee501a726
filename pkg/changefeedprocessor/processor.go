package changefeedprocessor

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	running           atomic.Bool
}

// New describes a host of the processor that handles the changes of monitored and keeps its leases in
// leases. It makes no request. The error joins every mistake in the options.
func New(monitored, leases Container, o Options) (*Processor, error) {
	if err := check(monitored, leases, o); err != nil {
		return nil, err
	}
	return &Processor{monitored: monitored, leases: leases, options: o.withDefaults()}, nil
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
	for ; throttled(err) && ctx.Err() == nil; h, err = p.open(ctx) {
		p.options.Failed("", err)
		pause(ctx, retryAfter(err, p.options.RetryDelay))
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("changefeedprocessor: starting %q on %s: %w", p.options.Name, p.monitored, err)
	}
	return h.run(ctx)
}

// open looks at the containers and the leases that exist. It writes nothing.
func (p *Processor) open(ctx context.Context) (*host, error) {
	var learned *route
	container, described, err := p.monitored.open(context.WithValue(ctx, markKey{}, &learned), "container")
	if err != nil {
		return nil, err
	}
	if learned == nil {
		return nil, errors.New("the client of the monitored container was built without changefeedprocessor.ClientOptions")
	}
	store, kept, err := p.leases.open(ctx, "the lease container")
	if err != nil {
		return nil, err
	}
	s, paths := &leases{store, p.options.scheme()}, kept.PartitionKeyDefinition.Paths
	s.ContainerRID, s.Keyed = described.ResourceID, slices.Equal(paths, []string{"/partitionKey"})
	if !s.Keyed && !slices.Equal(paths, []string{"/id"}) {
		return nil, fmt.Errorf("the lease container %s is partitioned by %s: it has to be /id or /partitionKey", p.leases, strings.Join(paths, ", "))
	}
	if err := p.findLeases(ctx, s); err != nil {
		return nil, err
	}
	return &host{
		Options: p.options,
		feed:    &feed{container, learned, p.monitored.String()},
		leases:  s,
		owned:   map[string]bool{},
		pages:   make(chan struct{}, p.options.MaxConcurrency),
	}, nil
}

// findLeases finds the format and the prefix of the leases that exist. If there are none, .NET's are made.
func (p *Processor) findLeases(ctx context.Context, s *leases) error {
	endpoint, err := url.Parse(p.monitored.Client.Endpoint())
	if err != nil {
		return err
	}
	prefixes, err := changefeed.Identity{
		ProcessorName: p.options.Name, AccountHost: endpoint.Hostname(),
		Database: p.monitored.Database, Container: p.monitored.ID, ContainerRID: s.ContainerRID,
	}.Prefixes()
	if err != nil {
		return err
	}
	found := map[changefeed.Format]string{} // prefixes
	for _, prefix := range prefixes {
		s.Prefix = strings.TrimSuffix(prefix, "..")
		all, _, err := s.all(ctx)
		if err != nil {
			return err
		}
		for _, l := range all {
			format := l.Format
			if format.Family() == changefeed.FamilyDotNet {
				format = changefeed.FormatDotNetPK
			}
			found[format] = s.Prefix
			said := format == changefeed.FormatDotNetPK || format == changefeed.FormatJavaEPK && l.Continuation != ""
			if said && l.Mode != s.Mode {
				return fmt.Errorf("lease %s is of the other mode of the change feed: use another Options.Name, or delete the leases", l.ID)
			}
		}
	}
	s.Prefix = strings.TrimSuffix(prefixes[len(prefixes)-2], "..") // .NET's: by RIDs, with the host in lower case
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
	stop    context.CancelCauseFunc
	working context.Context // ends when no more work is to be begun
	life    context.Context // ends at the drain deadline, and with it every request
	pages   chan struct{}   // holds a token for each page in memory
	work    sync.WaitGroup  // on what is owned

	mu    sync.Mutex
	owned map[string]bool // by lease token, also while it is being acquired
}

// settle is how long Run waits, after the drain deadline, for those whose requests were cut off.
const settle = time.Second

// run is the life of a host.
func (h *host) run(ctx context.Context) error {
	var kill context.CancelFunc
	h.working, h.stop = context.WithCancelCause(ctx)
	h.life, kill = context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	err := h.insist(h.working, "", h.start)
	for first := true; h.working.Err() == nil && err == nil; first = false {
		h.balance(first)
		pause(h.working, h.AcquireInterval)
	}
	h.stop(nil)
	idle, done := context.WithCancel(context.Background())
	go func() { // ends with the last handler
		h.work.Wait()
		done()
	}()
	pause(idle, h.Drain)
	kill()
	pause(idle, settle)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("changefeedprocessor: starting %q: %w", h.Name, err)
	}
	err = nil
	if cause := context.Cause(h.working); errors.Is(cause, ErrStop) {
		err = fmt.Errorf("changefeedprocessor: %w", cause)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.owned) > 0 {
		err = errors.Join(err, fmt.Errorf("changefeedprocessor: after %s these leases were not handed back, and expire: %s",
			h.Drain, strings.Join(slices.Sorted(maps.Keys(h.owned)), ", ")))
	}
	return err
}

// balance takes this host's share of the leases, one after the other (PartitionLoadBalancerCore.cs).
// One that cannot be taken keeps it from no other. A host steals from its second look on, and then one
// lease with each: P leases are spread over m hosts within P/m intervals, as measured of .NET.
func (h *host) balance(first bool) {
	all, bad, err := h.leases.all(h.working)
	for _, err := range append(bad, err) {
		if err != nil {
			h.failed("", err)
		}
	}
	for _, l := range all {
		// It was killed, and is back before they expired (PartitionControllerCore.LoadLeasesAsync), or the
		// answer to a write of its own was lost.
		if l.Owner == h.Instance {
			h.take(l)
		}
	}
	wanted, stealing := share(h.Instance, all, time.Now(), h.ExpirationInterval)
	for _, l := range wanted {
		if stealing && first || h.take(l) && stealing {
			return
		}
	}
}

// take acquires a lease and begins to work on its partition, unless another host was quicker. What
// fails is tried again with the next look for leases.
func (h *host) take(l *changefeed.Record) (taken bool) {
	token := l.Token
	h.mu.Lock()
	if h.owned[token] || h.working.Err() != nil {
		h.mu.Unlock()
		return false
	}
	h.owned[token] = true
	h.mu.Unlock()
	// A request that is under way when Run is to end goes on, so that what it took is handed back.
	ranges, err := h.feed.ranges(h.life, false)
	if err == nil {
		h.leases.Bound(l, ranges)
		l, err = h.leases.update(h.life, l, l.Owner, func(l *changefeed.Record) { h.leases.Own(l, h.Instance) })
	}
	if err != nil {
		lost := errors.Is(err, ErrLeaseLost)
		if !lost {
			h.failed(token, err)
		}
		h.disown(token, lost)
		return false
	}
	h.Acquired(token)
	h.Log.Info("lease acquired", "lease", token, "instance", h.Instance)
	p := newPartition(h, l)
	h.work.Go(func() {
		why := p.work()
		h.disown(token, p.released)
		h.Released(token, why)
	})
	return true
}

// disown forgets a lease that is not worked on any more. When Run is to end, those that may still have
// the name of this host are kept, for its error.
func (h *host) disown(token string, released bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if released || h.working.Err() == nil {
		delete(h.owned, token)
	}
}

// insist does something again while that may help: the service throttles, or cannot be reached.
func (h *host) insist(ctx context.Context, lease string, do func() error) error {
	for {
		err := do()
		if err == nil || ctx.Err() != nil || !transient(err) {
			return err
		}
		h.failed(lease, err)
		pause(ctx, min(retryAfter(err, h.RetryDelay), h.RenewInterval))
	}
}

// failed reports an error that is no reason to end.
func (h *host) failed(lease string, err error) {
	if h.life.Err() != nil {
		return
	}
	h.Failed(lease, err)
	h.Log.Warn("a part of the change feed processor failed and is tried again", "lease", lease, "instance", h.Instance, "error", err.Error())
}
