package servicebusfake

import (
	"net"
	"sync"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// outbox writes the frames of a connection, so that a peer that does not read blocks only itself.
// Frames that arrive during a write go out with the next one. Its size is bounded by the credit
// that the peer gave.
type outbox struct {
	signal chan struct{}

	mu      sync.Mutex
	pending []byte
	ended   bool
}

func newOutbox() *outbox { return &outbox{signal: make(chan struct{}, 1)} }

func (o *outbox) frame(frame amqp.Frame) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	pending, err := amqp.AppendFrame(o.pending, frame)
	if err != nil {
		return err
	}
	o.pending = pending
	o.notify()
	return nil
}

func (o *outbox) notify() {
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

// end lets run return once everything is written.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.notify()
}

func (o *outbox) take(buffer []byte) (taken []byte, ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken, o.pending = o.pending, buffer[:0]
	return taken, o.ended
}

// run writes until end is called or a write fails. Where keepAlive is set, it sends an empty frame
// at that interval, which tells the peer that this side lives.
func (o *outbox) run(socket net.Conn, keepAlive time.Duration) error {
	var idle <-chan time.Time
	if keepAlive > 0 {
		ticker := time.NewTicker(keepAlive)
		defer ticker.Stop()
		idle = ticker.C
	}
	var buffer []byte
	for {
		select {
		case <-o.signal:
		case <-idle:
			if err := o.frame(amqp.Frame{}); err != nil {
				return err
			}
		}
		var ended bool
		buffer, ended = o.take(buffer)
		if len(buffer) > 0 {
			if _, err := socket.Write(buffer); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
	}
}
