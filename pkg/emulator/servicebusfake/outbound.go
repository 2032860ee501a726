package servicebusfake

import (
	"encoding/binary"
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// outbound is a link on which the client receives.
type outbound struct {
	endpoint
	supply  supply
	settled bool // messages are settled as they are sent

	credit     uint32
	sent       uint32 // deliveries, which is also the link's delivery count
	drain      bool
	deliveries map[uint32]bool // unsettled ones
}

// supply is where an outbound gets its messages.
type supply interface {
	// alive tells why the link cannot go on, or nil.
	alive() *amqp.Error
	// next is a message to send; ok is false if there is none. An error detaches the link.
	next() (m outgoing, ok bool, refusal *amqp.Error)
	// settle deals with the outcome of a delivery and returns what to answer; nil = no answer.
	settle(id uint32, state amqp.State) (amqp.State, error)
	// release gives back what is held.
	release()
}

// outgoing is an encoded message. sent tells the supply the id that the delivery has got.
type outgoing struct {
	tag     []byte
	content []byte
	sent    func(id uint32)
}

func (s *session) attachOutbound(e endpoint, a *amqp.Attach, silent bool) error {
	l := &outbound{endpoint: e, settled: a.SenderSettleMode == amqp.SenderSettled, deliveries: map[uint32]bool{}}
	if a.Source == nil {
		return s.refuse(a, refuse(conditionArgument, "The link has no source."))
	}
	if strings.EqualFold(a.Source.Address, cbsAddress) {
		l.free = true
		l.supply = newReplies(cbsAddress, a)
		return l.attached(reply(a), silent)
	}
	address := parseAddress(a.Source.Address)
	found, refusal := l.find(address)
	if refusal != nil {
		return s.refuse(a, refusal)
	}
	if address.management {
		l.supply = newReplies(l.path, a)
		return l.attached(reply(a), silent)
	}
	if found.kind == topicEntity {
		return s.refuse(a, wrongKind("received from", "a topic", address))
	}
	return s.attachReceiver(l, a, found, silent)
}

// attached answers the attach and puts the link to work.
func (l *outbound) attached(answer *amqp.Attach, silent bool) error {
	l.session.links[l.handle] = l
	if silent {
		return nil
	}
	return l.session.send(answer)
}

func (l *outbound) release() {
	for id := range l.deliveries {
		delete(l.session.deliveries, id)
	}
	clear(l.deliveries)
	if l.supply != nil {
		l.supply.release()
	}
}

func (l *outbound) detach(reason *amqp.Error) error {
	l.release()
	return l.sendDetach(reason)
}

func (l *outbound) transfer(*amqp.Transfer, []byte) error {
	if l.ended {
		return nil
	}
	return l.detach(refuse(conditionNotAllowed, "A receiver does not send."))
}

func (l *outbound) flow(flow *amqp.Flow) error {
	if l.ended {
		return nil
	}
	if flow.LinkCredit != nil {
		// The credit counts from what the peer had seen when it gave it (2.6.7); a peer that has
		// seen nothing leaves that out.
		seen := uint32(0)
		if flow.DeliveryCount != nil {
			seen = *flow.DeliveryCount
		}
		l.credit = seen + *flow.LinkCredit - l.sent
		if int32(l.credit) < 0 {
			l.credit = 0
		}
	}
	l.drain = flow.Drain
	if err := l.pump(); err != nil {
		return err
	}
	if flow.Echo && !l.ended {
		return l.sendState()
	}
	return nil
}

func (l *outbound) sendState() error {
	handle, count, credit := l.handle, l.sent, l.credit
	return l.session.sendFlow(&amqp.Flow{Handle: &handle, DeliveryCount: &count, LinkCredit: &credit, Drain: l.drain})
}

// pump sends what there is, as far as credit and window reach.
func (l *outbound) pump() error {
	if l.ended {
		return nil
	}
	if refusal := l.supply.alive(); refusal != nil {
		return l.detach(refusal)
	}
	for l.credit > 0 && len(l.session.waiting) == 0 {
		m, ok, refusal := l.supply.next()
		if refusal != nil {
			return l.detach(refusal)
		}
		if !ok {
			break
		}
		if err := l.send(m); err != nil {
			return err
		}
	}
	if l.drain {
		// Credit is unused if there are too few messages; it is spent anyway, so that the peer
		// knows that there are none (2.6.7).
		l.sent += l.credit
		l.credit = 0
		err := l.sendState()
		l.drain = false
		return err
	}
	return nil
}

func (l *outbound) send(m outgoing) error {
	s := l.session
	id := s.nextDelivery
	s.nextDelivery++
	l.credit--
	l.sent++
	if m.tag == nil {
		m.tag = binary.BigEndian.AppendUint32(nil, id)
	}
	if !l.settled {
		l.deliveries[id] = true
		s.deliveries[id] = l
		m.sent(id)
	}
	return l.sendFrames(id, m)
}

// transferOverhead is more than any transfer frame needs besides its payload, in bytes.
const transferOverhead = 128

// sendFrames sends a message in as many frames as the peer's limit makes necessary.
func (l *outbound) sendFrames(id uint32, m outgoing) error {
	limit := int(min(l.conn.peer.MaxFrameSize, maxFrameSize)) - transferOverhead
	format := uint32(0)
	transfer := &amqp.Transfer{DeliveryID: &id, DeliveryTag: m.tag, MessageFormat: &format}
	for first := true; first || len(m.content) > 0; first = false {
		part := m.content[:min(limit, len(m.content))]
		m.content = m.content[len(part):]
		transfer.Handle, transfer.Settled, transfer.More = l.handle, l.settled, len(m.content) > 0
		if err := l.session.sendTransfer(transfer, part); err != nil {
			return err
		}
		transfer = &amqp.Transfer{}
	}
	return nil
}

// settle deals with the client's outcome of one delivery. One that says no outcome settles nothing,
// unless it says it is settled.
func (l *outbound) settle(id uint32, d *amqp.Disposition) error {
	if _, received := d.State.(*amqp.Received); (d.State == nil || received) && !d.Settled {
		return nil
	}
	state, err := l.supply.settle(id, d.State)
	if err != nil {
		return err
	}
	delete(l.deliveries, id)
	delete(l.session.deliveries, id)
	if state == nil || d.Settled {
		return nil
	}
	return l.session.send(&amqp.Disposition{Role: amqp.RoleSender, First: id, Settled: true, State: state})
}
