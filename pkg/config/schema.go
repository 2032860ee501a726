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

// Schema returns the JSON Schema (2020-12) of the processors file: the only source of its fields, their
// types, ranges and defaults. rules.go has the rules that a schema cannot express, formats.go the formats
// feedscale-*.
func Schema() string { return schemaText }

var processorsForm = sync.OnceValue(func() *yamlschema.Form {
	return yamlschema.New(schemaText, "", formats, unknownField)
})

var policiesForm = sync.OnceValue(func() *yamlschema.Form {
	return yamlschema.New(schemaText, "/$defs/policiesFile", formats, unknownField)
})
