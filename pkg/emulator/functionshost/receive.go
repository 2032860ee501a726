package functionshost

import (
	"context"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// What follows is ServiceBusProcessor of Azure/azure-sdk-for-net, by which the trigger receives: in
// sdk/servicebus/Azure.Messaging.ServiceBus/src/Processor/ReceiverManager.cs.
const (
	renewBuffer  = 10 * time.Second // before a lock ends it is renewed, or at half of what is left
	renewFor     = 5 * time.Minute  // maxAutoLockRenewalDuration's default
	settleWithin = 10 * time.Second
	receivePause = time.Second // of this stand-in, after an error
)

// connect makes the client of a Service Bus trigger. It dials nothing yet.
func (h *Host) connect(f *function) (*azservicebus.Client, error) {
	if f.trigger.text("queueName") == "" {
		return nil, fmt.Errorf("function %q: receiving from a topic is %w", f.name, errNotImitated)
	}
	name := f.trigger.text("connection")
	for _, setting := range []string{name, "AzureWebJobs" + name} {
		if connection := h.app.settings[setting]; connection != "" {
			return azservicebus.NewClientFromConnectionString(connection, nil)
		}
	}
	return nil, fmt.Errorf("function %q: receiving without a connection string is %w", f.name, errNotImitated)
}

// receive hands the messages of a queue to a function until the context ends, each under its lock,
// and at most maxConcurrentCalls of them at once.
func (h *Host) receive(ctx context.Context, f *function, client *azservicebus.Client) {
	// without the broker's goodbye
	context.AfterFunc(h.background, func() { _ = client.Close(h.background) })
	receiver, err := client.NewReceiverForQueue(f.trigger.text("queueName"), nil)
	if err != nil {
		h.log.add(Error, CategoryHost, "The listener for function '%s' was unable to start: %v", f.name, err)
		return
	}
	slots := make(chan struct{}, h.app.maxConcurrentCalls)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		messages, err := receiver.ReceiveMessages(ctx, 1, nil)
		if err != nil && ctx.Err() == nil {
			h.log.add(Error, CategoryHost, "Message processing error of function '%s': %v", f.name, err)
			select {
			case <-time.After(receivePause):
			case <-ctx.Done():
			}
		}
		if len(messages) == 0 {
			<-slots
			continue
		}
		go func() {
			defer func() { <-slots }()
			h.process(receiver, f, messages[0])
		}()
	}
}

// process runs the function for a message, completes it where that succeeds, and else abandons it.
// Meanwhile the lock is renewed. A host that is gone does neither: the lock ends.
func (h *Host) process(receiver *azservicebus.Receiver, f *function, m *azservicebus.ReceivedMessage) {
	renewing, stop := context.WithTimeout(h.background, renewFor)
	go func() {
		for m.LockedUntil != nil {
			left := time.Until(*m.LockedUntil)
			select {
			case <-time.After(left - min(left/2, renewBuffer)):
			case <-renewing.Done():
				return
			}
			if err := receiver.RenewMessageLock(renewing, m, nil); err != nil {
				return
			}
		}
	}()
	_, failed := h.invoke(h.background, f, f.messagePayload(h.clock.Now(), received(m)))
	stop()
	if h.background.Err() != nil {
		return
	}
	settling, cancel := context.WithTimeout(h.background, settleWithin)
	defer cancel()
	var err error
	if failed == nil {
		err = receiver.CompleteMessage(settling, m, nil)
	} else {
		err = receiver.AbandonMessage(settling, m, nil)
	}
	if err != nil {
		h.log.add(Error, CategoryHost, "Message processing error of function '%s': %v", f.name, err)
	}
}

// received is a message as a trigger hands it to its function.
func received(m *azservicebus.ReceivedMessage) Message {
	token := m.LockToken
	message := Message{
		Body: m.Body, MessageID: m.MessageID, DeliveryCount: int(m.DeliveryCount), ApplicationProperties: m.ApplicationProperties,
		LockToken: fmt.Sprintf("%x-%x-%x-%x-%x", token[:4], token[4:6], token[6:8], token[8:10], token[10:]),
	}
	for _, text := range []struct {
		to   *string
		from *string
	}{{&message.SessionID, m.SessionID}, {&message.Subject, m.Subject}, {&message.ContentType, m.ContentType}, {&message.CorrelationID, m.CorrelationID}} {
		if text.from != nil {
			*text.to = *text.from
		}
	}
	if m.SequenceNumber != nil {
		message.SequenceNumber = *m.SequenceNumber
	}
	if m.EnqueuedTime != nil {
		message.EnqueuedTime = *m.EnqueuedTime
	}
	return message
}
