package state

import (
	"context"
	"sync"
)

// Notices tell the rest of the process that a processor or group has changed. The zero value is ready.
type Notices struct {
	waiting sync.Map // channels, by processor or group
}

// Changed returns a channel that the next Tell of a processor or group closes.
func (n *Notices) Changed(processor string) <-chan struct{} {
	c, _ := n.waiting.LoadOrStore(processor, make(chan struct{}))
	return c.(chan struct{})
}

// Tell tells that a processor or group has changed.
func (n *Notices) Tell(processor string) {
	if c, waits := n.waiting.LoadAndDelete(processor); waits {
		close(c.(chan struct{}))
	}
}

// Commits is a Store that tells the rest of the process of each write.
type Commits struct {
	Store
	Notices
	// Wrote is called after each write with the State that is stored; nil if it has to be read.
	Wrote func(processor string, s *State)
}

// Commit tells also when it fails: a conflict is a commit of another process.
func (c *Commits) Commit(ctx context.Context, version Version, s State, event *Event) error {
	err := c.Store.Commit(ctx, version, s, event)
	if err != nil || event != nil || s.Undelivered != nil { // only the store knows the time of an event that waits
		c.Wrote(s.Processor, nil)
	} else {
		c.Wrote(s.Processor, &s)
	}
	c.Tell(s.Processor)
	return err
}

// Remove calls Wrote, since other events wait now.
func (c *Commits) Remove(ctx context.Context, processor string, sequences ...int64) error {
	err := c.Store.Remove(ctx, processor, sequences...)
	c.Wrote(processor, nil)
	return err
}
