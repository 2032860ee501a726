// Package throughput provisions the request units that the replicas of processors need, and gives back
// what it found (docs/throughput.md).
//
// What is to be provisioned is decided in package scaling; how it is read and replaced, in package
// cosmos. This package does the one after the other, remembers in the state store what it found before it
// changes anything, and leaves alone what somebody else changed. Start with Keeper.Settle.
//
// The package is internal to the program: its API may change in any release.
package throughput

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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
	Demands   []scaling.Demand // of all processors that name it
}

// key is the name of a container in what is remembered.
func (c Container) key() string { return c.Account + c.Container.String() }

// Outcome is what became of one container.
type Outcome struct {
	Container cosmos.Container
	Account   string
	Apply     bool                        // it is to be changed, rather than only said
	Decision  *scaling.ThroughputDecision // nil where the throughput could not be read
	Applied   bool                        // it was changed
	Restored  bool                        // what was found is there again, and forgotten
	Note      string                      // what somebody else did; "" = nothing
	Err       error                       // what could not be read or changed, and what to do
}

// Keeper provisions. It is not safe for concurrent use; two of two processes are, since each change is
// committed to the store before it is made, and the loser makes none.
type Keeper struct {
	Store state.Store
	// Open returns the way to a container that no processor names any more, by the setting that was
	// remembered.
	Open func(setting string) (Way, error)

	recommended map[string]scaling.ThroughputMemory // of containers that are not provisioned
}

// Settle provisions what containers need, and gives back what was found in those that are not among them,
// or not to be provisioned, any more. It returns an outcome for each of both; the error is about the
// store, without which nothing is changed.
func (k *Keeper) Settle(ctx context.Context, now time.Time, containers []Container) ([]Outcome, error) {
	record, err := k.Store.Load(ctx, state.ThroughputName)
	if err != nil {
		return nil, err
	}
	t := &turn{Keeper: k, now: now, version: record.Version, entries: maps.Clone(record.State.Throughput)}
	if t.entries == nil {
		t.entries = map[string]state.Provisioning{}
	}
	var outcomes []Outcome
	kept := map[string]bool{}
	for _, c := range containers {
		if c.Apply {
			kept[c.key()] = true
			outcomes = append(outcomes, t.apply(ctx, c))
		} else {
			outcomes = append(outcomes, t.recommend(ctx, c))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.entries)) {
		if !kept[key] {
			outcomes = append(outcomes, t.restore(ctx, key, containers))
		}
	}
	return outcomes, t.failed
}

// turn is one call of Settle.
type turn struct {
	*Keeper
	now     time.Time
	version state.Version
	entries map[string]state.Provisioning
	failed  error // of the store: nothing is changed any more
}

// save commits what is remembered. Only then may the throughput be changed.
func (t *turn) save(ctx context.Context, key string, entry *state.Provisioning) error {
	if t.failed != nil {
		return t.failed
	}
	if entry == nil {
		delete(t.entries, key)
	} else {
		t.entries[key] = *entry
	}
	err := t.Store.Commit(ctx, t.version, state.State{Processor: state.ThroughputName, Throughput: t.entries}, nil)
	if err == nil {
		var record state.Record
		if record, err = t.Store.Load(ctx, state.ThroughputName); err == nil {
			t.version = record.Version
		}
	}
	if err != nil {
		t.failed = fmt.Errorf("what is provisioned cannot be remembered, so nothing is changed: %w", err)
	}
	return t.failed
}

// decide asks what a container needs.
func (c Container) decide(now time.Time, read cosmos.Throughput, before int, memory scaling.ThroughputMemory) (scaling.ThroughputDecision, scaling.ThroughputMemory) {
	return scaling.DecideThroughput(scaling.ThroughputInput{
		Now: now, Before: before, Demands: c.Demands, Policy: c.Policy, Memory: memory,
		Provisioned: scaling.Provisioned{RUPerSecond: read.RUPerSecond, Autoscale: read.Autoscale, Minimum: read.Minimum, Pending: read.Pending},
	})
}

// recommend says what a container needs, and changes nothing.
func (t *turn) recommend(ctx context.Context, c Container) Outcome {
	out := Outcome{Container: c.Container, Account: c.Account}
	read, err := c.Way.ReadThroughput(ctx, c.Container)
	if err != nil {
		out.Err = err
		return out
	}
	d, memory := c.decide(t.now, read, 0, t.recommended[c.key()])
	if t.recommended == nil {
		t.recommended = map[string]scaling.ThroughputMemory{}
	}
	t.recommended[c.key()] = memory
	out.Decision = &d
	return out
}

