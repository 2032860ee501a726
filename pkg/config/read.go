package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake = yamltree.Mistake

// Mistakes is everything that is wrong: first the settings, then the document. None has a secret.
type Mistakes = yamltree.Mistakes

// Input is everything that a configuration is read from.
type Input struct {
	Environ  []string                          // "NAME=value", as os.Environ gives it
	File     string                            // the --config flag; "" if it was not given
	ReadFile func(name string) ([]byte, error) // usually os.ReadFile
}

// Config is a complete configuration without a mistake.
type Config struct {
	Settings Settings
	Document
	Source string // from which the document was read: the name of a file, or FEEDSCALE_PROCESSORS
	env    environment
}

// Connection reads the connection in a setting, which the document may no longer name.
func (c Config) Connection(setting string) (CosmosConnection, error) {
	return ParseCosmosConnection(c.env.lookup, setting)
}

// Read reads the settings and the processors document. The error is a Mistakes, with those of both.
func Read(in Input) (Config, error) {
	env := newEnvironment(in.Environ)
	var mistakes Mistakes
	settings := readSettings(env, &mistakes)
	if e := settings.Events; e.Subscription != "" {
		mistakes.Add(Mistake{Field: "FEEDSCALE_EVENTS", Text: fmt.Sprintf("%s is a subscription, to which nothing can be published: it gets what its topic gets; allowed is servicebus:%s/%s",
			yamltree.Quote(e.Path()), e.ServiceBus.Setting, e.Queue)})
	}
	in.checkShards(env, settings.Settings, &mistakes)
	source, text, ok := in.document(env, settings, &mistakes)
	var read Document
	if ok {
		read = load(source, text, env.lookup, &settings.Events, &mistakes)
	}
	env.reportUnknown(&mistakes) // last, since by now every setting that is named somewhere was looked up
	return Config{Settings: settings.Settings, Document: read, Source: source, env: *env}, mistakes.Err()
}

// ReadSettings reads the settings alone. The error is a Mistakes.
func ReadSettings(environ []string) (Settings, error) {
	var mistakes Mistakes
	settings := readSettings(newEnvironment(environ), &mistakes).Settings
	return settings, mistakes.Err()
}

// Lookup returns the function by which Read finds settings, for commands that take the name of a
// connection. It ignores the case of names and takes ":" for "__".
func Lookup(environ []string) func(name string) (value string, ok bool) {
	return newEnvironment(environ).lookup
}

// Load reads a processors document. name is its name in mistakes; lookup finds the settings of its
// connections. The error is a Mistakes.
func Load(name string, text []byte, lookup func(string) (string, bool)) (Document, error) {
	var mistakes Mistakes
	read := load(name, text, lookup, nil, &mistakes)
	return read, mistakes.Err()
}

// document reads the document in --config, FEEDSCALE_PROCESSORS or FEEDSCALE_CONFIG, in this order.
func (in Input) document(env *environment, settings variables, mistakes *Mistakes) (name string, text []byte, ok bool) {
	if in.File == "" && settings.Processors != "" {
		return processorsSetting, []byte(settings.Processors), true
	}
	root, _ := env.lookup(appRoot)
	file := cmp.Or(in.File, settings.Config, filepath.Join(root, "processors.yaml"))
	text, err := in.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		mistakes.Add(Mistake{File: file, Text: "there is no such file; name the processors file with --config or FEEDSCALE_CONFIG, or put its content into FEEDSCALE_PROCESSORS"})
	case err != nil:
		mistakes.Add(Mistake{File: file, Text: fmt.Sprintf("cannot be read (%v); allowed is a readable YAML or JSON file", cmp.Or(errors.Unwrap(err), err))})
	}
	return file, text, err == nil
}

// environment is the environment variables of a process. It remembers which were looked up: a
// FEEDSCALE_* variable that a user made, for a connection say, is not a misspelt setting.
type environment struct {
	values map[string]string
	folded map[string]string // folded name -> name
	asked  map[string]bool   // names
}

func newEnvironment(environ []string) *environment {
	e := &environment{values: env.ToMap(environ), folded: map[string]string{}, asked: map[string]bool{}}
	delete(e.values, "") // package env would fill fields without a setting
	for _, name := range slices.Sorted(maps.Keys(e.values)) {
		if name != processorsSetting { // whose lines count
			e.values[name] = strings.TrimSpace(e.values[name])
		}
		if _, taken := e.folded[fold(name)]; !taken {
			e.folded[fold(name)] = name
		}
	}
	return e
}

// fold returns the one spelling of a name: the Functions host takes any case, and ":" for "__".
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

// reportUnknown reports every FEEDSCALE_* variable that nothing reads: it may be misspelt.
func (e *environment) reportUnknown(mistakes *Mistakes) {
	known := settingNames()
	for name := range e.values {
		if strings.HasPrefix(strings.ToUpper(name), "FEEDSCALE_") && !slices.Contains(known, name) && !e.asked[name] {
			mistakes.Add(Mistake{Field: name, Text: unknown("setting", name, known)})
		}
	}
}
