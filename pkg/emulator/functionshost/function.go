package functionshost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// function is one folder with a function.json.
type function struct {
	name     string
	bindings []binding
	trigger  binding
	disabled bool
	timer    *timer // of a timerTrigger
	route    *route // of an httpTrigger
}

// readFunctions finds the functions of the app: immediate subfolders of the root only. A folder
// without function.json is no function. A function with a mistake is in error, and the others run
// (Host/HostFunctionMetadataProvider.cs:73-99, seen on host 4.1037 for a missing setting).
func readFunctions(a *app, now time.Time) error {
	entries, err := os.ReadDir(a.root)
	if err != nil {
		return fmt.Errorf("reading the function app: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(a.root, entry.Name(), "function.json")
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || !isFile(path) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the function app: %w", err)
		}
		f, err := readFunction(entry.Name(), raw, a, now)
		switch {
		case errors.Is(err, errNotImitated):
			return fmt.Errorf("function %q: %w", entry.Name(), err)
		case err != nil:
			a.inError[entry.Name()] = err
		default:
			a.functions = append(a.functions, f)
		}
	}
	return nil
}

func readFunction(name string, raw []byte, a *app, now time.Time) (*function, error) {
	// "host" would take the file name of host.json's lock.
	if !regexp.MustCompile(`^(?i)[a-z][a-z0-9_-]{0,127}$`).MatchString(name) || strings.EqualFold(name, "host") {
		return nil, fmt.Errorf("%q is not a valid function name", name)
	}
	var file struct {
		Bindings []map[string]any `json:"bindings"`
		Disabled bool             `json:"disabled"`
		Retry    json.RawMessage  `json:"retry"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("reading function.json: %w", err)
	}
	if len(file.Bindings) == 0 {
		return nil, errors.New("at least one binding must be declared")
	}
	if len(file.Retry) > 0 {
		return nil, fmt.Errorf("retry policies are %w", errNotImitated)
	}
	f := &function{
		name:     name,
		disabled: file.Disabled || isDisabled(name, a.settings),
	}
	for _, properties := range file.Bindings {
		b, err := readBinding(properties, a)
		if err != nil {
			return nil, err
		}
		if err := f.add(b); err != nil {
			return nil, err
		}
	}
	return f, f.indexTrigger(a, now)
}

// isDisabled reports whether an app setting disables a function. Names of settings are compared
// without case; on Linux they have underscores for periods (azure-webjobs-sdk,
// HostListenerFactory.cs: IsDisabled; IConfigurationExtensions.cs: IsSettingEnabled).
func isDisabled(name string, settings map[string]string) bool {
	for setting, value := range settings {
		if strings.EqualFold(strings.ReplaceAll(setting, ".", "_"), "AzureWebJobs_"+name+"_Disabled") && (value == "1" || strings.EqualFold(value, "true")) {
			return true
		}
	}
	return false
}

func (f *function) add(b binding) error {
	for _, other := range f.bindings {
		if strings.EqualFold(other.name, b.name) {
			return fmt.Errorf("multiple bindings with name %q: binding names must be unique", b.name)
		}
	}
	if b.isTrigger() {
		if f.trigger.name != "" {
			return errors.New("multiple trigger bindings defined: a function can only have one")
		}
		f.trigger = b
	} else if b.direction != directionOut {
		return fmt.Errorf("input binding %q of type %s is %w", b.name, b.kind, errNotImitated)
	}
	f.bindings = append(f.bindings, b)
	return nil
}

func (f *function) indexTrigger(a *app, now time.Time) (err error) {
	if f.trigger.name == "" {
		return errors.New("no trigger binding specified: a function must have one")
	}
	if !f.trigger.is("httpTrigger") && !hasStorage(a.settings) {
		return errors.New("AzureWebJobsStorage is missing: the host needs it for every trigger but httpTrigger")
	}
	switch {
	case f.trigger.is("timerTrigger"):
		f.timer, err = newTimer(f.trigger, a.settings, now)
	case f.trigger.is("httpTrigger"):
		f.route, err = newRoute(f, a.routePrefix)
	}
	return err
}

// hasStorage tells whether the host's own storage account is set, by connection
// string or by the fields of an identity.
func hasStorage(settings map[string]string) bool {
	for name, value := range settings {
		if value != "" && (name == "AzureWebJobsStorage" || strings.HasPrefix(name, "AzureWebJobsStorage__")) {
			return true
		}
	}
	return false
}

// outputs are the bindings that an answer may set.
func (f *function) outputs() []binding {
	var out []binding
	for _, b := range f.bindings {
		if b.direction != directionIn {
			out = append(out, b)
		}
	}
	return out
}

// isHTTPOnly tells whether the function has an HTTP trigger, an HTTP output and
// nothing else, which is what makes it eligible for forwarding.
func (f *function) isHTTPOnly() bool {
	outputs := f.outputs()
	return len(f.bindings) == 2 && f.trigger.is("httpTrigger") && len(outputs) == 1 && outputs[0].is("http")
}
