// Package events is the scale event: a decision of feedscale as it is published, and the contract
// between its publisher and its consumers.
//
// It holds the event and its JSON Schema (event.go and scale-event.schema.json, which change
// together), the encoding and its strict reverse (decode.go), the id by which the newer of two events of
// one subject is known ([Data.ID]), and what a transport has to do ([Publisher]). docs/scale-events.md
// describes all of it for people who write consumers in other languages.
//
// It is pure: nothing outside the standard library, no network, no clock. The only transport here is
// [Stdout], which needs neither; the one of a deployment is package servicebus below this one. Start
// with event.go.
//
// The API of this package is kept: a change that breaks it is in CHANGELOG.md.
package events
