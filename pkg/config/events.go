package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Events says where scale events go to, or come from: a Service Bus queue or topic. They can also come from
// a subscription of a topic. If Queue is empty, they go to standard output as JSON lines.
type Events struct {
	Queue        string // or topic, which only the service can tell
	Subscription string // of the topic; "" = none
	ServiceBus   ServiceBusConnection
}

// Path returns the entity's path in Service Bus.
func (e Events) Path() string {
	if e.Subscription == "" {
		return e.Queue
	}
	return e.Queue + "/Subscriptions/" + e.Subscription
}

// The names that Service Bus allows.
var (
	queueName        = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?$`)
	subscriptionName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,48}[A-Za-z0-9])?$`)
)

const queueForm = "allowed are up to 260 letters, digits, '.', '-', '_' and '/', a letter or digit first and last"

// ParseEvents reads the value of FEEDSCALE_EVENTS: "stdout:", "servicebus:SETTING/QUEUE", where QUEUE may
// be a topic, or "servicebus:SETTING/TOPIC/Subscriptions/NAME". lookup finds the settings of the
// connection. The error says what is allowed.
func ParseEvents(lookup func(string) (string, bool), text string) (Events, error) {
	const forms = "allowed are stdout:, servicebus:SETTING/QUEUE, which may be a topic, or, to consume, servicebus:SETTING/TOPIC/Subscriptions/NAME, SETTING naming a setting that holds a Service Bus connection"
	scheme, rest, _ := strings.Cut(text, ":")
	switch strings.ToLower(scheme) {
	case "stdout":
		if rest != "" {
			return Events{}, errors.New("stdout: takes nothing after the colon; " + forms)
		}
		return Events{}, nil
	case "servicebus":
		setting, path, ok := strings.Cut(rest, "/")
		if !ok {
			return Events{}, errors.New("servicebus: is not followed by SETTING/QUEUE; " + forms)
		}
		queue, subscription, isSubscription := cutSubscription(path)
		if !queueName.MatchString(queue) {
			return Events{}, fmt.Errorf("%s is not the name of a queue or topic; %s", yamltree.Quote(queue), queueForm)
		}
		if isSubscription && !subscriptionName.MatchString(subscription) {
			return Events{}, fmt.Errorf("%s is not the name of a subscription; allowed are up to 50 letters, digits, '.', '-' and '_', a letter or digit first and last", yamltree.Quote(subscription))
		}
		connection, err := ParseServiceBusConnection(lookup, setting, queue)
		return Events{Queue: queue, Subscription: subscription, ServiceBus: connection}, err
	}
	return Events{}, errors.New("is no place for events; " + forms)
}

// cutSubscription cuts the path of a subscription, TOPIC/Subscriptions/NAME. Service Bus accepts the word in
// any case, and it is no part of a queue's name.
func cutSubscription(path string) (topic, name string, ok bool) {
	const word = "/subscriptions/"
	at := strings.Index(strings.ToLower(path)+"/", word) // also where no name follows
	if at < 0 {
		return path, "", false
	}
	return path[:at], strings.TrimPrefix(path[at+len(word)-1:], "/"), true
}
