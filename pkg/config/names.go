package config

import (
	"cmp"
	_ "embed" // for the fields of other files
	"encoding/json"
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// unknown returns the sentence about an unknown name, with the nearest known one, or with all.
func unknown(what, name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return "is an unknown " + what + "; did you mean " + near + "?"
	}
	return "is an unknown " + what + "; allowed are " + yamltree.OneOf(known)
}

// Nearest returns the known name that differs least; "" if more than a third of it differs.
func Nearest(name string, known []string) string {
	best, distance := "", 0
	for _, candidate := range known {
		d := changefeed.NameDistance(strings.ToLower(name), strings.ToLower(candidate))
		if d <= len(candidate)/3 && (best == "" || d < distance) {
			best, distance = candidate, d
		}
	}
	return best
}

// foreignText says what to write instead of fields of other files. They are in
// https://keda.sh/docs/latest/scalers/azure-cosmosdb/,
// https://github.com/kedacore/external-scaler-azure-cosmos-db and
// https://learn.microsoft.com/azure/azure-functions/functions-bindings-cosmosdb-v2-trigger.
//
//go:embed foreign.json
var foreignText []byte

// Instead returns what to write in place of a field of Kubernetes, of KEDA, or of the Cosmos DB trigger
// of Azure Functions, and which of them has it; "" for any other field.
func Instead(field string) (of, text string) {
	var all map[string]map[string]string
	if err := json.Unmarshal(foreignText, &all); err != nil {
		panic(err) // it is part of the program
	}
	for of, fields := range all {
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

// longestName is the greatest length of the name of an entry, in characters.
const longestName = 63

// EntryName turns a text into the name of an entry; "" if it has no letter or digit of ASCII.
func EntryName(text string) string {
	parts := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9') })
	name := strings.Join(parts, "-")
	return strings.TrimRight(name[:min(len(name), longestName)], "-")
}

// FreeName returns the first EntryName that is not taken, or the last one with a number.
func FreeName(taken map[string]bool, candidates ...string) string {
	var name string
	for _, candidate := range candidates {
		if name = cmp.Or(EntryName(candidate), "processor"); !taken[name] {
			return name
		}
	}
	for n := 2; ; n++ {
		number := fmt.Sprintf("-%d", n)
		numbered := strings.TrimRight(name[:min(len(name), longestName-len(number))], "-") + number
		if !taken[numbered] {
			return numbered
		}
	}
}
