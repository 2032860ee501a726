package config

import _ "embed" // for the schema

//go:embed processors.schema.json
var schema string

// Schema is the JSON Schema (2020-12) of the processors file, for editors. It
// says what a schema can say; cron expressions, time zones, connections and
// fields that clash are Load's to judge.
func Schema() string { return schema }
