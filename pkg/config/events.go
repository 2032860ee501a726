package config

import (
	"errors"
	"fmt"
	"strings"
)

// Events says where scale events go: to a Service Bus queue or, where Queue is empty, to standard
// output as JSON lines.
type Events struct {
	Queue      string
	ServiceBus ServiceBusConnection
}

// ParseEvents reads the value of FEEDSCALE_EVENTS: "stdout:" or "servicebus:SETTING/QUEUE". lookup
// finds the settings of the connection. The error says what is allowed.
func ParseEvents(lookup func(string) (string, bool), text string) (Events, error) {
	const forms = "allowed are stdout: or servicebus:SETTING/QUEUE, SETTING naming a setting that holds a Service Bus connection"
	scheme, rest, _ := strings.Cut(text, ":")
	switch strings.ToLower(scheme) {
	case "stdout":
		if rest != "" {
			return Events{}, errors.New("stdout: takes nothing behind the colon; " + forms)
		}
		return Events{}, nil
	case "servicebus":
		setting, queue, ok := strings.Cut(rest, "/")
		if !ok {
			return Events{}, errors.New("servicebus: is not followed by SETTING/QUEUE; " + forms)
		}
		if !wellNamed(queue, 260, "._-/") {
			return Events{}, fmt.Errorf("%s is not the name of a queue; allowed are up to 260 letters, digits, '.', '-', '_' and '/', a letter or digit first and last", shown(queue))
		}
		connection, err := ParseServiceBusConnection(lookup, setting, queue)
		return Events{Queue: queue, ServiceBus: connection}, err
	}
	return Events{}, errors.New("is no place for events; " + forms)
}
