// Package throughput provisions the request units that the replicas of processors need, and gives back
// what it found (docs/throughput.md).
//
// What is to be provisioned is decided in package scaling; how it is read and replaced, in package
// cosmos. This package does the one after the other, remembers in the state store what it found before it
// changes anything, and leaves alone what somebody else changed. Start with Keeper.Settle: settle.go has
// its steps, and decide.go what follows from what was read.
//
// The package is internal to the program: its API may change in any release.
package throughput

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

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

// Container is one container, or database, whose throughput follows processors.
type Container struct {
	Account   string // URL of the account, which tells containers of the same names apart
	Setting   string // name of the setting with its connection
	Container cosmos.Container
	Way       Way
	Apply     bool // false = only say what is needed
	Policy    scaling.ThroughputPolicy
	Demands   []scaling.Demand           // of all processors that name it
	Last      *state.ContainerThroughput // what an earlier process recommended; nil = nothing
}

// key is the name of a container in what is remembered.
func (c Container) key() string { return c.Account + c.Container.String() }

// Outcome is what became of one container.
type Outcome struct {
	Container   cosmos.Container
	Account     string
	Apply       bool                        // it is to be changed, rather than only said
	Provisioned int                         // request units a second, when it was read last; 0 = it never was
	Found       int                         // before the first change; 0 = nothing was changed
	Decision    *scaling.ThroughputDecision // nil where the throughput could not be read
	Memory      scaling.ThroughputMemory    // for the next recommendation
	Applied     bool                        // it was changed
	Restored    bool                        // what was found is there again, and forgotten
	Note        string                      // what somebody else did; "" = nothing
	Err         error                       // what could not be read or changed, and what to do
}

const (
	// readEvery is how long what was read of a container counts while nothing is to be changed: so long
	// somebody else's change may stay unnoticed. Before a change it is read again.
	readEvery = 5 * time.Minute
	// parallel is the greatest number of containers that are read, or changed, at once.
	parallel = 16
)

// Keeper provisions. Settle is not safe for concurrent use in one process; Look, Preview and Spent are,
// beside it, too. Two processes do each other no harm, since each change is committed to the store before
// it is made, and the loser makes none.
type Keeper struct {
	Store state.Store
	// Open returns the way to a container that no processor names any more, by the setting that was
	// remembered.
	Open func(setting string) (Way, error)

	mu   sync.Mutex
	seen map[string]seen // by key
}

// seen is what is known of a container.
type seen struct {
	read    cosmos.Throughput
	at      time.Time // when it was read; zero = never
	err     error     // of the last attempt, after which it is read again at once
	entry   *state.Provisioning
	virtual virtual
	spent   cosmos.Usage // that was not told yet
}

// virtual is what would be there if a recommendation were followed.
type virtual struct {
	real        int // what is provisioned; another number begins it anew
	ruPerSecond int
	memory      scaling.ThroughputMemory
}

// fresh reports whether what was read still counts: not where a change is remembered that was not seen to
// be made, or another throughput than that, since another process may have been here.
func (s seen) fresh(now time.Time) bool {
	if e := s.entry; e != nil && (e.Theirs == 0 && e.Was != e.Set || s.read.RUPerSecond != cmp.Or(e.Theirs, e.Set)) {
		return false
	}
	return s.err == nil && !s.at.IsZero() && !s.read.Pending && now.Sub(s.at) < readEvery
}

func (k *Keeper) know(key string) seen {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[key]
}

// learn changes what is known of a container.
func (k *Keeper) learn(key string, change func(*seen)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		k.seen = map[string]seen{}
	}
	s := k.seen[key]
	change(&s)
	k.seen[key] = s
}

// read reads the throughput of a container.
func (k *Keeper) read(ctx context.Context, now time.Time, key string, c cosmos.Container, way Way) error {
	read, err := way.ReadThroughput(ctx, c)
	k.learn(key, func(s *seen) {
		s.spent.Add(read.Usage)
		if s.err = err; err == nil {
			s.read, s.at = read, now
		}
	})
	return err
}

// Look reads the containers that were never read, so that Preview can tell of them.
func (k *Keeper) Look(ctx context.Context, now time.Time, containers []Container) error {
	remembered, _, err := k.load(ctx)
	if err != nil {
		return err
	}
	each(containers, func(c Container) {
		k.learn(c.key(), func(s *seen) {
			if entry, ok := remembered[c.key()]; ok {
				s.entry = &entry
			}
		})
		if k.know(c.key()).at.IsZero() {
			_ = k.read(ctx, now, c.key(), c.Container, c.Way) // Preview tells
		}
	})
	return nil
}

// load returns what is remembered, by key.
func (k *Keeper) load(ctx context.Context) (map[string]state.Provisioning, state.Version, error) {
	var remembered state.Provisionings
	documents, err := k.Store.Documents(ctx, state.ThroughputName)
	if err != nil || len(documents) == 0 {
		return nil, "", err
	}
	err = documents[0].Decode(&remembered)
	return remembered.Containers, documents[0].Version, err
}

// Preview tells what a container needs, from what was read of it last. It makes no request and changes
// nothing.
func (k *Keeper) Preview(now time.Time, c Container) Outcome {
	s := k.know(c.key())
	out, _ := c.decide(now, &s)
	return out
}

// Spent returns what reading and changing a container has cost since it was asked last.
func (k *Keeper) Spent(c Container) (spent cosmos.Usage) {
	k.learn(c.key(), func(s *seen) { spent, s.spent = s.spent, cosmos.Usage{} })
	return spent
}

// each calls do for all, at most parallel at once, and waits for all.
func each[T any](all []T, do func(T)) {
	var calls errgroup.Group
	calls.SetLimit(parallel)
	for _, one := range all {
		calls.Go(func() error {
			do(one)
			return nil
		})
	}
	_ = calls.Wait() // do reports no error
}
