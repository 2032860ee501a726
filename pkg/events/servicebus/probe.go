package servicebus

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// Probe opens a link that can send to the queue, and sends nothing. Its error says what to do; it is a
// *Refusal where the service said so, and events.ErrUnreachable where it did not answer.
func (p *Publisher) Probe(ctx context.Context) error {
	link, err := p.acquire()
	if err == nil {
		err = p.attempt(ctx, link, func(ctx context.Context) error {
			_, err := link.sender.NewMessageBatch(ctx, nil) // which opens the link to learn the size it takes
			return err
		})
	}
	if err != nil {
		return p.queue.explain(err, 1, p.options.TryTimeout)
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
	client, err := p.queue.connect()
	if err != nil {
		return UnknownEntity
	}
	defer closeBounded(client.Close)
	receiver, err := p.queue.receiver(client)
	if err != nil {
		return UnknownEntity
	}
	// Which also opens a link to receive, on which nothing comes as long as nothing is asked for.
	_, err = within(ctx, p.options.TryTimeout, func(ctx context.Context) ([]*azservicebus.ReceivedMessage, error) {
		return receiver.PeekMessages(ctx, 1, nil)
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
