package servicebusfake

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// link is one end of a link: an inbound, on which the client sends, or an outbound, on which it
// receives. Errors end the session or the connection.
type link interface {
	flow(*amqp.Flow) error
	transfer(t *amqp.Transfer, payload []byte) error
	// pump checks again for what the link waits for.
	pump() error
	// deadline is when to pump even if nothing has happened; zero = never.
	deadline() time.Time
	// authorized tells whether a token still covers the link.
	authorized() bool
	// detach ends the link from this side.
	detach(*amqp.Error) error
	// detached records the peer's detach, and reports whether this side had detached before.
	detached() bool
	// release gives back what the link holds. It may be called twice.
	release()
}

// endpoint is what both kinds of link have in common.
type endpoint struct {
	session *session
	conn    *conn
	handle  uint32 // the same number in both directions
	path    string // what a claim must cover; empty if none is needed
	free    bool   // the link needs no claim
	ended   bool   // this side has detached
}

func (e *endpoint) deadline() time.Time { return time.Time{} }

func (e *endpoint) authorized() bool {
	return e.free || e.conn.trusted || e.conn.claims.cover(e.path, e.conn.now())
}

func (e *endpoint) detached() bool { return e.ended }

func (e *endpoint) sendDetach(reason *amqp.Error) error {
	if e.ended {
		return nil
	}
	e.ended = true
	return e.session.send(&amqp.Detach{Handle: e.handle, Closed: true, Error: reason})
}

// attach attaches a link to the node that its address names, or refuses it.
func (s *session) attach(a *amqp.Attach) error {
	if s.links[a.Handle] != nil || a.Handle > handleMax {
		return &ending{refuse(conditionHandleInUse, "handle %d cannot take a link", a.Handle)}
	}
	v, err := s.conn.intercept(Request{Op: OpAttach, Entity: addressOf(a), Receiver: a.Role == amqp.RoleReceiver})
	if err != nil {
		return err
	}
	if v.refusal != nil {
		return s.refuse(a, v.refusal)
	}
	e := endpoint{session: s, conn: s.conn, handle: a.Handle}
	if a.Role == amqp.RoleSender {
		return s.attachInbound(e, a, v.silent)
	}
	return s.attachOutbound(e, a, v.silent)
}

func addressOf(a *amqp.Attach) string {
	switch {
	case a.Role == amqp.RoleReceiver && a.Source != nil:
		return a.Source.Address
	case a.Role == amqp.RoleSender && a.Target != nil:
		return a.Target.Address
	default:
		return ""
	}
}

// find is the queue that an address names, as far as the connection may use it.
func (e *endpoint) find(a address) (*entity, *amqp.Error) {
	e.path = a.path()
	if a.management {
		e.path += "/" + managementSuffix
	}
	if !e.authorized() {
		return nil, refuse(conditionUnauthorized, "Unauthorized access to %q: put a token for it first.", a.entity)
	}
	found := e.conn.server.namespace.find(a)
	if found == nil {
		return nil, refuse(conditionNotFound, "The messaging entity %q could not be found.", a.entity)
	}
	return found, nil
}

// reply is the attach that answers one, with the settlement modes as they were asked for.
func reply(a *amqp.Attach) *amqp.Attach {
	answer := &amqp.Attach{
		Name: a.Name, Handle: a.Handle, Role: !a.Role, SenderSettleMode: a.SenderSettleMode, ReceiverSettleMode: a.ReceiverSettleMode,
		Source: a.Source, Target: a.Target, Coordinator: a.Coordinator,
	}
	if answer.Role == amqp.RoleSender {
		answer.InitialDeliveryCount = new(uint32)
	}
	return answer
}

// refuse answers an attach with one that leads nowhere, and ends it at once with the reason
// (2.6.3).
func (s *session) refuse(a *amqp.Attach, reason *amqp.Error) error {
	answer := reply(a)
	if a.Role == amqp.RoleSender {
		answer.Target, answer.Coordinator = nil, nil
	} else {
		answer.Source = nil
	}
	refused := &inbound{endpoint: endpoint{session: s, conn: s.conn, handle: a.Handle}}
	s.links[a.Handle] = refused
	if err := s.send(answer); err != nil {
		return err
	}
	return refused.detach(reason)
}
