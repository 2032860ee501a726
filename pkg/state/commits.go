package state

import (
	"context"
	"sync"
)

// Commits is a Store that tells within the process of each commit.
type Commits struct {
	Store
	mu      sync.Mutex
	waiting map[string]chan struct{} // by processor
}

// NewCommits returns a Commits over a store.
func NewCommits(s Store) *Commits {
	return &Commits{Store: s, waiting: make(map[string]chan struct{})}
}

// Changed returns a channel that is closed with the next commit of a processor or group.
func (c *Commits) Changed(processor string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[processor] == nil {
		c.waiting[processor] = make(chan struct{})
	}
	return c.waiting[processor]
}

// Commit tells who waits also where it fails: a conflict is a commit of another process.
func (c *Commits) Commit(ctx context.Context, version Version, s State, event *Event) error {
	err := c.Store.Commit(ctx, version, s, event)
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting := c.waiting[s.Processor]; waiting != nil {
		close(waiting)
		delete(c.waiting, s.Processor)
	}
	return err
}
