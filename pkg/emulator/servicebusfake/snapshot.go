package servicebusfake

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// State says where a message stands.
type State = broker.State

// The states of a message.
const (
	Active       = broker.Active
	Locked       = broker.Locked
	Deferred     = broker.Deferred
	Scheduled    = broker.Scheduled
	DeadLettered = broker.DeadLettered
)

// Message is a message as a test looks at it.
type Message struct {
	SequenceNumber int64
	ID             string
	SessionID      string
	CorrelationID  string
	Subject        string
	ContentType    string
	To, ReplyTo    string
	// Body is the binary body; nil if the body is of another kind.
	Body []byte
	// Properties are the application properties, those that the broker has set included.
	Properties map[string]any
	State      State
	// DeliveryCount is how many deliveries have failed.
	DeliveryCount int
	EnqueuedAt    time.Time
	ScheduledFor  time.Time // zero = not scheduled
	LockedUntil   time.Time // zero = not locked
	ExpiresAt     time.Time // zero = never
}

// Messages is a snapshot of a queue or a subscription (TOPIC/Subscriptions/NAME) in the order of
// sequence numbers, its dead-letter queue behind it; of a topic, it has the scheduled messages,
// which are in no subscription yet. It is nil if there is none of that name; the path of a
// dead-letter queue gives that alone.
func (s *Server) Messages(queue string) []Message {
	found := s.namespace.find(parseAddress(queue))
	if found == nil {
		return nil
	}
	var deliveries []broker.Delivery
	s.namespace.update(found, func(q *broker.Queue, now time.Time) { deliveries = q.All(now) })
	messages := make([]Message, len(deliveries))
	for i, d := range deliveries {
		messages[i] = describe(d)
	}
	return messages
}

func describeAll(messages []broker.Message) []Message {
	described := make([]Message, len(messages))
	for i, m := range messages {
		described[i] = describe(broker.Delivery{Message: m, State: broker.Active})
	}
	return described
}

// describe reads a message that was checked when it was taken, so that nothing in it can fail to
// decode.
func describe(d broker.Delivery) Message {
	message := Message{
		SequenceNumber: d.SequenceNumber, ID: d.ID, SessionID: d.SessionID, State: d.State, DeliveryCount: d.DeliveryCount,
		EnqueuedAt: d.EnqueuedAt, ScheduledFor: d.ScheduledFor, LockedUntil: d.LockedUntil, ExpiresAt: d.ExpiresAt,
		Properties: map[string]any{},
	}
	m, err := amqp.ParseMessage(d.Content)
	if err != nil {
		return message
	}
	if properties, err := m.DecodeProperties(); err == nil {
		message.CorrelationID = identifier(properties.CorrelationID)
		message.Subject, message.ContentType = properties.Subject, string(properties.ContentType)
		message.To, message.ReplyTo = properties.To, properties.ReplyTo
	}
	if properties, err := m.DecodeApplicationProperties(); err == nil {
		for _, property := range propertiesOf(properties) {
			message.Properties[property.Name] = property.Value
		}
	}
	for _, property := range d.Properties {
		message.Properties[property.Name] = property.Value
	}
	for _, data := range m.Data() {
		message.Body = append(message.Body, data...)
	}
	return message
}
