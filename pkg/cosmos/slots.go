package cosmos

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// slots limits how many requests of an account are in flight. A request has a slot from its start to its
// answer, of a page of the feed to its end. It has none while it waits to be tried again.
//
// Containers that do not answer, or have not for a while, together hold at most half of the slots. If
// there is only one slot, they hold it only while nobody else waits. If they hold more, their oldest
// request gives up its slot and starts again later (docs/decisions/0007-pace-and-regions.md).
type slots struct {
	next policy.Transporter
	size int

	mu      *sync.Mutex // of health
	holding []*ticket   // requests that have a slot, and those that wait for one, each the oldest first
	waiting []*ticket
}

// ticket is a request that has a slot, or waits for one.
type ticket struct {
	*breaker
	feed    bool               // it is for a page of the feed
	cancel  context.CancelFunc // of the request
	granted chan struct{}      // closed when it gets its slot; nil if it need not wait
	at      time.Time          // when it got its slot; zero until then
	keeps   bool               // it never gives its slot up: its answer has begun, or a write might be made twice
	cut     bool               // it gave its slot up
}

func (t *ticket) holds() bool { return !t.at.IsZero() }

// fail says that a request had no answer, or none for a while.
func (t *ticket) fail() { t.failing, t.feeds = true, t.feeds || t.feed }

// Failing reports whether the last request for a container had no answer, or one that is late.
func (a *Account) Failing(c Container) bool {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	return a.health.of(c).failing
}

func (s *slots) Do(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	for {
		ctx, cancel := context.WithCancel(r.Context())
		t := &ticket{breaker: c.breaker, feed: c.feed, cancel: cancel, keeps: r.Method == http.MethodPut}
		if err := s.take(ctx, t); err != nil {
			cancel()
			return nil, err
		}
		response, err := s.try(ctx, r, c, t)
		if !t.cut || err == nil || r.Context().Err() != nil {
			return response, err
		}
	}
}

// try sends a request once. An answer that is not read as it comes has its whole body.
func (s *slots) try(ctx context.Context, r *http.Request, c *call, t *ticket) (*http.Response, error) {
	cancel := t.cancel
	if c.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.limit)
	}
	response, err := s.next.Do(r.WithContext(ctx))
	end := func() {
		cancel()
		t.cancel()
		s.give(t, response, r.Context().Err() == context.Canceled)
	}
	if err == nil && c.feed && response.StatusCode < http.StatusBadRequest {
		s.mu.Lock()
		t.keeps = true
		s.mu.Unlock()
		c.release = end
		return response, nil
	}
	if err == nil {
		_, err = runtime.Payload(response)
	}
	if err != nil {
		response = nil
	}
	end()
	return response, err
}

// take waits for a slot.
func (s *slots) take(ctx context.Context, t *ticket) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, t)
	for s.grant(); !t.holds(); s.grant() {
		if t.granted == nil {
			t.granted = make(chan struct{})
		}
		s.mu.Unlock()
		select {
		case <-t.granted:
			s.mu.Lock()
		case <-time.After(shortLook):
			s.mu.Lock()
			s.findLate(time.Now())
		case <-ctx.Done():
			s.mu.Lock()
			s.remove(t)
			return ctx.Err()
		}
	}
	return nil
}

// findLate finds the requests that have had no answer for a while.
func (s *slots) findLate(now time.Time) {
	for _, t := range s.holding {
		if !t.keeps && now.Sub(t.at) >= max(shortLook, 2*t.slow) {
			t.fail()
		}
	}
}

// grant gives free slots to those that wait, the oldest first: containers that fail after the others. What
// these hold beyond their part they give up. The mutex is held, here and below.
func (s *slots) grant() {
	failing, part := 0, max(1, s.size/2)
	for _, t := range s.holding {
		if t.failing {
			failing++
		}
	}
	healthy := func(t *ticket) bool { return !t.failing }
	for len(s.waiting) > 0 && len(s.holding) < s.size {
		i := slices.IndexFunc(s.waiting, healthy)
		if i < 0 {
			if failing >= part {
				break
			}
			i = 0
			failing++
		}
		t := s.waiting[i]
		s.waiting, s.holding = slices.Delete(s.waiting, i, i+1), append(s.holding, t)
		if t.at = time.Now(); t.granted != nil {
			close(t.granted)
		}
	}
	if s.size == 1 && slices.ContainsFunc(s.waiting, healthy) {
		part = 0
	}
	for i := 0; failing > part && i < len(s.holding); i++ {
		if t := s.holding[i]; t.failing && !t.keeps {
			failing--
			t.cut = true
			t.cancel()
		}
	}
}

// give ends a request that had a slot.
func (s *slots) give(t *ticket, response *http.Response, givenUp bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.cut || givenUp:
	case response == nil || regionFails(response):
		t.fail()
	default:
		if t.feed || !t.feeds {
			t.failing, t.feeds = false, false
		}
		t.slow = max(time.Since(t.at), t.slow*9/10)
	}
	s.remove(t)
}

// remove takes a ticket out, whether it has a slot or waits for one.
func (s *slots) remove(t *ticket) {
	of := &s.waiting
	if t.holds() {
		of = &s.holding
	}
	*of = slices.DeleteFunc(*of, func(other *ticket) bool { return other == t })
	s.grant()
}
