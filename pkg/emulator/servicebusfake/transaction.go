package servicebusfake

import (
	"encoding/binary"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// step is a change of one queue that can be checked before it is made.
type step struct {
	entity *entity
	check  func(q *broker.Queue, now time.Time) error
	apply  func(q *broker.Queue, now time.Time) error
}

// commit makes all changes, or none if one of them cannot be made.
func (n *namespace) commit(steps ...step) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	for _, s := range steps {
		if err := s.check(s.entity.queue, now); err != nil {
			return err
		}
	}
	var failed error
	for _, s := range steps {
		if err := s.apply(s.entity.queue, now); err != nil && failed == nil {
			failed = err
		}
		n.follow(s.entity)
	}
	return failed
}

// transactions are those under way on a connection, by their ids.
type transactions map[string]*transaction

type transaction struct{ steps []step }

func (t transactions) declare(number uint64) []byte {
	id := binary.BigEndian.AppendUint64(nil, number)
	t[string(id)] = &transaction{}
	return id
}

// add puts a step off until its transaction is committed, and returns what the client is answered
// meanwhile.
func (t transactions) add(n *namespace, within *amqp.Transactional, outcome amqp.State, s step) amqp.State {
	found := t[string(within.TransactionID)]
	if found == nil {
		return &amqp.Rejected{Error: unknownTransaction()}
	}
	var err error
	n.update(s.entity, func(q *broker.Queue, now time.Time) { err = s.check(q, now) })
	if err != nil {
		refusal, _ := refusalOf(err)
		return &amqp.Rejected{Error: refusal}
	}
	found.steps = append(found.steps, s)
	return &amqp.Transactional{TransactionID: within.TransactionID, Outcome: outcome}
}

func unknownTransaction() *amqp.Error {
	return refuse(conditionUnknownID, "There is no such transaction: it was discharged, or its connection has ended.")
}

// coordinatorNode declares and discharges transactions (4.2, 4.3).
type coordinatorNode struct{ conn *conn }

func (n coordinatorNode) take(d *delivery) (amqp.State, error) {
	m, err := amqp.ParseMessage(d.payload)
	if err != nil {
		return nil, &linkError{refuse(conditionDecode, "%s", err)}
	}
	command, err := amqp.DecodeDeclare(m)
	if err != nil {
		return nil, &linkError{refuse(conditionDecode, "%s", err)}
	}
	discharge, ok := command.(*amqp.Discharge)
	if !ok {
		n.conn.declared++
		return &amqp.Declared{TransactionID: n.conn.transactions.declare(n.conn.declared)}, nil
	}
	found := n.conn.transactions[string(discharge.TransactionID)]
	if found == nil {
		return &amqp.Rejected{Error: unknownTransaction()}, nil
	}
	delete(n.conn.transactions, string(discharge.TransactionID))
	if discharge.Fail {
		return &amqp.Accepted{}, nil
	}
	if err := n.conn.server.namespace.commit(found.steps...); err != nil {
		return &amqp.Rejected{Error: refuse(conditionRollback, "The transaction was rolled back: %s", err)}, nil
	}
	return &amqp.Accepted{}, nil
}
