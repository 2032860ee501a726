package config

import (
	_ "embed" // for the fields of other files
	"encoding/json"
	"sync"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// foreignText says what to write instead of fields of other files. They are in
// https://keda.sh/docs/latest/scalers/azure-cosmosdb/,
// https://github.com/kedacore/external-scaler-azure-cosmos-db and
// https://learn.microsoft.com/azure/azure-functions/functions-bindings-cosmosdb-v2-trigger.
//
//go:embed foreign.json
var foreignText []byte

var foreignFields = sync.OnceValue(func() (all map[string]map[string]string) {
	if err := json.Unmarshal(foreignText, &all); err != nil {
		panic(err) // it is part of the program
	}
	return all
})

// Instead returns what to write in place of a field of KEDA, or of the Cosmos DB trigger of Azure
// Functions, and which of the two has it; "" for any other field.
func Instead(field string) (of, text string) {
	for of, fields := range foreignFields() {
		if text, ok := fields[field]; ok {
			return of, text
		}
	}
	return "", ""
}

// unknownField returns the sentence of a mistake about an unknown field.
func unknownField(name string, known []string) string {
	if of, instead := Instead(name); of != "" {
		return "is a field of " + of + "; " + instead
	}
	return unknown("field", name, known)
}

// foreignDocument says that a document is one of Kubernetes or Functions; "" for any other.
func foreignDocument(root *yamltree.Node) string {
	has := func(name string) bool { return root.Get(name).Present() }
	if has("processors") || !has("bindings") && !(has("kind") && has("apiVersion")) {
		return ""
	}
	return "this is a file of Kubernetes or Azure Functions; allowed is a processors file, which feedscale import FILE makes from ScaledObjects and function.json"
}
