package servicebus

import "context"

// Probe opens a link that can send to the queue, and sends nothing. Its error says what to do; it is a
// *Refusal where the service said so, and events.ErrUnreachable where it did not answer.
func (p *Publisher) Probe(ctx context.Context) error {
	link, err := p.acquire()
	if err == nil {
		defer link.users.Done()
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
