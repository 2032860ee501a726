// Package throughput lets the request units of containers follow the replicas of processors, and gives back
// what it found (docs/throughput.md).
//
// A container is a subject of the tick, like a group: it has a document of its own in the state store, and is
// decided from the replicas of its processors, committed, and only then applied. Start with Keeper;
// decide.go has the decision, and package scaling what the replicas need.
//
// The package is internal to the program: its API may change in any release.
package throughput

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// Way reads and replaces the throughput of an account: *cosmos.Account does with a key, *cosmos.Manager
// with an identity.
type Way interface {
	ReadThroughput(context.Context, cosmos.Container) (cosmos.Throughput, error)
	ReplaceThroughput(ctx context.Context, c cosmos.Container, from cosmos.Throughput, ruPerSecond int) (cosmos.Throughput, error)
}

// Container is a configured container, or database, whose throughput follows processors.
type Container struct {
	Account    string // URL of the account
	Host       string // of the account, for messages
	Setting    string // name of the setting with its connection
	Container  cosmos.Container
	Way        Way
	Apply      bool // false = recommend
	Policy     scaling.ThroughputPolicy
	Processors []Processor // that name it
}

// Processor is a processor that names a container.
type Processor struct {
	Name         string
	RUPerReplica int  // 0 = what is measured
	Monitors     bool // the container is the one whose feed it reads
}

// names reports whether a processor names the container.
func (c *Container) names(processor string) bool {
	return slices.ContainsFunc(c.Processors, func(p Processor) bool { return p.Name == processor })
}

// document returns the name of a container's document, by its key in OldContainers, which may have characters
// that no key of a table can have.
func document(key string) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s%x", state.ContainersPrefix, sum[:16])
}

func (c *Container) document() string { return document(c.Account + c.Container.String()) }

// Want is what a processor asks for.
type Want struct {
	Replicas   *int    // of its last decision, or of its group's; nil = unknown
	Member     bool    // Replicas is what the processor alone asks for, before its group decides
	Paused     bool    // nothing is done for it
	PerReplica float64 // request units a second that one replica uses to read the monitored container; 0 = not measured
}

// Limit returns the container that the last poll of a processor found at its limit, if its throughput is
// still provisioned; nil if there is none. A nil Keeper has none.
func (k *Keeper) Limit(processor string, last *state.State) *scaling.Limit {
	if k == nil {
		return nil
	}
	for _, c := range last.Containers {
		if c.AtLimit() && slices.ContainsFunc(k.Containers, func(f *Container) bool {
			return f.Apply && f.names(processor) && c.Same(state.Container{Account: f.Host, Database: f.Container.Database, Container: f.Container.ID})
		}) {
			return &scaling.Limit{Container: c.Name(), RUPerSecond: c.Provisioned, LagBefore: last.Lag.Lag()}
		}
	}
	return nil
}

const (
	// readEvery is how long a reading counts. A change made elsewhere is noticed within that time; before a
	// change of its own, the Keeper reads again.
	readEvery = 5 * time.Minute
	// lookTime bounds the loading of documents, and the first reading of containers: the first processors
	// that are decided wait for both.
	lookTime = 5 * time.Second
	// parallel is the greatest number of containers that are read, or changed, at once.
	parallel = 16
)

// Keeper lets the throughput of containers follow processors. All methods are safe for concurrent use. Two
// processes are harmless: each change is committed to the store first, and the loser makes none.
type Keeper struct {
	Store      state.Store
	Containers []*Container
	// Open returns the way to a container that no processor names any more, by its remembered setting.
	Open func(setting string) (Way, error)
	Log  *slog.Logger

	mu       sync.Mutex
	idle     bool // nothing is configured, and nothing was left to give back
	readings map[string]reading
	wants    map[string]Want // of each processor, as far as it is known
	said     bounded.Notes   // what was logged last of each container
}

// reading is what was read of a container last.
type reading struct {
	cosmos.Throughput
	at    time.Time    // zero = never
	err   error        // of the last attempt; then the next turn reads again
	spent cosmos.Usage // not yet returned by Follow
}

// fresh reports whether a reading still counts. It does not if a change is not seen to be made, or if the
// throughput is another than remembered: another process may have changed it.
func (r reading) fresh(now time.Time, c state.Container) bool {
	if c.Found > 0 && (c.Theirs == 0 && c.Was != c.Set || r.RUPerSecond != cmp.Or(c.Theirs, c.Set)) {
		return false
	}
	return r.err == nil && !r.at.IsZero() && !r.Pending && now.Sub(r.at) < readEvery
}
