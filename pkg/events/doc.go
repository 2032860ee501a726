// Package events is how a decision leaves feedscale, and how it arrives: the
// scale event, its CloudEvents encoding, the publishers that carry it to a
// Service Bus queue or to a stream of lines, and the consumer that takes it from
// the queue.
//
// It knows nothing of stores, of how decisions are made or of when they are
// published: it is handed bytes and delivers those bytes. Nor does it know what
// a consumer does with an event. Start with event.go, which is the contract
// (DESIGN 9) together with scale-event.schema.json; decode.go is its strict
// reverse. servicebus.go is the publisher of a deployment. consumer.go is the
// consumer as its user sees it; consumerlane.go has the rule which event of a
// processor counts, consumerdelivery.go locks and settlement, consumerrun.go
// connections and sessions.
package events
