package config

import _ "embed" // for the schema

// SchemaURL is where the schema is published, for the first line of a processors file anywhere.
const SchemaURL = "https://raw.githubusercontent.com/feedscale/feedscale/main/pkg/config/processors.schema.json"

//go:embed processors.schema.json
var schema string

// Schema returns the JSON Schema (2020-12) of the processors file, for editors. What a schema
// cannot express is checked by Load alone: cron expressions, time zones, connections and fields
// that contradict each other.
func Schema() string { return schema }
