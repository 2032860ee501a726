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
// Containers whose requests got no answer, or none for a while, hold at most half of the slots together,
// and the only one while nobody else waits. If they hold more, their oldest request gives its slot up, and
// starts again later. A container that throttles has a limit of its own: each 429 halves it, and as many
// answers as it allows raise it by one (docs/decisions/0007).
type slots struct {
	next policy.Transporter
	size int

	mu         sync.Mutex
	containers map[Container]*share
	held       []*ticket // oldest first
	waiting    []*ticket // oldest first
}

// share is what the slots know of one container.
type share struct {
	failing bool          // its last request had no answer, or one is late
	slow    time.Duration // how long its answers took lately
	held    int
	limit   int // of requests in flight
	calm    int // answers in a row that were not throttled, since the limit changed
}

// patience returns after how long a request is late.
func (s *share) patience() time.Duration { return max(shortLook, 2*s.slow) }

// ticket is a request that has a slot, or waits for one.
type ticket struct {
	*share
	granted chan struct{}      // closed when it has a slot
	cancel  context.CancelFunc // of the request
	began   bool               // its answer has begun: it does not give its slot up any more
	cut     bool               // it gave its slot up
}

func newSlots(next policy.Transporter, size int) *slots {
	return &slots{next: next, size: size, containers: make(map[Container]*share)}
}

func (s *slots) Do(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	for {
		ctx, cancel := context.WithCancel(r.Context())
		t, err := s.take(ctx, c.about.container, cancel)
		if err != nil {
			cancel()
			return nil, err
		}
		late := time.AfterFunc(t.patience(), func() { s.late(t) })
		began := time.Now()
		response, err := s.try(r.WithContext(ctx), c)
		late.Stop()
		c.hung = c.hung || err != nil && time.Since(began) >= shortLook
		end := func() {
			cancel()
			s.give(t, response, r.Context().Err() == context.Canceled, time.Since(began))
		}
		if err == nil && c.class == feed && response.StatusCode < http.StatusBadRequest {
			s.mu.Lock()
			t.began = true
			s.mu.Unlock()
			response.Body = ending{response.Body, end}
			return response, nil
		}
		end()
		if t.cut && err != nil && r.Context().Err() == nil {
			continue
		}
		return response, err
	}
}

// try sends a request once. An answer that is not read as it comes has its whole body.
func (s *slots) try(r *http.Request, c *call) (*http.Response, error) {
	ctx, stop := r.Context(), func() {}
	if limit := c.limit(); limit > 0 {
		ctx, stop = context.WithTimeout(ctx, limit)
	}
	response, err := s.next.Do(r.WithContext(ctx))
	if err == nil && c.class == feed && response.StatusCode < http.StatusBadRequest {
		response.Body = ending{response.Body, stop}
		return response, nil
	}
	if err == nil {
		_, err = runtime.Payload(response)
	}
	stop()
	if err != nil {
		return nil, err
	}
	return response, nil
}

// take waits for a slot.
func (s *slots) take(ctx context.Context, c Container, cancel context.CancelFunc) (*ticket, error) {
	s.mu.Lock()
	of := s.containers[c]
	if of == nil {
		of = &share{limit: s.size}
		s.containers[c] = of
	}
	t := &ticket{share: of, granted: make(chan struct{}), cancel: cancel}
	s.waiting = append(s.waiting, t)
	s.grant()
	s.mu.Unlock()
	select {
	case <-t.granted:
		return t, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.waiting, t); at >= 0 {
		s.waiting = slices.Delete(s.waiting, at, at+1)
	} else {
		s.remove(t)
	}
	return nil, ctx.Err()
}

// grant gives free slots to those that wait, the oldest first: containers that fail after the others. The
// mutex is held, here and below.
func (s *slots) grant() {
	taken := s.failing()
	for _, failing := range [...]bool{false, true} {
		for i := 0; i < len(s.waiting) && len(s.held) < s.size; {
			t := s.waiting[i]
			if t.failing != failing || t.share.held >= t.limit || failing && taken >= max(1, s.size/2) {
				i++
				continue
			}
			if failing {
				taken++
			}
			s.waiting = slices.Delete(s.waiting, i, i+1)
			s.held = append(s.held, t)
			t.share.held++
			close(t.granted)
		}
	}
	s.makeWay()
}

// makeWay has containers that fail give up what they hold beyond their part.
func (s *slots) makeWay() {
	over := s.failing() - max(1, s.size/2)
	if s.size == 1 && len(s.held) == 1 && slices.ContainsFunc(s.waiting, func(t *ticket) bool { return !t.failing && t.share.held < t.limit }) {
		over = s.failing()
	}
	for _, t := range s.held {
		if over <= 0 {
			return
		}
		if t.failing && !t.began {
			if over--; !t.cut {
				t.cut = true
				t.cancel()
			}
		}
	}
}

// failing counts the slots that containers hold that fail.
func (s *slots) failing() (n int) {
	for _, t := range s.held {
		if t.failing {
			n++
		}
	}
	return n
}

func (s *slots) failingOf(c Container) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.containers[c]
	return of != nil && of.failing
}

// late says that a request has had no answer for a while.
func (s *slots) late(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.held, t) {
		t.failing = true
		s.makeWay()
	}
}

// give ends a request.
func (s *slots) give(t *ticket, response *http.Response, givenUp bool, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.cut || givenUp:
	case response == nil || regionFails(response, nil):
		t.failing = true
	default:
		t.failing = false
		t.slow = max(took, t.slow*9/10)
		t.adapt(response.StatusCode == http.StatusTooManyRequests, s.size)
	}
	s.remove(t)
}

// adapt adapts the limit of a container.
func (s *share) adapt(throttled bool, most int) {
	switch s.calm++; {
	case throttled:
		s.limit, s.calm = max(1, s.limit/2), 0
	case s.limit < most && s.calm >= s.limit:
		s.limit, s.calm = s.limit+1, 0
	}
}

func (s *slots) remove(t *ticket) {
	if at := slices.Index(s.held, t); at >= 0 {
		s.held = slices.Delete(s.held, at, at+1)
		t.share.held--
		s.grant()
	}
}
