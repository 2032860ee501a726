package servicebusfake

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// Message annotations of the service.
const (
	annotationEnqueuedTime   amqp.Symbol = "x-opt-enqueued-time"
	annotationSequenceNumber amqp.Symbol = "x-opt-sequence-number"
	annotationLockedUntil    amqp.Symbol = "x-opt-locked-until"
	annotationScheduledTime  amqp.Symbol = "x-opt-scheduled-enqueue-time"
	// annotationOriginalNumber is the sequence number that a message had in its topic, before its
	// subscription gave it another
	// (https://learn.microsoft.com/azure/service-bus-messaging/message-sequencing).
	annotationOriginalNumber amqp.Symbol = "x-opt-enqueue-sequence-number"
	annotationMessageState   amqp.Symbol = "x-opt-message-state"
	annotationLockToken      amqp.Symbol = "x-opt-lock-token" // a delivery annotation
)

// readMessage reads of an encoded message what the broker goes by. One without an id is given one,
// as clients rely on: the JavaScript one cannot settle a message that has none.
func readMessage(content []byte) (broker.Message, error) {
	m, err := amqp.ParseMessage(content)
	if err != nil {
		return broker.Message{}, err
	}
	properties, err := m.DecodeProperties()
	if err != nil {
		return broker.Message{}, err
	}
	if properties.MessageID == nil {
		id := newToken()
		properties.MessageID = hex.EncodeToString(id[:])
		if err := m.SetProperties(properties); err != nil {
			return broker.Message{}, err
		}
		if content, err = m.Append(nil); err != nil {
			return broker.Message{}, err
		}
	}
	message := broker.Message{ID: identifier(properties.MessageID), Content: content}
	if properties.GroupID != nil {
		message.SessionID = *properties.GroupID
	}
	if m.Header != nil && m.Header.TTL != nil {
		message.TTL = time.Duration(*m.Header.TTL) * time.Millisecond
	}
	if at, ok := m.Annotations.Get(string(annotationScheduledTime)).(amqp.Timestamp); ok {
		message.ScheduledFor = at.Time()
	}
	return message, nil
}

// identifier is a message id as text, whichever of its types it has.
func identifier(id any) string {
	switch id := id.(type) {
	case nil:
		return ""
	case string:
		return id
	case []byte:
		return fmt.Sprintf("%x", id)
	case amqp.UUID:
		return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	default:
		return fmt.Sprint(id)
	}
}

// encodeDelivery is the message as a receiver gets it: the sender's bytes, with the header and the
// annotations that are the broker's.
func encodeDelivery(d broker.Delivery, deliveryAnnotations amqp.Map) ([]byte, error) {
	m, err := amqp.ParseMessage(d.Content)
	if err != nil {
		return nil, err
	}
	if m.Header == nil {
		m.Header = &amqp.Header{Priority: amqp.DefaultPriority}
	}
	m.Header.DeliveryCount = uint32(d.DeliveryCount)
	if !d.ExpiresAt.IsZero() {
		ttl := uint32(min(d.ExpiresAt.Sub(d.EnqueuedAt).Milliseconds(), math.MaxUint32))
		m.Header.TTL = &ttl
	}
	m.DeliveryAnnotations = deliveryAnnotations
	m.Annotations = m.Annotations.
		With(annotationEnqueuedTime, amqp.NewTimestamp(d.EnqueuedAt)).
		With(annotationSequenceNumber, d.SequenceNumber)
	if d.EnqueuedSequenceNumber != 0 {
		m.Annotations = m.Annotations.With(annotationOriginalNumber, d.EnqueuedSequenceNumber)
	}
	if !d.LockedUntil.IsZero() {
		m.Annotations = m.Annotations.With(annotationLockedUntil, amqp.NewTimestamp(d.LockedUntil))
	}
	switch d.State {
	case broker.Deferred:
		m.Annotations = m.Annotations.With(annotationMessageState, int32(1))
	case broker.Scheduled:
		m.Annotations = m.Annotations.With(annotationMessageState, int32(2))
	}
	if len(d.Properties) > 0 {
		properties, err := m.DecodeApplicationProperties()
		if err != nil {
			return nil, err
		}
		for _, property := range d.Properties {
			properties = properties.With(property.Name, property.Value)
		}
		if err := m.SetApplicationProperties(properties); err != nil {
			return nil, err
		}
	}
	return m.Append(nil)
}
