// Package events is how a decision leaves feedscale: the scale event, its
// CloudEvents encoding, and the publishers that carry it to a Service Bus queue
// or to a stream of lines.
//
// It knows nothing of stores, of how decisions are made or of when they are
// published: it is handed bytes and delivers those bytes. Start with event.go,
// which is the contract (DESIGN 9) together with scale-event.schema.json;
// decode.go is its strict reverse, servicebus.go the publisher of a deployment.
package events
