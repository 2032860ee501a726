// Package servicebus carries scale events over one queue of an Azure Service Bus namespace, or over a
// topic with a subscription for each consumer: a [Publisher] puts them there, a [Consumer] takes them
// from there, in order and at least once, and [Publisher.Probe] finds out whether that would work.
//
// It knows the scale event, and neither how decisions are made nor what is done about them: a
// publisher delivers the bytes it is given, a consumer hands events to a [Handler].
//
// Start with publisher.go, consumer.go and signals.go, the package as its users see it. queue.go has how to
// sign in, connection.go how long the SDK may take, and refusal.go what goes wrong and what to do. Of the
// consumer, receive.go has connections and sessions, and delivery.go which event of a subject is handled,
// locks and settlement.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package servicebus
