package config

import (
	_ "embed" // for the schema
	"sync"

	"github.com/feedscale/feedscale/pkg/yamlschema"
)

// SchemaURL is where the schema is published, for the first line of a processors file anywhere.
const SchemaURL = "https://raw.githubusercontent.com/feedscale/feedscale/main/pkg/config/processors.schema.json"

//go:embed processors.schema.json
var schemaText string

// Schema returns the JSON Schema (2020-12) of the processors file: the one truth about its fields,
// their types, ranges and defaults. Load checks it, and then the rules across fields and against the
// settings, which a schema cannot express. The formats feedscale-* are those of formats.go.
func Schema() string { return schemaText }

var processorsForm = sync.OnceValue(func() *yamlschema.Form {
	return yamlschema.New(schemaText, "", formats, unknownField)
})

var policiesForm = sync.OnceValue(func() *yamlschema.Form {
	return yamlschema.New(schemaText, "/$defs/policiesFile", formats, unknownField)
})
