package cosmosfake

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Request is what a control function sees of a request, before it is checked or handled.
type Request struct {
	Kind      Kind
	Region    string
	Database  string // as in the request's link, a name or a RID
	Container string
	Document  string
	RangeID   string // of the partition key range, where the request names one
	Header    http.Header
}

// Answer says what to do before, or instead of, handling a request.
type Answer struct {
	// Delay passes before anything else happens.
	Delay time.Duration
	// Break ends the connection without an answer.
	Break bool
	// Status, if it is not zero, is sent with the fields below; otherwise the request is handled as
	// usual.
	Status    int
	Substatus int
	Header    http.Header
	// Body is sent as it is; empty, an error status has the body that the service sends with it,
	// around Message.
	Body    string
	Message string
	// CutShort ends the connection in the middle of the answer's body, whether the answer is
	// scripted here or not.
	CutShort bool
	// EmptyPage makes a query, or a read of the change feed, that is handled as usual answer with a
	// page that has a continuation but no results, as the service does where it ran out of time. A
	// change feed answers so with 200, and an ETag that moved to where the next change is; where
	// there is none it answers 304 all the same.
	EmptyPage bool

	inErrors bool // Message is wrapped as those of the replicas are
}

// Control registers a function that sees every request. Of several functions the one registered
// last is asked first, and the first answer counts; nil lets the request go on. The function is
// called from many goroutines. It stays until remove is called.
func (s *Server) Control(fn func(*Request) *Answer) (remove func()) {
	return s.controls.add(fn)
}

// Times makes a control function that gives an answer to the first n requests of a kind.
func Times(n int, kind Kind, a Answer) func(*Request) *Answer {
	var given atomic.Int64
	return func(r *Request) *Answer {
		if r.Kind != kind || given.Add(1) > int64(n) {
			return nil
		}
		return &a
	}
}

// Once is Times with n = 1.
func Once(kind Kind, a Answer) func(*Request) *Answer { return Times(1, kind, a) }

type controls struct {
	mu      sync.Mutex
	current atomic.Pointer[[]*control] // newest first, never changed once published
}

type control struct{ fn func(*Request) *Answer }

func (c *controls) list() []*control {
	if l := c.current.Load(); l != nil {
		return *l
	}
	return nil
}

func (c *controls) add(fn func(*Request) *Answer) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &control{fn}
	next := append([]*control{added}, c.list()...)
	c.current.Store(&next)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		var rest []*control
		for _, x := range c.list() {
			if x != added {
				rest = append(rest, x)
			}
		}
		c.current.Store(&rest)
	}
}

func (c *controls) ask(r *Request) *Answer {
	for _, x := range c.list() {
		if a := x.fn(r); a != nil {
			return a
		}
	}
	return nil
}
