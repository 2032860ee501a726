package servicebusfake

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

const (
	// sessionFilter asks for a session in an attach and names it in the answer.
	sessionFilter = "com.microsoft:session-filter"
	// lockedUntilProperty tells in the answer, in .NET ticks, how long the session is locked.
	lockedUntilProperty amqp.Symbol = "com.microsoft:locked-until-utc"
	// timeoutProperty is how long the client waits for a session, in milliseconds.
	timeoutProperty = "com.microsoft:timeout"
	// defaultAcceptTimeout is how long a client waits that does not say so.
	defaultAcceptTimeout = time.Minute
)

// receiver supplies a link with the messages of a queue.
type receiver struct {
	conn    *conn
	entity  *entity
	address string
	mode    broker.Mode
	session *broker.SessionLock // nil in a queue without sessions
	locks   map[uint32]broker.Token
	closed  bool
}

// attachReceiver attaches a link to a queue, and to a session where the client asks for one.
func (s *session) attachReceiver(l *outbound, a *amqp.Attach, e *entity, silent bool) error {
	r := &receiver{conn: s.conn, entity: e, address: a.Source.Address, locks: map[uint32]broker.Token{}}
	if l.settled {
		r.mode = broker.Delete
	}
	wanted, byName, any := wantedSession(a.Source.Filter)
	if requires := e.queue.Spec().RequiresSession; requires != (byName || any) {
		err := broker.ErrSessionRequired
		if !requires {
			err = broker.ErrSessionNotSupported
		}
		refusal, _ := refusalOf(err)
		return s.refuse(a, refusal)
	}
	l.supply = r
	if any {
		return s.acceptNext(l, a, r, silent)
	}
	if byName {
		var err error
		s.conn.server.namespace.update(e, func(q *broker.Queue, now time.Time) { r.session, err = q.Accept(now, wanted) })
		if err != nil {
			refusal, _ := refusalOf(err)
			return s.refuse(a, refusal)
		}
	}
	return r.start(l, a, silent)
}

// start answers the attach and has the link fed from now on.
func (r *receiver) start(l *outbound, a *amqp.Attach, silent bool) error {
	answer := reply(a)
	if r.session != nil {
		source := *a.Source
		source.Filter = grantedFilter(source.Filter, r.session.ID())
		answer.Source = &source
		answer.Properties = amqp.Map{{Key: lockedUntilProperty, Value: ticks(r.session.LockedUntil())}}
	}
	r.conn.server.namespace.watch(r.entity, r.conn)
	return l.attached(answer, silent)
}

// wantedSession reads the session filter: a name, or any session where its value is null. It stands
// there described or bare, depending on the client.
func wantedSession(filter amqp.Map) (name string, byName, any bool) {
	for _, pair := range filter {
		if key, ok := pair.Key.(amqp.Symbol); !ok || key != sessionFilter {
			continue
		}
		value := pair.Value
		if described, ok := value.(amqp.Described); ok {
			value = described.Value
		}
		name, byName = value.(string)
		return name, byName, value == nil
	}
	return "", false, false
}

func grantedFilter(filter amqp.Map, id string) amqp.Map {
	var value any = id
	if described, ok := filter.Get(sessionFilter).(amqp.Described); ok {
		value = amqp.Described{Descriptor: described.Descriptor, Value: id}
	}
	return filter.With(amqp.Symbol(sessionFilter), value)
}

// ticks is an instant as .NET counts it: in 100 ns since the year 1.
func ticks(t time.Time) int64 {
	const unixEpoch = 621_355_968_000_000_000
	return unixEpoch + t.UnixNano()/100
}

func (r *receiver) alive() *amqp.Error {
	if r.session == nil {
		return nil
	}
	held := false
	r.conn.server.namespace.update(r.entity, func(q *broker.Queue, now time.Time) {
		q.Advance(now)
		held = q.Holds(r.session)
	})
	if held {
		return nil
	}
	refusal, _ := refusalOf(broker.ErrSessionLockLost)
	return refusal
}

func (r *receiver) next() (outgoing, bool, *amqp.Error) {
	var d broker.Delivery
	var ok bool
	var err error
	r.conn.server.namespace.update(r.entity, func(q *broker.Queue, now time.Time) {
		d, ok, err = q.Receive(now, r.session, r.mode)
	})
	if err != nil {
		refusal, _ := refusalOf(err)
		return outgoing{}, false, refusal
	}
	if !ok {
		return outgoing{}, false, nil
	}
	if v, err := r.conn.intercept(Request{Op: OpReceive, Entity: r.address}); err != nil || v.silent {
		r.conn.dropNext = r.conn.dropNext || err != nil
		return outgoing{}, false, nil
	}
	content, err := encodeDelivery(d, nil)
	if err != nil {
		return outgoing{}, false, refuse(conditionInternal, "%s", err)
	}
	tag := deliveryTag(d.Token)
	return outgoing{tag: tag, content: content, sent: func(id uint32) { r.locks[id] = d.Token }}, true, nil
}

// deliveryTag is a lock token in the byte order of a .NET Guid, whose first three fields are
// little-endian.
func deliveryTag(t broker.Token) []byte {
	return []byte{t[3], t[2], t[1], t[0], t[5], t[4], t[7], t[6], t[8], t[9], t[10], t[11], t[12], t[13], t[14], t[15]}
}

func (r *receiver) settle(id uint32, state amqp.State) (amqp.State, error) {
	token, ok := r.locks[id]
	if !ok {
		return nil, nil
	}
	outcome := state
	within, transactional := state.(*amqp.Transactional)
	if transactional {
		outcome = within.Outcome
	}
	change, answer := settlement(outcome, token)
	v, err := r.conn.intercept(Request{Op: OpSettle, Entity: r.address, Operation: change.name})
	if err != nil {
		return nil, err
	}
	if v.refusal != nil {
		answer = &amqp.Rejected{Error: v.refusal}
	} else {
		delete(r.locks, id)
		answer = r.carryOut(change.step(r.entity, token), within, answer)
	}
	if v.silent {
		return nil, nil
	}
	return answer, nil
}

func (r *receiver) carryOut(change step, within *amqp.Transactional, answer amqp.State) amqp.State {
	if within != nil {
		return r.conn.transactions.add(r.conn.server.namespace, within, answer, change)
	}
	err := r.conn.server.namespace.commit(change)
	if err == nil {
		return answer
	}
	refusal, _ := refusalOf(err)
	if err == broker.ErrLockLost && r.session != nil {
		refusal, _ = refusalOf(broker.ErrSessionLockLost)
	}
	return &amqp.Rejected{Error: refusal}
}

// release gives the session back. Messages of a queue without sessions stay locked until their
// locks expire, as in the service.
func (r *receiver) release() {
	if r.closed {
		return
	}
	r.closed = true
	r.conn.server.namespace.unwatch(r.entity, r.conn)
	if r.session != nil {
		r.conn.server.namespace.update(r.entity, func(q *broker.Queue, now time.Time) { q.ReleaseSession(now, r.session) })
	}
}
