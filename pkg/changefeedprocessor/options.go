package changefeedprocessor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// Container names a container of an account.
type Container struct {
	Client       *azcosmos.Client // built with [ClientOptions]
	Database, ID string
}

func (c Container) String() string { return c.Database + "/" + c.ID }

// open returns azcosmos' client of the container, and what the account says of it.
func (c Container) open(ctx context.Context, what string) (*azcosmos.ContainerClient, *azcosmos.ContainerProperties, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	container, err := c.Client.NewContainer(c.Database, c.ID)
	if err != nil {
		return nil, nil, err
	}
	described, err := container.Read(ctx, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s %s: %w", what, c, brief(err))
	}
	return container, described.ContainerProperties, nil
}

// Mode is which change feed is read.
type Mode int

// The modes.
const (
	// LatestVersion delivers the newest version of each item that changed, and no deletes. An item of a
	// [Batch] is the document.
	LatestVersion Mode = iota
	// AllVersionsAndDeletes delivers every version and every delete. It begins now or at a checkpoint, and
	// needs an account with continuous backup. An item of a [Batch] is an envelope, which [Batch.Changes]
	// decodes.
	AllVersionsAndDeletes
)

// Handler processes a batch. Its context ends when this host lost the lease or [Processor.Run] is to
// end. Return nil after everything in the batch is done. An error, or a panic, has the same batch come
// again: see Options.Retries and Options.Poison.
type Handler func(ctx context.Context, b Batch) error

// Options describe one host of a processor. Name, Instance and Handle are needed; the zero value of
// every other field is .NET's default (ChangeFeedProcessorOptions.cs and ChangeFeedLeaseOptions.cs of
// Azure/azure-cosmos-dotnet-v3).
type Options struct {
	// Name is the same for all hosts that share the work: .NET's processorName, Java's leasePrefix, a
	// Functions trigger's LeaseContainerPrefix. It may be empty, as Functions triggers have it.
	Name string
	// Instance is the name of this host, and is the Owner in its leases. No two hosts that run at the same
	// time may have the same. A host that comes back under its name goes on with its leases at once.
	Instance string
	// Handle is called with each batch; for one lease never twice at once.
	Handle Handler

	Mode          Mode      // which change feed is read; default LatestVersion
	FromBeginning bool      // a lease without a checkpoint is read from the first change on; default: from now
	StartTime     time.Time // a lease without a checkpoint is read from this time on, in whole seconds

	// MaxItems is how many changes a page has at most; default 100. One transaction is never parted, so a
	// page may have more.
	MaxItems        int
	MaxConcurrency  int           // how many pages this host holds at once; default 64
	PollInterval    time.Duration // between reads of a feed that has nothing new; default 5 s
	AcquireInterval time.Duration // between looks for leases to take; default 13 s
	RenewInterval   time.Duration // between renewals of an owned lease; default 17 s
	// ExpirationInterval is the time after which other hosts take a lease that was not renewed; default
	// 60 s. All hosts of a processor must agree on it.
	ExpirationInterval time.Duration
	Drain              time.Duration // for which Run waits for handlers at its end; default 30 s

	Manual bool // leaves checkpoints to [Batch.Checkpoint]; default: after each batch that was handled
	// Retries is how often a failing handler is called again while its lease is held; default 5. A negative
	// number is never, as in .NET, which releases the lease at once.
	Retries int
	// RetryDelay is the time before the first of them, and doubles with each, up to 30 s; default 1 s.
	RetryDelay time.Duration
	// Poison decides about an item that fails every time, and gets it alone: the batch is halved until the
	// item is found. If it returns nil, the item counts as handled. An error leaves the batch unhandled and
	// has the lease released; [ErrStop] ends Run. [Skip] and [Stop] are two of them; one of your own may
	// write the item to a dead-letter container. Default: the lease is released, and the batch comes again.
	Poison func(ctx context.Context, p Poisoned) error

	// Acquired is told the token of each lease that this host took. It must not wait; neither must the
	// other callbacks.
	Acquired func(lease string)
	// Released is told the token of each lease that this host gave up, and why: nil at the end of Run,
	// [ErrLeaseLost], [ErrLeaseReplaced] after a split or merge, or the error of the handler or the feed.
	Released func(lease string, why error)
	// Failed is told every error that is not the end of Run. The lease is "" if it concerns several.
	Failed func(lease string, err error)
	// Observe is told of every read, and of every page once it is checkpointed, for metrics.
	Observe func(Observation)
	// Log gets acquired and released leases at level Info, what is tried again at Warn. Default: nothing.
	Log *slog.Logger
}

// Observation is a read of the feed of a lease, or the end of the page that it brought.
type Observation struct {
	Lease        string        // lease token
	Items        int           // changes in the page; 0 for a read that found none
	Charge       float64       // request units of the read
	Took         time.Duration // of the read or, if Checkpointed, of the handler
	Checkpointed bool          // the page was handled and checkpointed; false for the read
}

