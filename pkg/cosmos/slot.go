package cosmos

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// slot ends the requests of an account that hung in the last tick before the next tick is due: a hanging
// account must not cost the other accounts their polls.
type slot struct {
	next policy.Transporter

	mu    sync.Mutex
	at    time.Time // how long such requests may go on, by the clock of the caller; zero = no limit
	end   time.Time // the same by the clock of this machine
	hangs bool      // a request of this tick got no answer in time
	hung  bool      // one of the last tick did
}

// begin begins a tick, unless the same was said before.
func (s *slot) begin(at, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.Equal(s.at) {
		s.at, s.end, s.hung, s.hangs = at, time.Now().Add(at.Sub(now)), s.hangs, false
	}
}

func (s *slot) Do(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	end, hung := s.end, s.hung && !s.at.IsZero()
	s.mu.Unlock()
	if !hung {
		return s.pass(r)
	}
	ctx, cancel := context.WithDeadline(r.Context(), end)
	response, err := s.pass(r.WithContext(ctx))
	if err != nil || callOf(ctx).class != feed {
		cancel()
		return response, err
	}
	response.Body = ending{response.Body, cancel}
	return response, nil
}

func (s *slot) pass(r *http.Request) (*http.Response, error) {
	response, err := s.next.Do(r)
	if callOf(r.Context()).hung {
		s.mu.Lock()
		s.hangs = true
		s.mu.Unlock()
	}
	return response, err
}
