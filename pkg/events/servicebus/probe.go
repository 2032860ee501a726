package servicebus

import "context"

// Probe opens a link that can send to the queue, and sends nothing. Its error says what to do: a *Refusal if
// the service refused, and events.ErrUnreachable if it did not answer.
func (p *Publisher) Probe(ctx context.Context) error {
	err := p.connection.use(ctx, p.options.TryTimeout, func(ctx context.Context, l senderLink) error {
		_, err := l.sender.NewMessageBatch(ctx, nil) // which opens the link to learn the size it takes
		return err
	})
	if err != nil {
		return p.queue.explain(err, 1)
	}
	return nil
}

// Entity is what a Publisher sends to.
type Entity string

// The kinds of Entity.
const (
	UnknownEntity     Entity = ""
	Queue             Entity = "queue"
	QueueWithSessions Entity = "queue that requires sessions"
	Topic             Entity = "topic"
)

// Entity finds out what a Publisher sends to, after a Probe that succeeded. It needs the right to receive:
// without it the Entity is unknown. It peeks at the messages of a queue and takes none.
func (p *Publisher) Entity(ctx context.Context) Entity {
	err := p.connection.use(ctx, p.options.TryTimeout, func(ctx context.Context, l senderLink) error {
		receiver, err := p.queue.receiver(l.Client)
		if err == nil {
			// This opens a link for receiving, too; no message comes on it, since none is asked for.
			_, err = receiver.PeekMessages(ctx, 1, nil)
		}
		return err
	})
	switch {
	case err == nil:
		return Queue
	case kindOf(err) == WrongSessions:
		return QueueWithSessions
	case kindOf(err) == WrongEntity:
		return Topic // nothing else can be sent to but not received from
	}
	return UnknownEntity
}
