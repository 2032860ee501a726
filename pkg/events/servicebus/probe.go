package servicebus

import "context"

// Probe opens a link that can send to the queue, and sends nothing. Its error says what to do; it is a
// *Refusal where the service said so, and events.ErrUnreachable where it did not answer.
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

// What there is. To a sender they are the same.
const (
	UnknownEntity     Entity = ""
	Queue             Entity = "queue"
	QueueWithSessions Entity = "queue that requires sessions"
	Topic             Entity = "topic"
)

// Entity finds out what a Publisher whose Probe succeeds sends to, for which it needs the right to receive: it
// is unknown without. It looks at what waits in a queue and takes nothing from it.
func (p *Publisher) Entity(ctx context.Context) Entity {
	err := p.connection.use(ctx, p.options.TryTimeout, func(ctx context.Context, l senderLink) error {
		receiver, err := p.queue.receiver(l.Client)
		if err == nil {
			// Which also opens a link to receive, on which nothing comes as long as nothing is asked for.
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
		return Topic // nothing else can be sent to and not be received from
	}
	return UnknownEntity
}
