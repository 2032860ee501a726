package servicebusfake

import (
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// sessionWindow is how many transfer frames may be under way in a session, in either direction.
const sessionWindow = 5000

// session is an AMQP session: a pair of windows that limit transfer frames, and the links inside.
// (A Service Bus session is another thing; it lives in package broker.)
type session struct {
	conn    *conn
	channel uint16 // the same number in both directions
	ended   bool   // by this side, and not yet by the peer
	links   map[uint32]link

	nextIncoming uint32
	received     uint32 // transfer frames since the peer was last told the window

	nextOutgoing uint32
	peerWindow   uint32       // transfer frames that the peer takes
	waiting      []amqp.Frame // transfer frames that it does not take yet

	nextDelivery uint32
	deliveries   map[uint32]*outbound // whose delivery is unsettled
}

// ending is an error that ends a session.
type ending struct{ reason *amqp.Error }

func (e *ending) Error() string { return string(e.reason.Condition) + ": " + e.reason.Description }

func newSession(c *conn, channel uint16, begin *amqp.Begin) *session {
	return &session{
		conn: c, channel: channel, links: map[uint32]link{}, deliveries: map[uint32]*outbound{},
		nextIncoming: begin.NextOutgoingID, peerWindow: begin.IncomingWindow,
	}
}

func (s *session) send(body amqp.Composite) error { return s.conn.send(s.channel, body) }

func (s *session) handle(frame amqp.Frame) error {
	switch body := frame.Body.(type) {
	case *amqp.Attach:
		return s.attach(body)
	case *amqp.Flow:
		return s.flow(body)
	case *amqp.Transfer:
		return s.transfer(body, frame.Payload)
	case *amqp.Disposition:
		return s.disposition(body)
	case *amqp.Detach:
		return s.detached(body)
	case *amqp.End:
		s.releaseAll()
		delete(s.conn.sessions, s.channel)
		return s.send(&amqp.End{})
	default:
		return &closing{refuse(conditionFraming, "%T inside a session", frame.Body)}
	}
}

func (s *session) end(reason *amqp.Error) error {
	s.releaseAll()
	s.ended = true
	return s.send(&amqp.End{Error: reason})
}

func (s *session) releaseAll() {
	for handle, l := range s.links {
		l.release()
		delete(s.links, handle)
	}
}

// flow takes the peer's view of the windows, and passes on what concerns a link.
func (s *session) flow(flow *amqp.Flow) error {
	// The peer's window, minus the frames that it had not seen when it sent the window (2.5.6).
	begun := uint32(0)
	if flow.NextIncomingID != nil {
		begun = *flow.NextIncomingID
	}
	s.peerWindow = begun + flow.IncomingWindow - s.nextOutgoing
	if int32(s.peerWindow) < 0 {
		s.peerWindow = 0
	}
	held := len(s.waiting) > 0
	if err := s.drainWaiting(); err != nil {
		return err
	}
	if held {
		// With room in the window again, links may go on.
		if err := s.pumpAll(); err != nil {
			return err
		}
	}
	if flow.Handle == nil {
		if flow.Echo {
			return s.sendFlow(nil)
		}
		return nil
	}
	l := s.links[*flow.Handle]
	if l == nil {
		return &ending{refuse(conditionUnattachedHandle, "flow on handle %d, to which no link is attached", *flow.Handle)}
	}
	return l.flow(flow)
}

func (s *session) pumpAll() error {
	for _, l := range s.links {
		if err := l.pump(); err != nil {
			return err
		}
	}
	return nil
}

// sendFlow tells the peer the windows and, if it is given, the state of a link.
func (s *session) sendFlow(flow *amqp.Flow) error {
	if flow == nil {
		flow = &amqp.Flow{}
	}
	next := s.nextIncoming
	flow.NextIncomingID, flow.IncomingWindow = &next, sessionWindow
	flow.NextOutgoingID, flow.OutgoingWindow = s.nextOutgoing, sessionWindow
	s.received = 0
	return s.send(flow)
}

func (s *session) transfer(transfer *amqp.Transfer, payload []byte) error {
	s.nextIncoming++
	s.received++
	if s.received >= sessionWindow/2 {
		if err := s.sendFlow(nil); err != nil {
			return err
		}
	}
	l := s.links[transfer.Handle]
	if l == nil {
		return &ending{refuse(conditionUnattachedHandle, "transfer on handle %d, to which no link is attached", transfer.Handle)}
	}
	return l.transfer(transfer, payload)
}

// sendTransfer sends a transfer frame as soon as the peer's window is open.
func (s *session) sendTransfer(transfer *amqp.Transfer, payload []byte) error {
	s.waiting = append(s.waiting, amqp.Frame{Channel: s.channel, Body: transfer, Payload: payload})
	return s.drainWaiting()
}

func (s *session) drainWaiting() error {
	for len(s.waiting) > 0 && s.peerWindow > 0 {
		if err := s.conn.out.frame(s.waiting[0]); err != nil {
			return err
		}
		s.waiting[0] = amqp.Frame{}
		s.waiting = s.waiting[1:]
		s.peerWindow--
		s.nextOutgoing++
	}
	return nil
}

// disposition settles deliveries of this side. What the peer says of its own deliveries needs no
// answer: they were settled when they were taken.
func (s *session) disposition(d *amqp.Disposition) error {
	if d.Role != amqp.RoleReceiver {
		return nil
	}
	last := d.First
	if d.Last != nil {
		last = *d.Last
	}
	if count := last - d.First; count > s.nextDelivery {
		return &ending{refuse(conditionDecode, "a disposition of deliveries %d to %d, which were never made", d.First, last)}
	}
	for id := d.First; id != last+1; id++ {
		l := s.deliveries[id]
		if l == nil {
			continue
		}
		if err := l.settle(id, d); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) detached(detach *amqp.Detach) error {
	l := s.links[detach.Handle]
	if l == nil {
		return &ending{refuse(conditionUnattachedHandle, "detach of handle %d, to which no link is attached", detach.Handle)}
	}
	answered := l.detached()
	l.release()
	delete(s.links, detach.Handle)
	if answered {
		return nil
	}
	return s.send(&amqp.Detach{Handle: detach.Handle, Closed: detach.Closed})
}
