package servicebusfake

import (
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// batchFormat is the message format of a batch: every data section of the body is a message of its
// own.
const batchFormat uint32 = 0x80013700

// queueNode takes the messages sent to a queue.
type queueNode struct {
	conn    *conn
	entity  *entity
	address string
}

func (n queueNode) take(d *delivery) (amqp.State, error) {
	messages, err := splitBatch(d)
	if err != nil {
		return nil, &linkError{refuse(conditionDecode, "%s", err)}
	}
	v, err := n.conn.intercept(Request{Op: OpSend, Entity: n.address, Messages: describeAll(messages)})
	if err != nil {
		return nil, err
	}
	if v.refusal != nil {
		return &amqp.Rejected{Error: v.refusal}, nil
	}
	state := n.send(d.state, messages)
	if v.silent {
		return nil, nil
	}
	return state, nil
}

// send puts all messages in the queue, or none; within a transaction it does so once that is
// committed.
func (n queueNode) send(state amqp.State, messages []broker.Message) amqp.State {
	change := step{
		entity: n.entity,
		check: func(q *broker.Queue, _ time.Time) error {
			for _, m := range messages {
				if err := q.Check(m); err != nil {
					return err
				}
			}
			return nil
		},
		apply: func(q *broker.Queue, now time.Time) error {
			for _, m := range messages {
				if _, err := q.Send(now, m); err != nil {
					return err
				}
			}
			return nil
		},
	}
	if within, ok := state.(*amqp.Transactional); ok {
		return n.conn.transactions.add(n.conn.server.namespace, within, &amqp.Accepted{}, change)
	}
	if err := n.conn.server.namespace.commit(change); err != nil {
		refusal, _ := refusalOf(err)
		return &amqp.Rejected{Error: refusal}
	}
	return &amqp.Accepted{}
}

// splitBatch reads the messages of a delivery.
func splitBatch(d *delivery) ([]broker.Message, error) {
	encoded := [][]byte{d.payload}
	if d.format() == batchFormat {
		envelope, err := amqp.ParseMessage(d.payload)
		if err != nil {
			return nil, err
		}
		if encoded = envelope.Data(); encoded == nil {
			return nil, fmt.Errorf("a batch whose body is not data")
		}
	}
	messages := make([]broker.Message, len(encoded))
	for i, content := range encoded {
		var err error
		if messages[i], err = readMessage(content); err != nil {
			return nil, err
		}
	}
	return messages, nil
}