// apply provisions what a container needs.
func (t *turn) apply(ctx context.Context, c Container) Outcome {
	out := Outcome{Container: c.Container, Account: c.Account, Apply: true}
	read, err := c.Way.ReadThroughput(ctx, c.Container)
	if err != nil {
		out.Err = err
		return out
	}
	entry, known := t.entries[c.key()]
	if !known {
		entry = state.Provisioning{
			Setting: c.Setting, Database: c.Container.Database, Container: c.Container.ID, Autoscale: read.Autoscale,
			Before: read.RUPerSecond, Was: read.RUPerSecond, Set: read.RUPerSecond,
		}
	}
	before := entry.Before
	if !known {
		before = 0
	}
	d, memory := c.decide(t.now, read, before, entry.Memory)
	out.Decision = &d
	stored := entry
	if theirs(&entry, read) {
		out.Note = fmt.Sprintf("somebody else provisioned %d RU/s in place of %d: that is left alone until throughput is switched off and on again", read.RUPerSecond, entry.Set)
		if entry != stored {
			out.Err = t.save(ctx, c.key(), &entry)
		}
		return out
	}
	entry.Memory, entry.Setting = memory, c.Setting
	if d.RUPerSecond == read.RUPerSecond {
		// Seen to be made: from here on, what was before is somebody else's.
		entry.Was, entry.Set = read.RUPerSecond, read.RUPerSecond
		if entry != stored && (known || memory != scaling.ThroughputMemory{}) {
			out.Err = t.save(ctx, c.key(), &entry)
		}
		return out
	}
	entry.Was, entry.Set = read.RUPerSecond, d.RUPerSecond
	if out.Err = t.save(ctx, c.key(), &entry); out.Err != nil {
		return out
	}
	_, out.Err = c.Way.ReplaceThroughput(ctx, c.Container, read, d.RUPerSecond)
	out.Applied = out.Err == nil
	return out
}

// theirs reports whether somebody else changed the throughput, and remembers what they made it. Of a
// change that may not have been made, since this process ended in between, both sides are ours.
func theirs(entry *state.Provisioning, read cosmos.Throughput) bool {
	ours := read.Autoscale == entry.Autoscale && (read.RUPerSecond == entry.Set || entry.Theirs == 0 && read.RUPerSecond == entry.Was)
	if entry.Theirs = 0; !ours {
		entry.Theirs = read.RUPerSecond
	}
	return !ours
}

// restore gives back what was found in a container that no processor follows any more.
func (t *turn) restore(ctx context.Context, key string, containers []Container) Outcome {
	entry := t.entries[key]
	c := cosmos.Container{Database: entry.Database, ID: entry.Container}
	out := Outcome{Container: c, Account: key[:len(key)-len(c.String())]}
	way, err := t.wayTo(key, entry, containers)
	if err != nil {
		out.Err = fmt.Errorf("%d RU/s of %s cannot be given back: %w", entry.Before, c, err)
		return out
	}
	read, err := way.ReadThroughput(ctx, c)
	if refusal, ok := errors.AsType[*cosmos.Refusal](err); ok && (refusal.Kind == cosmos.Missing || refusal.Kind == cosmos.NoThroughput || refusal.Kind == cosmos.SharedThroughput) && !refusal.Manager {
		out.Note, out.Err = "it is gone, and what was found in it with it", t.save(ctx, key, nil)
		return out
	}
	if err != nil {
		out.Err = err
		return out
	}
	if theirs(&entry, read) {
		out.Note = fmt.Sprintf("somebody else provisioned %d RU/s in place of %d: that is left alone, and the %d that were found are forgotten", read.RUPerSecond, entry.Set, entry.Before)
		out.Err = t.save(ctx, key, nil)
		return out
	}
	target := max(entry.Before, read.Minimum)
	if read.RUPerSecond == target {
		out.Err = t.save(ctx, key, nil)
		out.Restored = out.Err == nil
		return out
	}
	if read.Pending {
		return out // until the change that is under way has been made
	}
	entry.Was, entry.Set = read.RUPerSecond, target
	if out.Err = t.save(ctx, key, &entry); out.Err != nil {
		return out
	}
	if _, out.Err = way.ReplaceThroughput(ctx, c, read, target); out.Err != nil {
		return out
	}
	out.Err = t.save(ctx, key, nil)
	out.Applied, out.Restored = true, out.Err == nil
	return out
}

// wayTo returns the way to a container: that of a processor which still names it, else by its setting.
func (t *turn) wayTo(key string, entry state.Provisioning, containers []Container) (Way, error) {
	for _, c := range containers {
		if c.key() == key {
			return c.Way, nil
		}
	}
	return t.Open(entry.Setting)
}
