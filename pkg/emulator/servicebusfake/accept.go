package servicebusfake

import (
	"errors"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// accepting is a link whose attach waits for the next session that is free and has messages.
type accepting struct {
	endpoint
	link     *outbound
	attach   *amqp.Attach
	receiver *receiver
	silent   bool
	until    time.Time
	credit   *amqp.Flow // what the client has already given
	watching bool
}

func (s *session) acceptNext(l *outbound, a *amqp.Attach, r *receiver, silent bool) error {
	w := &accepting{endpoint: l.endpoint, link: l, attach: a, receiver: r, silent: silent, watching: true}
	w.until = time.Now().Add(acceptTimeout(a.Properties))
	s.links[a.Handle] = w
	// Watched before the first look, so that no change between the two is missed.
	s.conn.server.namespace.watch(r.entity, s.conn)
	return w.pump()
}

func acceptTimeout(properties amqp.Map) time.Duration {
	milliseconds, ok := integer(properties.Get(timeoutProperty))
	if !ok || milliseconds < 0 || milliseconds > int64(time.Hour/time.Millisecond) {
		return defaultAcceptTimeout
	}
	return time.Duration(milliseconds) * time.Millisecond
}

func (w *accepting) pump() error {
	if w.ended {
		return nil
	}
	var err error
	w.conn.server.namespace.update(w.receiver.entity, func(q *broker.Queue, now time.Time) {
		w.receiver.session, err = q.AcceptNext(now)
	})
	switch {
	case err == nil:
		return w.accepted()
	case errors.Is(err, broker.ErrNoSession) && time.Now().Before(w.until):
		return nil
	default:
		w.release()
		refusal, _ := refusalOf(err)
		return w.session.refuse(w.attach, refusal)
	}
}

func (w *accepting) accepted() error {
	if err := w.receiver.start(w.link, w.attach, w.silent); err != nil {
		return err
	}
	w.release()
	if w.credit == nil {
		return nil
	}
	return w.link.flow(w.credit)
}

func (w *accepting) deadline() time.Time {
	if w.ended {
		return time.Time{}
	}
	return w.until
}

func (w *accepting) flow(flow *amqp.Flow) error {
	w.credit = flow
	return nil
}

func (w *accepting) transfer(*amqp.Transfer, []byte) error {
	return w.detach(refuse(conditionNotAllowed, "A receiver does not send."))
}

// detach answers the attach before it ends the link, as every detach must follow an attach.
func (w *accepting) detach(reason *amqp.Error) error {
	w.release()
	return w.session.refuse(w.attach, reason)
}

func (w *accepting) release() {
	if w.watching {
		w.watching = false
		w.conn.server.namespace.unwatch(w.receiver.entity, w.conn)
	}
}