// Poisoned is an item whose handler fails every time.
type Poisoned struct {
	Lease string          // lease token
	Item  json.RawMessage // as in [Batch.Items]
	ID    string          // of the document; "" if the item has none
	Err   error           // of the handler
}

// ErrStop ends [Processor.Run] when a Poison function returns it or wraps it.
var ErrStop = errors.New("a change cannot be handled, and the processor is to stop")

// ErrLeaseLost says that another host has the lease, or that it could not be renewed in time.
var ErrLeaseLost error = final{errors.New("the lease is lost")}

// ErrLeaseReplaced says that the partition of the lease was split or merged.
var ErrLeaseReplaced = errors.New("other leases replaced the lease after a split or merge")

// Skip is a Poison function that leaves the item out. The log names it.
func Skip(context.Context, Poisoned) error { return nil }

// Stop is a Poison function that ends [Processor.Run] with an error that names the item.
func Stop(context.Context, Poisoned) error { return ErrStop }

// maxRetryDelay bounds the time before a failing handler is called again.
const maxRetryDelay = 30 * time.Second

func (o Options) withDefaults() Options {
	o.MaxItems = cmp.Or(o.MaxItems, 100)
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 64)
	o.PollInterval = cmp.Or(o.PollInterval, 5*time.Second)
	o.AcquireInterval = cmp.Or(o.AcquireInterval, 13*time.Second)
	o.RenewInterval = cmp.Or(o.RenewInterval, 17*time.Second)
	o.ExpirationInterval = cmp.Or(o.ExpirationInterval, 60*time.Second)
	o.Drain = cmp.Or(o.Drain, 30*time.Second)
	o.Retries = max(0, cmp.Or(o.Retries, 5))
	o.RetryDelay = cmp.Or(o.RetryDelay, time.Second)
	if o.Acquired == nil {
		o.Acquired = func(string) {}
	}
	if o.Released == nil {
		o.Released = func(string, error) {}
	}
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

// scheme is how leases are written where there are none: as .NET does.
func (o Options) scheme() changefeed.Scheme {
	s := changefeed.Scheme{Format: changefeed.FormatDotNetPK, Start: changefeed.StartFrom{Beginning: o.FromBeginning}}
	if !o.StartTime.IsZero() {
		s.Start = changefeed.StartAt(o.StartTime)
	}
	if o.Mode == AllVersionsAndDeletes {
		s.Mode = changefeed.FullFidelity
	}
	return s
}

// check returns every mistake in what New got.
func check(monitored, leases Container, o Options) error {
	var mistakes []error
	mistake := func(is bool, format string, args ...any) {
		if is {
			mistakes = append(mistakes, fmt.Errorf("changefeedprocessor: "+format, args...))
		}
	}
	container := func(c Container, what string) {
		mistake(c.Client == nil, "the %s has no Client", what)
		mistake(c.Database == "", "the %s has no Database", what)
		mistake(c.ID == "", "the %s has no ID", what)
	}
	container(monitored, "monitored container")
	container(leases, "lease container")
	mistake(o.Instance == "", "Options.Instance is empty: give each host a name of its own, such as its host name")
	mistake(changefeed.Visible(o.Instance) != o.Instance, "Options.Instance is longer than %d bytes, or has characters that cannot be seen", changefeed.MaxName)
	mistake(strings.ContainsAny(o.Name, `/\?#`), `Options.Name %q has a character that the id of a document must not have: one of / \ ? #`, o.Name)
	mistake(o.Handle == nil, "Options.Handle is missing")
	mistake(o.Mode < LatestVersion || o.Mode > AllVersionsAndDeletes, "Options.Mode %d is not a mode", o.Mode)
	mistake(o.FromBeginning && !o.StartTime.IsZero(), "Options.FromBeginning and Options.StartTime are both set")
	mistake(o.Mode == AllVersionsAndDeletes && (o.FromBeginning || !o.StartTime.IsZero()), "all versions and deletes can be read from now or from a checkpoint, and not from the beginning or a time")
	mistake(o.MaxItems < 0, "Options.MaxItems is negative")
	mistake(o.MaxConcurrency < 0, "Options.MaxConcurrency is negative")
	mistake(min(o.PollInterval, o.AcquireInterval, o.RenewInterval, o.ExpirationInterval) < 0, "an interval of Options is negative")
	mistake(o.Drain < 0, "Options.Drain is negative")
	mistake(o.RetryDelay < 0, "Options.RetryDelay is negative")
	set := o.withDefaults()
	mistake(set.RenewInterval >= set.ExpirationInterval, "Options.RenewInterval %s must be below ExpirationInterval %s, or leases expire while they are in use", set.RenewInterval, set.ExpirationInterval)
	return errors.Join(mistakes...)
}
