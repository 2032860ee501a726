// Package throughput lets the request units of containers follow the replicas of processors, and gives back
// what it found (docs/throughput.md).
//
// A container is a subject of the tick, like a group: it has a document of its own in the state store, and is
// decided from the replicas of its processors, committed, and only then applied. Start with Keeper; turn.go
// has its tick, and package scaling what the replicas need.
//
// The package is internal to the program: its API may change in any release.
package throughput

import (
	"context"
	"crypto/sha256"
	"errors"
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

// Client reads and replaces the throughput of an account: *cosmos.Account does with a key, *manager.Manager
// with an identity.
type Client interface {
	ReadThroughput(context.Context, cosmos.Container) (cosmos.Throughput, error)
	ReplaceThroughput(ctx context.Context, c cosmos.Container, from cosmos.Throughput, ruPerSecond int) (cosmos.Throughput, error)
}

// Container is a configured container, or database, whose throughput follows processors.
type Container struct {
	Account    string // URL of the account
	Host       string // of the account, for messages
	Setting    string // name of the setting with its connection
	Container  cosmos.Container
	Client     Client
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

// Limit returns the container that the last poll of a processor found at its limit; nil if there is none, or
// nothing is provisioned for the processor any more. A nil Keeper has none.
func (k *Keeper) Limit(processor string, last *state.State) *scaling.Limit {
	i := slices.IndexFunc(last.Containers, state.Container.AtLimit)
	if k == nil || i < 0 || !slices.ContainsFunc(k.Containers, func(c *Container) bool { return c.Apply && c.names(processor) }) {
		return nil
	}
	c := last.Containers[i]
	return &scaling.Limit{Container: c.Name(), RUPerSecond: c.Provisioned, LagBefore: last.Lag.Lag()}
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
	// Open returns the client of a container that no processor names any more, by its remembered setting.
	Open func(setting string) (Client, error)
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
	at  time.Time // zero = never
	err error     // of the last attempt; then the next turn reads again
}

// fresh reports whether a reading still counts. It does not if a change is not seen to be made, or if the
// throughput is another than remembered: another process may have changed it.
func (r reading) fresh(now time.Time, c state.Container) bool {
	changed := c.Found > 0 && (c.Was != c.Set || r.RUPerSecond != c.Provisioned)
	return !changed && r.err == nil && !r.at.IsZero() && !r.Pending && now.Sub(r.at) < readEvery
}

// demands returns the needs of the processors that name the container and are not paused.
func (c *Container) demands(wants map[string]Want) (all []scaling.Demand) {
	for _, p := range c.Processors {
		w := wants[p.Name]
		if w.Paused {
			continue
		}
		d := scaling.Demand{Processor: p.Name, PerReplica: float64(p.RUPerReplica), Undecided: w.Replicas == nil}
		if d.PerReplica == 0 && p.Monitors {
			d.PerReplica = w.PerReplica
		}
		if w.Replicas != nil {
			d.Replicas = *w.Replicas
		}
		all = append(all, d)
	}
	return all
}

// pausedNote is the note of a container whose processors are all paused.
const pausedNote = "paused: what was found is given back"

// decide returns what to remember of a container, and the throughput that it gets now: from what was
// remembered, what was read, and what its processors need. Without demands it gives back what was found.
func (c *Container) decide(now time.Time, last state.Container, r reading, demands []scaling.Demand) (next state.Container, target int) {
	next = last
	if len(c.Processors) > 0 {
		next.Account, next.Setting, next.Min, next.Max = c.Host, c.Setting, c.Policy.Min, c.Policy.Max
		next.Database, next.Container = c.Container.Database, c.Container.ID
	}
	follows := len(demands) > 0
	target = r.RUPerSecond
	back := last.Found > 0 && (!c.Apply || !follows)
	switch {
	case back && errors.Is(r.err, cosmos.ErrMissing):
		forget(&next)
		next.Note = "it is gone, and what was found in it with it"
		return next, target
	case r.err != nil:
		next.Error = r.err.Error()
		return next, target
	case r.at.IsZero():
		return next, target
	}
	next.Provisioned = r.RUPerSecond
	switch {
	case back:
		if target = giveBack(&next, r.Throughput); next.Found > 0 || !follows {
			return next, target
		}
	case !follows:
		next.Note = pausedNote
		return next, target
	}
	if next.Apply != c.Apply {
		next.Apply, next.Memory, next.Was, next.Set = c.Apply, scaling.ThroughputMemory{}, 0, 0
	}
	d, memory := scaling.DecideThroughput(scaling.ThroughputInput{
		Now: now, Before: next.Found, Demands: demands, Policy: c.Policy, Memory: next.Memory,
		Provisioned: scaling.ProvisionedThroughput{RUPerSecond: r.RUPerSecond, Autoscale: r.Autoscale, Minimum: r.Minimum, Pending: r.Pending},
	})
	next.Decision = &d
	if c.Apply {
		target = apply(&next, r.Throughput, d.RUPerSecond, memory)
	} else {
		next.Memory = memory
	}
	next.Bill(now)
	return next, target
}

// apply returns what to provision for a decision, and notes the change.
func apply(next *state.Container, read cosmos.Throughput, decided int, memory scaling.ThroughputMemory) int {
	if next.Found > 0 && theirs(next, read) {
		next.Note = fmt.Sprintf("somebody else provisioned %d RU/s in place of %d: that is left alone until throughput is switched off and on again", read.RUPerSecond, next.Set)
		return read.RUPerSecond
	}
	next.Memory = memory
	if next.Found == 0 {
		if decided == read.RUPerSecond {
			return decided
		}
		next.Found, next.Autoscale, next.Was, next.Set = read.RUPerSecond, read.Autoscale, read.RUPerSecond, read.RUPerSecond
	}
	// Without a change now, the last one is seen to be made: from here on, the value before it is somebody
	// else's.
	change(next, read.RUPerSecond, decided)
	return decided
}

// giveBack decides the throughput of a container that follows nothing any more. It forgets what was found
// once that is there again, or if somebody else changed the throughput.
func giveBack(next *state.Container, read cosmos.Throughput) (target int) {
	target = max(next.Found, read.Minimum)
	switch {
	case theirs(next, read):
		next.Note = fmt.Sprintf("somebody else provisioned %d RU/s in place of %d: that is left alone, and the %d that were found are forgotten", read.RUPerSecond, next.Set, next.Found)
		forget(next)
		return read.RUPerSecond
	case read.RUPerSecond == target:
		forget(next)
	case read.Pending: // until the change that is under way has been made
		return read.RUPerSecond
	default:
		change(next, read.RUPerSecond, target)
	}
	return target
}

// forget drops what was found in a container, and what was made of it.
func forget(c *state.Container) {
	c.Found, c.Was, c.Set, c.Late, c.Autoscale, c.Memory = 0, 0, 0, 0, false, scaling.ThroughputMemory{}
}

// change notes a change from what was read. If the last change is not seen to be made, another process may
// have committed it and still make it: that value is ours, too.
func change(c *state.Container, from, to int) {
	if from != c.Set {
		c.Late = c.Set
	}
	c.Was, c.Set = from, to
}

// theirs reports whether somebody else changed the throughput. If a process ended between committing a change
// and making it, the values before and after it are both ours, until somebody else's was seen.
func theirs(c *state.Container, read cosmos.Throughput) bool {
	if read.Autoscale == c.Autoscale && (read.RUPerSecond == c.Set || read.RUPerSecond == c.Was || read.RUPerSecond == c.Late) {
		return false
	}
	c.Was, c.Late = c.Set, 0
	return true
}
