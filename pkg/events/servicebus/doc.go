// Package servicebus carries scale events over one queue of an Azure Service Bus namespace, or over a
// topic with a subscription for each consumer: a [Publisher] puts them there, a [Consumer] takes them
// from there, in order and at least once, and [Publisher.Probe] finds out whether that would work.
//
// It knows the scale event, and neither how decisions are made nor what is done about them: a
// publisher delivers the bytes it is given, a consumer hands events to a [Handler].
//
// Start with publisher.go and consumer.go, the package as its users see it. refusal.go says what the
// service's answers mean and errors.go everything else that goes wrong. Of the consumer, receive.go
// has connections and sessions, subject.go which event of a subject is handled, and delivery.go locks
// and settlement.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package servicebus
