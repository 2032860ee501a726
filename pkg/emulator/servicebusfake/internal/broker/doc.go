// Package broker is what a Service Bus queue does with its messages: their order, locks, sessions,
// duplicates, schedules, expiry and dead-lettering. A [Topic] hands messages on to queues.
//
// It is pure. It reads no clock, starts no goroutine, takes no lock and knows no protocol: time
// comes in as a value, and what a message contains is bytes to it. A [Queue] is not safe for
// concurrent use; whoever owns it serialises the calls, and calls [Queue.Advance] at
// [Queue.NextDue], when something happens by the passing of time alone.
//
// Start reading at [Queue.Send] and [Queue.Receive]; every rule of settlement is in settle.go,
// every rule of sessions in session.go.
package broker
