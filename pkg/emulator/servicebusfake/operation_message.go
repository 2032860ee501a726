package servicebusfake

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

func renewLock(a arguments, q *broker.Queue, now time.Time) (response, error) {
	tokens, err := a.lockTokens()
	if err != nil {
		return response{}, err
	}
	expirations := make(amqp.Array, len(tokens))
	for i, token := range tokens {
		until, err := q.Renew(now, token)
		if err != nil {
			return response{}, err
		}
		expirations[i] = amqp.NewTimestamp(until)
	}
	return ok(body("expirations", expirations))
}

func peekMessage(a arguments, q *broker.Queue, now time.Time) (response, error) {
	from, err := a.integer("from-sequence-number")
	if err != nil {
		return response{}, err
	}
	count, err := a.integer("message-count")
	if err != nil {
		return response{}, err
	}
	deliveries := q.Peek(now, from, int(count), a.optionalText("session-id"))
	if len(deliveries) == 0 {
		return noContent(conditionMessageNotFound)
	}
	return encodedMessages(deliveries)
}

// encodedMessages is the answer that carries messages; those that are locked come with their lock
// tokens.
func encodedMessages(deliveries []broker.Delivery) (response, error) {
	messages := make(amqp.List, len(deliveries))
	for i, d := range deliveries {
		var annotations amqp.Map
		var entry amqp.Map
		if d.Token != (broker.Token{}) {
			token := amqp.UUID(d.Token)
			annotations = amqp.Map{{Key: annotationLockToken, Value: token}}
			entry = body("lock-token", token)
		}
		content, err := encodeDelivery(d, annotations)
		if err != nil {
			return response{}, err
		}
		messages[i] = append(entry, amqp.Pair{Key: "message", Value: content})
	}
	return ok(body("messages", messages))
}

func scheduleMessage(a arguments, q *broker.Queue, now time.Time) (response, error) {
	entries, err := a.elements("messages")
	if err != nil {
		return response{}, err
	}
	messages := make([]broker.Message, len(entries))
	for i, entry := range entries {
		fields, _ := entry.(amqp.Map)
		content, isBinary := fields.Get("message").([]byte)
		if !isBinary {
			return response{}, badArgument{"messages"}
		}
		if messages[i], err = readMessage(content); err != nil {
			return response{}, badArgument{"messages"}
		}
		if err := q.Check(messages[i]); err != nil {
			return response{}, err
		}
	}
	numbers := make(amqp.Array, len(messages))
	for i, m := range messages {
		if numbers[i], err = q.Send(now, m); err != nil {
			return response{}, err
		}
	}
	return ok(body("sequence-numbers", numbers))
}

func cancelScheduledMessage(a arguments, q *broker.Queue, now time.Time) (response, error) {
	numbers, err := a.sequenceNumbers()
	if err != nil {
		return response{}, err
	}
	if err := q.CancelScheduled(now, numbers); err != nil {
		return response{}, err
	}
	return ok(nil)
}

func receiveBySequenceNumber(a arguments, q *broker.Queue, now time.Time) (response, error) {
	numbers, err := a.sequenceNumbers()
	if err != nil {
		return response{}, err
	}
	settleMode, err := a.integer("receiver-settle-mode")
	if err != nil {
		return response{}, err
	}
	mode := broker.PeekLock
	if uint8(settleMode) == amqp.ReceiverFirst {
		mode = broker.Delete
	}
	session := ""
	if id := a.optionalText("session-id"); id != nil {
		session = *id
	}
	deliveries, err := q.ReceiveDeferred(now, numbers, session, mode)
	if err != nil {
		return response{}, err
	}
	return encodedMessages(deliveries)
}

func updateDisposition(a arguments, q *broker.Queue, now time.Time) (response, error) {
	tokens, err := a.lockTokens()
	if err != nil {
		return response{}, err
	}
	status, err := a.text("disposition-status")
	if err != nil {
		return response{}, err
	}
	changes, _ := a.body.Get("properties-to-modify").(amqp.Map)
	properties := propertiesOf(changes)
	var change settling
	switch status {
	case "completed":
		change = complete()
	case "abandoned":
		change = abandon(properties)
	case "defered": // the service spells it so
		change = deferral(properties)
	case "suspended":
		change = deadLetter(textOr(a.optionalText("deadletter-reason")), textOr(a.optionalText("deadletter-description")), properties)
	default:
		return response{}, badArgument{"disposition-status"}
	}
	for _, token := range tokens {
		if err := q.HasLock(now, token); err != nil {
			return response{}, err
		}
	}
	for _, token := range tokens {
		if err := change.apply(q, now, token); err != nil {
			return response{}, err
		}
	}
	return ok(nil)
}

func textOr(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func batchDeleteMessages(a arguments, q *broker.Queue, now time.Time) (response, error) {
	count, err := a.integer("message-count")
	if err != nil {
		return response{}, err
	}
	before, err := a.instant("enqueued-time-utc")
	if err != nil {
		return response{}, err
	}
	return ok(body("message-count", int32(q.DeleteBatch(now, int(count), before))))
}
