package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

const (
	breakerOpensAfter = 5               // calls in a row without an answer
	probeEvery        = 5 * time.Second // how often what does not answer is asked
	fullLookEvery     = 5               // looks at a partition that did not answer last one is a full one, with retries

	// shortLook is how long the other looks take, of one try. A shorter silence does not count, if a deadline
	// ends the call.
	shortLook = time.Second
)

// breaker is a circuit breaker: an account, or the partitions of a container, that do not answer in any
// region are asked once in a while instead of by every read of every tick. The first answer closes it.
type breaker struct {
	failures int            // calls in a row without an answer
	since    time.Time      // when the first of them failed
	probed   time.Time      // when a call was let through last that finds out whether there are answers again
	settled  chan struct{}  // closed when that call has ended; nil while none is in flight
	looks    map[string]int // by partition: reads in a row without an answer; "" = what is no read of a partition

	// What the slots know of the container.
	failing bool          // its last request had no answer, or one is late
	feeds   bool          // that was a page of its feed: no other answer ends it
	slow    time.Duration // how long its answers took lately; after twice as long, and at least shortLook, one is late
}

// openError says that an account or a container was not asked.
type openError string

func (e openError) Error() string { return string(e) }

// health keeps requests from an account, a container or a partition that does not answer. The account's own
// breaker opens only if nobody can connect to it. An account that hung in the last tick has no longer than
// until the next tick is due: it must not cost other accounts their polls.
type health struct {
	next policy.Transporter

	mu       sync.Mutex             // of the breakers and of the slots, too
	breakers map[Container]*breaker // that of the account is of no container
	tick     time.Time              // how long requests may go on if the account hung, by the clock of the caller; zero = no limit
	end      time.Time              // the same by the clock of this machine
	hangs    bool                   // a request of this tick got no answer in time
	hung     bool                   // one of the last tick did
}

// Until says how long the reads of a tick may go on if one of the tick before hung. Each tick has a time of
// its own, which may be said more than once; the zero time is no limit. now is the time by the same clock,
// which need not be that of this machine.
func (a *Account) Until(at, now time.Time) {
	h := a.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if !at.Equal(h.tick) {
		h.tick, h.end, h.hung, h.hangs = at, time.Now().Add(at.Sub(now)), h.hangs && !at.IsZero(), false
	}
}

// of returns the breaker of a container, or of the account. The mutex is held.
func (h *health) of(c Container) *breaker {
	if h.breakers[c] == nil {
		h.breakers[c] = &breaker{looks: make(map[string]int)}
	}
	return h.breakers[c]
}

// Do sends a request in the time that it may take.
func (h *health) Do(r *http.Request) (*http.Response, error) {
	ctx, c := r.Context(), callOf(r.Context())
	h.mu.Lock()
	end, hung := h.end, h.hung
	h.mu.Unlock()
	if hung {
		ctx, c.cancel = context.WithDeadline(ctx, end)
		r = r.WithContext(ctx)
	}
	finds, err := h.enter(ctx, c)
	if err != nil {
		c.end()
		return nil, err
	}
	requests, began := c.Requests, time.Now()
	c.last = nil
	response, err := h.next.Do(r)
	o := silence // a region that fails is no answer
	switch took, ended := time.Since(began), ctx.Err(); {
	case c.Requests == requests:
		o = nothing // it waited all the time
	case c.last != nil:
		if !regionFails(c.last) {
			o = reply
		}
	case ended == context.Canceled, ended != nil && took < shortLook, ended == nil && !retriable(err):
		o = nothing
	}
	h.leave(c, finds, o, time.Since(began), err)
	if err != nil || !c.feed {
		c.end()
	}
	return response, err
}

// enter lets a call through, or fails with an openError. If a breaker is open, one call finds out whether
// there are answers again, and calls that come meanwhile wait for what it finds. A partition that answered
// last is asked all the same: some that do not answer keep no other one from being read. finds is the breaker
// whose state the call finds out; nil if there is none.
func (h *health) enter(ctx context.Context, c *call) (finds *breaker, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	account, own := h.of(Container{}), h.of(c.about.Container)
	for c.breaker = own; ; {
		b, free, name := account, false, "it"
		if !account.isOpen() {
			name = c.about.Named()
			b, free = own, !own.isOpen() || own != account && own.looks[c.part] == 0
		}
		if at := time.Now(); !free && b.settled == nil && at.Sub(b.probed) >= probeEvery {
			b.probed, b.settled, finds = at, make(chan struct{}), b
		}
		if free || finds != nil {
			c.look = own.look(c, finds != nil)
			return finds, nil
		}
		settled := b.settled
		if settled != nil {
			h.mu.Unlock()
			select {
			case <-settled:
			case <-ctx.Done():
			}
			h.mu.Lock()
		}
		if settled == nil || ctx.Err() != nil {
			return nil, openError(fmt.Sprintf("%s has not answered %d calls in a row since %s, and is asked once every %s until it does (the circuit breaker is open)",
				name, b.failures, b.since.UTC().Format(time.RFC3339), probeEvery))
		}
	}
}

// look returns the most that each try of a call may take; 0 = no limit of its own. A partition that did not
// answer gets a short look, and every fifth time a full one: not all partitions in the same tick.
func (b *breaker) look(c *call, finds bool) time.Duration {
	n := b.looks[c.part]
	switch full := c.part != "" && n > 1 && (n+int(c.part[len(c.part)-1]))%fullLookEvery == 0; {
	case c.feed && n > 0 && !full:
		return shortLook
	case finds:
		return failoverTimeout // the others wait for what this call finds
	}
	return 0
}

// outcome is what a call says of whom it asked.
type outcome int

const (
	nothing outcome = iota // it was given up, or never left this machine
	silence
	reply
)

// leave says how a call ended that enter let through. A container that does not answer says nothing of its
// account, unless nobody can connect.
func (h *health) leave(c *call, finds *breaker, o outcome, took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.breaker.note(o)
	switch o {
	case reply:
		delete(c.breaker.looks, c.part)
	case silence:
		c.breaker.looks[c.part]++
		h.hangs = h.hangs || c.last == nil && took >= shortLook
	}
	switch account := h.of(Container{}); {
	case c.breaker == account:
	case c.last != nil:
		account.note(reply)
	case isUnreachable(err):
		account.note(o)
	}
	if finds != nil {
		close(finds.settled)
		finds.settled = nil
	}
}

// isOpen reports whether calls are kept away.
func (b *breaker) isOpen() bool { return b.failures >= breakerOpensAfter }

// note counts an outcome.
func (b *breaker) note(o outcome) {
	switch o {
	case reply:
		b.failures = 0
	case silence:
		if b.failures++; b.failures == 1 {
			b.since = time.Now()
		}
	}
}
