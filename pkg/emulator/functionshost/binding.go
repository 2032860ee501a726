package functionshost

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// direction of a binding, as function.json has it.
type direction string

const (
	directionIn    direction = "in"
	directionOut   direction = "out"
	directionInOut direction = "inout"
)

// returnBinding is the name of the binding that takes an answer's ReturnValue.
const returnBinding = "$return"

// binding is one entry of function.json, with its settings resolved.
type binding struct {
	name       string
	kind       string // its type
	direction  direction
	binary     bool // dataType binary
	properties map[string]any
}

func (b binding) is(kind string) bool { return strings.EqualFold(b.kind, kind) }

func (b binding) isTrigger() bool { return strings.HasSuffix(strings.ToLower(b.kind), "trigger") }

// text is a property that is a string; "" if it is not set.
func (b binding) text(property string) string {
	for name, value := range b.properties {
		if text, ok := value.(string); ok && strings.EqualFold(name, property) {
			return text
		}
	}
	return ""
}

// isBuiltIn tells the binding types that need no extension bundle.
func isBuiltIn(kind string) bool {
	return slices.Contains([]string{"timertrigger", "httptrigger", "http"}, strings.ToLower(kind))
}

// isInBundle tells the binding types of the extension bundle, version 4.
func isInBundle(kind string) bool {
	return slices.Contains([]string{
		"servicebustrigger", "servicebus", "queuetrigger", "queue", "blobtrigger", "blob", "table",
		"cosmosdbtrigger", "cosmosdb", "eventhubtrigger", "eventhub", "eventgridtrigger", "eventgrid",
		"kafkatrigger", "kafka", "rabbitmqtrigger", "rabbitmq", "sqltrigger", "sql", "sendgrid", "twiliosms",
		"signalrtrigger", "signalr", "signalrconnectioninfo",
	}, strings.ToLower(kind))
}

func readBinding(properties map[string]any, a *app) (binding, error) {
	b := binding{properties: map[string]any{}}
	for name, value := range properties {
		text, isText := value.(string)
		if !isText {
			b.properties[name] = value
			continue
		}
		resolved, err := resolve(text, a.settings)
		if err != nil {
			return binding{}, fmt.Errorf("binding property %q: %w", name, err)
		}
		b.properties[name] = resolved
	}
	b.name, b.kind = b.text("name"), b.text("type")
	b.direction = direction(strings.ToLower(b.text("direction")))
	b.binary = strings.EqualFold(b.text("dataType"), "binary")
	if b.direction == "" {
		b.direction = directionIn
	}
	return b, b.validate(a)
}

func (b binding) validate(a *app) error {
	switch {
	case b.name != returnBinding && !regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]{0,127}$`).MatchString(b.name):
		return fmt.Errorf("the binding name %q is invalid: use letters and digits, a letter first", b.name)
	case b.kind == "":
		return fmt.Errorf("binding %q is invalid: bindings must specify a type", b.name)
	case b.direction != directionIn && b.direction != directionOut && b.direction != directionInOut:
		return fmt.Errorf("%q is not a valid direction of binding %q", b.direction, b.name)
	case b.name == returnBinding && b.direction != directionOut:
		return fmt.Errorf("%s bindings must specify a direction of 'out'", returnBinding)
	case b.isTrigger() && b.direction != directionIn:
		return fmt.Errorf("trigger binding %q must have direction 'in'", b.name)
	case !isBuiltIn(b.kind) && !a.bundle:
		return fmt.Errorf("the binding type(s) '%s' are not registered: configure the extension bundle in host.json", b.kind)
	case !isBuiltIn(b.kind) && !isInBundle(b.kind):
		return fmt.Errorf("the binding type(s) '%s' were not found in the configured extension bundle", b.kind)
	case b.is("serviceBus") || b.is("serviceBusTrigger"):
		return b.validateServiceBus(a)
	}
	return nil
}

func (b binding) validateServiceBus(a *app) error {
	if b.text("queueName") == "" && b.text("topicName") == "" {
		return fmt.Errorf("binding %q names neither a queue nor a topic", b.name)
	}
	connection := b.text("connection")
	if connection == "" {
		connection = "ServiceBus"
	}
	for _, setting := range []string{connection, "AzureWebJobs" + connection, connection + "__fullyQualifiedNamespace"} {
		if a.settings[setting] != "" {
			return nil
		}
	}
	return fmt.Errorf("the Service Bus connection %q of binding %q is missing or empty: add the app setting", connection, b.name)
}
