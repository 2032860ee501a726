package functionshost

import (
	"context"
	"sync"
	"time"
)

// Seen on host 4.1037.
const (
	lockTakeover   = 50 * time.Second // until the lock of a host that was killed is taken over
	storageTimeout = 25 * time.Second // until a host starts without its storage
)

// Storage is the storage account of one function app, as far as timers use it: a lock for each
// timer, so that only one of several hosts fires it, and the schedule status of the timers that
// have one. Hosts with the same Storage are instances of the same app. The zero value is ready.
type Storage struct {
	Takeover time.Duration // until the lock of a killed host is free; 0 = 50 s, as seen on the host
	// for which a starting host waits while the storage is away; 0 = 25 s, as seen on the host
	Timeout time.Duration

	mu       sync.Mutex
	away     bool
	locks    map[string]time.Time // by function: when the lock expires, zero while its host lives
	statuses map[string]scheduleStatus
	// closed, and replaced, when any of the above changes; nil while nobody waits
	changed chan struct{}
}

// SetAway makes the storage unreachable for hosts that start or wait for a lock, or reachable
// again.
func (s *Storage) SetAway(away bool) {
	s.change(func() { s.away = away })
}

// change changes the state and wakes those that wait for it.
func (s *Storage) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// wake is closed at the next change. The caller holds mu.
func (s *Storage) wake() <-chan struct{} {
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}

// awaitStart waits for storage that is away, but no longer than the host does.
func (s *Storage) awaitStart(ctx context.Context, clock *Clock) error {
	timeout := s.Timeout
	if timeout == 0 {
		timeout = storageTimeout
	}
	expired, stop := clock.after(timeout)
	defer stop()
	for {
		s.mu.Lock()
		away, changed := s.away, s.wake()
		s.mu.Unlock()
		if !away {
			return nil
		}
		select {
		case <-changed:
		case <-expired:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lock waits until the lock of a function is free and takes it. It reports false if the context
// ended before.
func (s *Storage) lock(ctx context.Context, clock *Clock, function string) bool {
	for {
		s.mu.Lock()
		expires, held := s.locks[function]
		free := !held || !expires.IsZero() && !clock.Now().Before(expires)
		if free && !s.away && ctx.Err() == nil {
			if s.locks == nil {
				s.locks = map[string]time.Time{}
			}
			s.locks[function] = time.Time{}
			s.mu.Unlock()
			return true
		}
		changed := s.wake()
		s.mu.Unlock()
		var expired <-chan time.Time
		stop := func() {}
		if !free && !expires.IsZero() {
			expired, stop = clock.at(expires)
		}
		select {
		case <-changed:
		case <-expired:
		case <-ctx.Done():
			stop()
			return false
		}
		stop()
	}
}

// unlock releases the lock of a function.
func (s *Storage) unlock(function string) {
	s.change(func() { delete(s.locks, function) })
}

// expire leaves the lock of a function to its expiry: its host ended without releasing it.
func (s *Storage) expire(function string, now time.Time) {
	takeover := s.Takeover
	if takeover == 0 {
		takeover = lockTakeover
	}
	s.change(func() { s.locks[function] = now.Add(takeover) })
}

func (s *Storage) status(function string) (scheduleStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, ok := s.statuses[function]
	return status, ok
}

func (s *Storage) setStatus(function string, status scheduleStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.statuses == nil {
		s.statuses = map[string]scheduleStatus{}
	}
	s.statuses[function] = status
}
