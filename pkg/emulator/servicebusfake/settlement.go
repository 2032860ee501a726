package servicebusfake

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// settling is what an outcome does to a locked message.
type settling struct {
	name  string
	apply func(q *broker.Queue, now time.Time, token broker.Token) error
}

func (s settling) step(e *entity, token broker.Token) step {
	return step{
		entity: e,
		check:  func(q *broker.Queue, now time.Time) error { return q.HasLock(now, token) },
		apply:  func(q *broker.Queue, now time.Time) error { return s.apply(q, now, token) },
	}
}

// settlement says what a client means by an outcome, and what it is answered with where that
// succeeds: the outcome it asked for. A settlement without an outcome gives the message back.
func settlement(outcome amqp.State, token broker.Token) (settling, amqp.State) {
	switch outcome := outcome.(type) {
	case *amqp.Accepted:
		return complete(), outcome
	case *amqp.Rejected:
		reason, description, properties := deadLetterInfo(outcome.Error)
		return deadLetter(reason, description, properties), &amqp.Rejected{}
	case *amqp.Modified:
		if outcome.UndeliverableHere {
			return deferral(propertiesOf(outcome.MessageAnnotations)), outcome
		}
		return abandon(propertiesOf(outcome.MessageAnnotations)), outcome
	default:
		return settling{"released", func(q *broker.Queue, now time.Time, token broker.Token) error {
			return q.Release(now, token)
		}}, &amqp.Released{}
	}
}

func complete() settling {
	return settling{"accepted", func(q *broker.Queue, now time.Time, token broker.Token) error { return q.Complete(now, token) }}
}

func abandon(properties []broker.Property) settling {
	return settling{"modified", func(q *broker.Queue, now time.Time, token broker.Token) error {
		return q.Abandon(now, token, properties)
	}}
}

func deferral(properties []broker.Property) settling {
	return settling{"modified", func(q *broker.Queue, now time.Time, token broker.Token) error {
		return q.Defer(now, token, properties)
	}}
}

func deadLetter(reason, description string, properties []broker.Property) settling {
	return settling{"rejected", func(q *broker.Queue, now time.Time, token broker.Token) error {
		return q.DeadLetter(now, token, reason, description, properties)
	}}
}

// deadLetterInfo reads why a message is rejected: clients put it in the info of the error, beside
// properties to change. An error of another kind is itself the reason.
func deadLetterInfo(e *amqp.Error) (reason, description string, properties []broker.Property) {
	if e == nil {
		return "", "", nil
	}
	for _, property := range propertiesOf(e.Info) {
		text, isText := property.Value.(string)
		switch {
		case property.Name == broker.PropertyDeadLetterReason && isText:
			reason = text
		case property.Name == broker.PropertyDeadLetterDescription && isText:
			description = text
		default:
			properties = append(properties, property)
		}
	}
	if e.Info == nil {
		reason, description = string(e.Condition), e.Description
	}
	return reason, description, properties
}

// propertiesOf reads a map whose keys are names, as strings or as symbols.
func propertiesOf(m amqp.Map) []broker.Property {
	var properties []broker.Property
	for _, pair := range m {
		switch name := pair.Key.(type) {
		case string:
			properties = append(properties, broker.Property{Name: name, Value: pair.Value})
		case amqp.Symbol:
			properties = append(properties, broker.Property{Name: string(name), Value: pair.Value})
		}
	}
	return properties
}
