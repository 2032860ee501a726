package servicebus

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// SignalLink is a connection to a signal queue. Its receiver deletes what it hands out.
type SignalLink interface {
	PeekMessages(ctx context.Context, n int, o *azservicebus.PeekMessagesOptions) ([]*azservicebus.ReceivedMessage, error)
	ReceiveMessages(ctx context.Context, n int, o *azservicebus.ReceiveMessagesOptions) ([]*azservicebus.ReceivedMessage, error)

	// Send sends at most n signals in one transfer, which the broker takes as a whole or not at all, and
	// returns their number. With 0 it only finds out whether it could send.
	Send(ctx context.Context, n int) (sent int, err error)

	Close(ctx context.Context) error
}

// sdkLink is a SignalLink by the SDK.
type sdkLink struct {
	senderLink
	*azservicebus.Receiver
}

func openLink(q queue) (SignalLink, error) {
	l, err := openSender(q)
	if err != nil {
		return nil, err
	}
	receiver, err := l.NewReceiverForQueue(q.name, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	return sdkLink{l, receiver}, err
}

// Send sends a batch. NewMessageBatch opens the link, since it needs the link's greatest size.
func (l sdkLink) Send(ctx context.Context, n int) (sent int, err error) {
	batch, err := l.sender.NewMessageBatch(ctx, nil)
	if err != nil || n == 0 {
		return 0, err
	}
	for ; sent < n; sent++ {
		err := batch.AddMessage(newSignal(), nil)
		if sent > 0 && errors.Is(err, azservicebus.ErrMessageTooLarge) {
			break // the batch is full
		}
		if err != nil {
			return 0, err
		}
	}
	return sent, l.sender.SendMessageBatch(ctx, batch, nil)
}

func (l sdkLink) Close(ctx context.Context) error { return l.Client.Close(ctx) }

// newSignal returns a message without a time to live. Its id is unique, so that a queue that detects
// duplicates drops none.
func newSignal() *azservicebus.Message {
	id, subject, contentType := rand.Text(), SignalType, "text/plain"
	return &azservicebus.Message{
		MessageID: &id, Subject: &subject, ContentType: &contentType,
		Body: []byte("one message for each replica that is wanted"),
	}
}
