package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"
)

// environment is the environment variables of a process. It remembers which were looked up: a
// FEEDSCALE_* variable that a user made, for a connection say, is then not taken for a misspelt
// setting.
type environment struct {
	values map[string]string
	folded map[string]string // folded name -> name
	asked  map[string]bool   // names
}

func newEnvironment(environ []string) *environment {
	e := &environment{values: env.ToMap(environ), folded: map[string]string{}, asked: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(e.values)) {
		if _, taken := e.folded[fold(name)]; !taken {
			e.folded[fold(name)] = name
		}
	}
	return e
}

// fold returns the one spelling of a name: the Functions host ignores the case of setting names and
// takes ":" for "__".
func fold(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, ":", "__"))
}

// lookup finds a variable by its exact name, else by its folded name.
func (e *environment) lookup(name string) (string, bool) {
	if _, exact := e.values[name]; !exact {
		name = e.folded[fold(name)]
	}
	value, ok := e.values[name]
	if ok {
		e.asked[name] = true
	}
	return value, ok
}

// reportUnknown reports every FEEDSCALE_* variable that nothing reads. Without it, a misspelt name would
// leave the default in place.
func (e *environment) reportUnknown(mistakes *Mistakes) {
	known := settingNames()
	for name := range e.values {
		if strings.HasPrefix(strings.ToUpper(name), "FEEDSCALE_") && !slices.Contains(known, name) && !e.asked[name] {
			mistakes.Add(Mistake{Field: name, Text: unknown("setting", name, known)})
		}
	}
}
