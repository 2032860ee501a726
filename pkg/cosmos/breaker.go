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
	timeToAnswer      = 2 * time.Second // how long a silence has to be to count, if a deadline ends the call
	shortLook         = time.Second     // at a partition that did not answer last: one try
	fullLookEvery     = 5               // such looks one is a full one, with retries
)

// breaker is a circuit breaker: an account, or the partitions of a container, that do not answer in any
// region are asked once in a while instead of by every read of every tick. The first answer closes it.
type breaker struct {
	name     string
	mu       sync.Mutex
	failures int            // calls in a row without an answer
	since    time.Time      // when the first of them failed
	probed   time.Time      // when a call was let through last
	settled  chan struct{}  // closed when that call has ended; nil while none is in flight
	looks    map[string]int // by partition: reads in a row without an answer; "" = what is no read of a partition
}

// openError says that an account or a container was not asked.
type openError struct {
	name     string
	since    time.Time
	failures int
}

func (e openError) Error() string {
	return fmt.Sprintf("%s has not answered %d calls in a row since %s, and is asked once every %s until it does (the circuit breaker is open)",
		e.name, e.failures, e.since.UTC().Format(time.RFC3339), probeEvery)
}

// isOpen reports whether a retry would only add to the failures. The mutex is held.
func (b *breaker) isOpen() bool { return b.failures >= breakerOpensAfter }

// enter lets a call through, or fails with an openError. If the breaker is open, one call finds out
// whether there are answers again, and calls that come meanwhile wait for what it finds. A partition that
// answered last is asked all the same: some that do not answer keep no other one from being read.
func (b *breaker) enter(ctx context.Context, part string, now func() time.Time) (finds bool, err error) {
	for {
		b.mu.Lock()
		switch at := now(); {
		case !b.isOpen() || b.looks != nil && b.looks[part] == 0:
			b.mu.Unlock()
			return false, nil
		case b.settled == nil && at.Sub(b.probed).Abs() >= probeEvery:
			b.probed, b.settled = at, make(chan struct{})
			b.mu.Unlock()
			return true, nil
		}
		open, settled := openError{b.name, b.since, b.failures}, b.settled
		b.mu.Unlock()
		if settled == nil {
			return false, open
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return false, open
		}
	}
}

// outcome is what a call says of whom it asked.
type outcome int

const (
	nothing outcome = iota // it was given up, or never left this machine
	silence
	reply
)

// leave says how a call ended that enter let through.
func (b *breaker) leave(o outcome, finds bool, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o {
	case reply:
		b.failures = 0
	case silence:
		if b.failures == 0 {
			b.since = now
		}
		b.failures++
	}
	if finds {
		close(b.settled)
		b.settled = nil
	}
}

// look returns the most that a read of a partition may take. One that did not answer gets a short look, and
// every fifth time a full one, which is 0: not all partitions in the same tick.
func (b *breaker) look(part string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.looks[part]
	if n == 0 || part != "" && (n+int(part[len(part)-1]))%fullLookEvery == 0 && n > 1 {
		return 0
	}
	return shortLook
}

// looked says how a read of a partition ended.
func (b *breaker) looked(part string, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o == reply:
		delete(b.looks, part)
	case o == silence:
		b.looks[part]++
	}
}

// health is the breakers of an account. Its own opens only if nobody can connect to it.
type health struct {
	now        func() time.Time
	account    *breaker
	mu         sync.Mutex
	containers map[Container]*breaker
}

func newHealth(now func() time.Time) *health {
	return &health{now: now, account: &breaker{name: "it"}, containers: make(map[Container]*breaker)}
}

// of returns the breaker of a container. Requests for the account itself have that of the account.
func (h *health) of(c Container) *breaker {
	if c == (Container{}) {
		return h.account
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.containers[c]
	if b == nil {
		b = &breaker{name: "container " + c.String(), looks: make(map[string]int)}
		h.containers[c] = b
	}
	return b
}

// breakers keeps requests from an account, a container or a partition that does not answer.
type breakers struct {
	next policy.Transporter
	*health
}

func (b breakers) Do(r *http.Request) (*http.Response, error) {
	ctx, c := r.Context(), callOf(r.Context())
	own := b.of(c.about.container)
	var finds [2]bool
	for i, at := range []*breaker{b.account, own} {
		if i == 1 && own == b.account {
			break
		}
		found, err := at.enter(ctx, c.part, b.now)
		if finds[i] = found; err != nil {
			if finds[0] {
				b.account.leave(nothing, true, b.now())
			}
			return nil, err
		}
	}
	c.single, c.look = finds[0] || finds[1], 0
	if c.single {
		c.look = failoverTimeout // the others wait for what this call finds
	}
	if c.class == feed {
		if look := own.look(c.part); look > 0 {
			c.single, c.look = true, look
		}
	}
	answered, requests, began := c.answered, c.Requests, time.Now()
	response, err := b.next.Do(r)
	o := reply
	switch {
	case c.Requests == requests:
		o = nothing // it waited all the time
	case c.answered == answered && response == nil && c.status == 0:
		o = silenceOf(ctx, err, time.Since(began))
	case c.answered == answered:
		o = silence // a region that fails is no answer
	}
	if own != b.account {
		own.looked(c.part, o)
		own.leave(o, finds[1], b.now())
		if response != nil {
			o = reply
		} else if !isUnreachable(err) {
			o = nothing
		}
	}
	b.account.leave(o, finds[0], b.now())
	return response, err
}

// silenceOf tells a call that nobody answered from one that was given up for another reason.
func silenceOf(ctx context.Context, err error, took time.Duration) outcome {
	switch {
	case ctx.Err() == context.Canceled, ctx.Err() != nil && took < timeToAnswer:
		return nothing
	case ctx.Err() == nil && !retriable(err):
		return nothing
	}
	return silence
}
