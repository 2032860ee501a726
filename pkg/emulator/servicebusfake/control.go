package servicebusfake

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// Op is a kind of operation that Control can intercept.
type Op string

const (
	OpOpen     Op = "open"      // a connection is opened
	OpPutToken Op = "put-token" // a token is presented for Request.Entity
	OpAttach   Op = "attach"    // a link is attached
	OpSend     Op = "send"      // messages are sent to a queue
	// a message was locked, or deleted, and is about to be sent to its receiver; it can be delayed
	// and dropped
	OpReceive Op = "receive"
	OpSettle  Op = "settle" // a delivery is settled on its link
	OpManage  Op = "manage" // a management operation
	OpHTTP    Op = "http"   // a request to the management API; Operation is its method
)

// Ops are all kinds of operations.
func Ops() []Op {
	return []Op{OpOpen, OpPutToken, OpAttach, OpSend, OpReceive, OpSettle, OpManage, OpHTTP}
}

// Request is one operation of a client.
type Request struct {
	Op Op
	// Connection numbers the connections of the server from 1 on.
	Connection uint64
	// Entity is the address as the client wrote it.
	Entity string
	// Receiver tells that the client attaches to receive.
	Receiver bool
	// Operation is the name of the management operation, or the outcome of a settlement: accepted,
	// rejected, released, modified.
	Operation string
	// Messages are those sent.
	Messages []Message
}

// Answer changes the result of an operation. Its zero value changes nothing.
type Answer struct {
	// Delay is the time before everything else. The connection stands still meanwhile.
	Delay time.Duration
	// Condition refuses the operation: an AMQP error condition such as "com.microsoft:server-busy".
	Condition string
	// Description goes with Condition.
	Description string
	// Status goes with Condition for put-token and management operations. Default: 500.
	Status int
	// Drop cuts the connection without an error frame: before the operation is done or, with
	// LoseReply, after it.
	Drop bool
	// LoseReply does the operation and never tells the client.
	LoseReply bool
	// Keep lets the function be asked again; without it, an answer removes the function.
	Keep bool
}

// Control has fn asked about every operation before it is done. A nil answer leaves the operation
// alone. Functions are asked in the order in which they came, until one answers. fn runs on the
// connection's own goroutine and must not call the server's Close.
func (s *Server) Control(fn func(*Request) *Answer) { s.controls.add(fn) }

type controls struct {
	mu        sync.Mutex
	functions []*control
}

type control struct{ fn func(*Request) *Answer }

func (c *controls) add(fn func(*Request) *Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.functions = append(c.functions, &control{fn})
}

// ask must not hold the mutex while it calls a function, which may well call Control.
func (c *controls) ask(r *Request) *Answer {
	c.mu.Lock()
	functions := slices.Clone(c.functions)
	c.mu.Unlock()
	for _, function := range functions {
		answer := function.fn(r)
		if answer == nil {
			continue
		}
		if !answer.Keep {
			c.mu.Lock()
			c.functions = slices.DeleteFunc(c.functions, func(other *control) bool { return other == function })
			c.mu.Unlock()
		}
		return answer
	}
	return nil
}

// errDropped ends a connection without a word.
var errDropped = errors.New("the connection was dropped by Control")

// verdict is what Control has decided on an operation.
type verdict struct {
	refusal *amqp.Error // the operation is not done
	status  int         // of the refusal, if it is answered with one
	silent  bool        // the operation is done and not answered
}

// intercept asks the Control functions. An error ends the connection.
func (c *conn) intercept(r Request) (verdict, error) {
	r.Connection = c.number
	answer := c.server.controls.ask(&r)
	if answer == nil {
		return verdict{}, nil
	}
	if answer.Delay > 0 && !c.server.pause(answer.Delay) {
		return verdict{}, errDropped
	}
	if answer.Drop && !answer.LoseReply {
		return verdict{}, errDropped
	}
	c.dropNext = answer.Drop
	v := verdict{silent: answer.LoseReply, status: answer.Status}
	if v.status == 0 {
		v.status = 500
	}
	if answer.Condition != "" {
		v.refusal = &amqp.Error{Condition: amqp.Symbol(answer.Condition), Description: answer.Description}
	}
	return v, nil
}
