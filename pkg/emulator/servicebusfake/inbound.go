package servicebusfake

import (
	"strings"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
)

// inboundCredit is how many messages a client may have under way on a link.
const inboundCredit = 1000

// inbound is a link on which the client sends.
type inbound struct {
	endpoint
	node    node
	maxSize int // bytes of a message

	credit   uint32
	received uint32 // deliveries, which is also the link's delivery count
	partial  *delivery
}

// node is what a client can send to.
type node interface {
	// take deals with a message and returns the state to answer it with; nil = no answer. An error
	// ends the connection, unless it is a linkError.
	take(*delivery) (amqp.State, error)
}

// delivery is a message that a client sends.
type delivery struct {
	first   *amqp.Transfer
	payload []byte
	state   amqp.State // a Transactional state where the message is part of a transaction
}

func (d *delivery) format() uint32 {
	if d.first.MessageFormat == nil {
		return 0
	}
	return *d.first.MessageFormat
}

// linkError ends the link instead of answering the message.
type linkError struct{ reason *amqp.Error }

func (e *linkError) Error() string { return string(e.reason.Condition) + ": " + e.reason.Description }

func (s *session) attachInbound(e endpoint, a *amqp.Attach, silent bool) error {
	l := &inbound{endpoint: e, maxSize: requestSizeLimit}
	answer := reply(a)
	switch {
	case a.Coordinator != nil:
		l.free = true
		l.node = coordinatorNode{s.conn}
	case a.Target == nil:
		return s.refuse(a, refuse(conditionArgument, "The link has no target."))
	case strings.EqualFold(a.Target.Address, cbsAddress):
		l.free = true
		l.node = cbsNode{responder{s.conn, s, cbsAddress}}
	default:
		address := parseAddress(a.Target.Address)
		found, refusal := l.find(address)
		switch {
		case refusal != nil:
			return s.refuse(a, refusal)
		case address.management:
			l.node = managementNode{responder{s.conn, s, l.path}, found}
		case address.deadLetter:
			return s.refuse(a, refuse(conditionNotAllowed, "Nothing can be sent to a dead-letter queue."))
		case found.kind == subscriptionEntity:
			return s.refuse(a, wrongKind("sent to", "a subscription", address))
		default:
			l.node = queueNode{s.conn, found, a.Target.Address}
			l.maxSize = found.queue.Spec().MaxMessageSize
		}
	}
	answer.MaxMessageSize = uint64(l.maxSize)
	s.links[a.Handle] = l
	if silent {
		return nil
	}
	if err := s.send(answer); err != nil {
		return err
	}
	return l.grant()
}

// requestSizeLimit bounds a message to a node that is not a queue, in bytes.
const requestSizeLimit = 1024 * 1024

// grant fills the client's credit up.
func (l *inbound) grant() error {
	l.credit = inboundCredit
	handle, count, credit := l.handle, l.received, l.credit
	return l.session.sendFlow(&amqp.Flow{Handle: &handle, DeliveryCount: &count, LinkCredit: &credit})
}

func (l *inbound) pump() error { return nil }

func (l *inbound) release() {}

func (l *inbound) detach(reason *amqp.Error) error { return l.sendDetach(reason) }

func (l *inbound) flow(flow *amqp.Flow) error {
	if l.ended {
		return nil
	}
	if flow.DeliveryCount != nil {
		l.received = *flow.DeliveryCount
	}
	if flow.Echo {
		return l.grant()
	}
	return nil
}

func (l *inbound) transfer(t *amqp.Transfer, payload []byte) error {
	if l.ended {
		return nil
	}
	if l.partial == nil {
		if t.DeliveryID == nil {
			return &ending{refuse(conditionDecode, "a transfer that begins a delivery without an id")}
		}
		if l.credit == 0 {
			return l.detach(refuse(conditionTransferLimit, "The link has no credit left."))
		}
		l.partial = &delivery{first: t}
		l.credit--
		l.received++
	}
	d := l.partial
	if t.State != nil {
		d.state = t.State
	}
	// The settled flag may come with any frame of the delivery (2.7.5).
	d.first.Settled = d.first.Settled || t.Settled
	if t.Aborted {
		l.partial = nil
		return nil
	}
	if len(d.payload)+len(payload) > l.maxSize {
		l.partial = nil
		return l.detach(refuse(conditionMessageSize, "The received message (%d bytes or more) exceeds the limit (%d bytes) of the link.",
			len(d.payload)+len(payload), l.maxSize))
	}
	d.payload = append(d.payload, payload...)
	if t.More {
		return nil
	}
	l.partial = nil
	return l.deliver(d)
}

func (l *inbound) deliver(d *delivery) error {
	state, err := l.node.take(d)
	if refused, ok := err.(*linkError); ok {
		return l.detach(refused.reason)
	}
	if err != nil {
		return err
	}
	if state != nil && !d.first.Settled {
		err = l.session.send(&amqp.Disposition{Role: amqp.RoleReceiver, First: *d.first.DeliveryID, Settled: true, State: state})
		if err != nil {
			return err
		}
	}
	if l.credit < inboundCredit/2 {
		return l.grant()
	}
	return nil
}
