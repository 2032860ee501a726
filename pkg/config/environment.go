package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// environment is the environment variables of a process. It remembers the settings, and which variables
// were looked up: a FEEDSCALE_* variable that a user made, for a connection say, is then not taken for a
// misspelt setting.
type environment struct {
	values   map[string]string
	folded   map[string]string // folded name -> name
	asked    map[string]bool   // names
	settings []string          // names, of those that were read
}

func newEnvironment(environ []string) *environment {
	e := &environment{values: map[string]string{}, folded: map[string]string{}, asked: map[string]bool{}}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		e.values[name] = value
	}
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

// setting returns the text of a FEEDSCALE_* setting, the standard one where it is empty. Its name counts in
// its exact case.
func (e *environment) setting(name, standard string) string {
	e.settings = append(e.settings, name)
	return cmp.Or(e.values[name], standard)
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
	for name := range e.values {
		if strings.HasPrefix(strings.ToUpper(name), "FEEDSCALE_") && !slices.Contains(e.settings, name) && !e.asked[name] {
			mistakes.Add(Mistake{Field: name, Text: unknown("setting", name, e.settings)})
		}
	}
}
