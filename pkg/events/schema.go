package events

import _ "embed" // for the schema

//go:embed scale-event.schema.json
var schema string

// Schema is the JSON Schema (2020-12) of an encoded scale event, for consumers
// in any language.
func Schema() string { return schema }
