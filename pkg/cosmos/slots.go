package cosmos

import (
	"cmp"
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
// request gives up its slot and starts again later. A container that throttles has a limit of its own: each
// 429 halves it, and as many answers as it allows raise it by one (docs/decisions/0007).
type slots struct {
	next policy.Transporter
	size int

	mu         sync.Mutex
	containers map[Container]*share
	held       []*ticket // oldest first
	waiting    []*ticket // oldest first
	watched    bool      // while some wait
}

// share is what the slots know of one container.
type share struct {
	failing bool          // its last request had no answer, or one is late
	feeds   bool          // that was a page of its feed: no other answer ends it
	slow    time.Duration // how long its answers took lately; after twice as long, and at least shortLook, one is late
	held    int
	limit   int // of requests in flight
	calm    int // answers in a row that were not throttled, since the limit changed
}

// ticket is a request that has a slot, or waits for one.
type ticket struct {
	*share
	feed    bool               // it is for a page of the feed
	holds   bool               // it has a slot
	granted chan struct{}      // closed when it gets its slot; nil if it need not wait
	cancel  context.CancelFunc // of the request; nil until it begins
	at      time.Time          // when it began; zero until then
	began   bool               // its answer has begun, or it writes: it does not give its slot up any more
	cut     bool               // it gave its slot up
}

func newSlots(next policy.Transporter, size int) *slots {
	return &slots{next: next, size: size, containers: make(map[Container]*share)}
}

func (s *slots) Do(r *http.Request) (*http.Response, error) {
	c := callOf(r.Context())
	for {
		t, err := s.take(r.Context(), c.about.Container, c.feed)
		if err != nil {
			return nil, err
		}
		response, err := s.try(r, c, t)
		if t.cut && err != nil && r.Context().Err() == nil {
			continue
		}
		return response, err
	}
}

// try sends a request once. An answer that is not read as it comes has its whole body.
func (s *slots) try(r *http.Request, c *call, t *ticket) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	if limit := cmp.Or(min(c.look, c.timeout), c.look, c.timeout); limit > 0 {
		ctx, cancel = context.WithTimeout(r.Context(), limit)
	}
	began := time.Now()
	s.mu.Lock()
	t.at, t.cancel, t.began = began, cancel, r.Method == http.MethodPut // a write that gave its slot up might be made twice
	if t.cut {
		cancel()
	}
	s.mu.Unlock()
	response, err := s.next.Do(r.WithContext(ctx))
	end := func() {
		cancel()
		s.give(t, response, r.Context().Err() == context.Canceled, time.Since(began))
	}
	if err == nil && c.feed && response.StatusCode < http.StatusBadRequest {
		s.mu.Lock()
		t.began = true
		s.mu.Unlock()
		response.Body = ending{response.Body, end}
		return response, nil
	}
	if err == nil {
		_, err = runtime.Payload(response)
	}
	if err != nil {
		response = nil
		c.hung = c.hung || time.Since(began) >= shortLook
	}
	end()
	return response, err
}

// take waits for a slot.
func (s *slots) take(ctx context.Context, c Container, feed bool) (*ticket, error) {
	s.mu.Lock()
	of := s.containers[c]
	if of == nil {
		of = &share{limit: s.size}
		s.containers[c] = of
	}
	t := &ticket{share: of, feed: feed}
	s.waiting = append(s.waiting, t)
	if s.grant(); t.holds {
		s.mu.Unlock()
		return t, nil
	}
	t.granted = make(chan struct{})
	s.watch()
	s.mu.Unlock()
	select {
	case <-t.granted:
		return t, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(t)
	return nil, ctx.Err()
}

// grant gives free slots to those that wait, the oldest first: containers that fail after the others. The
// mutex is held, here and below.
func (s *slots) grant() {
	taken := s.failing()
	for _, failing := range [...]bool{false, true} {
		for i := 0; i < len(s.waiting) && len(s.held) < s.size; {
			t := s.waiting[i]
			if t.failing != failing || t.share.held >= t.limit || failing && taken >= s.part() {
				i++
				continue
			}
			if failing {
				taken++
			}
			s.waiting = slices.Delete(s.waiting, i, i+1)
			s.held, t.holds = append(s.held, t), true
			t.share.held++
			if t.granted != nil {
				close(t.granted)
			}
		}
	}
	s.makeWay()
}

// part is how many slots containers that fail may hold together.
func (s *slots) part() int { return max(1, s.size/2) }

// makeWay has containers that fail give up what they hold beyond their part.
func (s *slots) makeWay() {
	over := s.failing() - s.part()
	if s.size == 1 && len(s.held) == 1 && slices.ContainsFunc(s.waiting, func(t *ticket) bool { return !t.failing && t.share.held < t.limit }) {
		over = s.failing()
	}
	for _, t := range s.held {
		if over <= 0 {
			return
		}
		if t.failing && !t.began {
			over--
			if t.cut = true; t.cancel != nil {
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

// watch looks for late requests while others wait.
func (s *slots) watch() {
	if s.watched || len(s.waiting) == 0 {
		return
	}
	s.watched = true
	time.AfterFunc(shortLook, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watched = false
		for _, t := range s.held {
			if !t.began && !t.at.IsZero() && time.Since(t.at) >= max(shortLook, 2*t.slow) {
				t.fail()
			}
		}
		s.grant()
		s.watch()
	})
}

// give ends a request.
func (s *slots) give(t *ticket, response *http.Response, givenUp bool, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.cut || givenUp:
	case response == nil || regionFails(response, nil):
		t.fail()
	default:
		if t.feed || !t.feeds {
			t.failing, t.feeds = false, false
		}
		t.slow = max(took, t.slow*9/10)
		t.adapt(response.StatusCode == http.StatusTooManyRequests, s.size)
	}
	s.remove(t)
}

// fail says that a request had no answer, or none for a while.
func (t *ticket) fail() { t.failing, t.feeds = true, t.feeds || t.feed }

// adapt adapts the limit of a container.
func (s *share) adapt(throttled bool, most int) {
	switch s.calm++; {
	case throttled:
		s.limit, s.calm = max(1, s.limit/2), 0
	case s.limit < most && s.calm >= s.limit:
		s.limit, s.calm = s.limit+1, 0
	}
}

// remove takes a ticket out, whether it has a slot or waits for one.
func (s *slots) remove(t *ticket) {
	is := func(other *ticket) bool { return other == t }
	if !t.holds {
		s.waiting = slices.DeleteFunc(s.waiting, is)
		return
	}
	s.held, t.holds = slices.DeleteFunc(s.held, is), false
	t.share.held--
	s.grant()
}
