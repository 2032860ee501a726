package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/connectionstring"
	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Events says where scale events go to, or come from: a Service Bus queue or topic. They can also
// come from a subscription of a topic. If Queue is empty, they go to standard output as JSON lines.
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

// The names that Service Bus allows. A queue's has no part "subscriptions", in any case.
var (
	subscriptionPath = regexp.MustCompile(`^(?i)(.*?)/subscriptions(?:/(.*))?$`)
	queueName        = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,258}[A-Za-z0-9])?$`)
	subscriptionName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,48}[A-Za-z0-9])?$`)
)

// ParseEvents reads the value of FEEDSCALE_EVENTS. lookup finds the settings of the connection.
func ParseEvents(lookup func(string) (string, bool), text string) (Events, error) {
	scheme, rest, _ := strings.Cut(text, ":")
	setting, queue, named := strings.Cut(rest, "/")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "stdout" && rest == "":
		return Events{}, nil
	case scheme != "servicebus" || !named:
		return Events{}, errors.New("is no place for events; allowed are stdout:, servicebus:SETTING/QUEUE, which may be a topic, or, to consume, servicebus:SETTING/TOPIC/Subscriptions/NAME, SETTING naming a setting that holds a Service Bus connection")
	}
	subscription := ""
	of := subscriptionPath.FindStringSubmatch(queue)
	if of != nil {
		queue, subscription = of[1], of[2]
	}
	if !queueName.MatchString(queue) {
		return Events{}, fmt.Errorf("%s is not the name of a queue or topic; allowed are up to 260 letters, digits, '.', '-', '_' and '/', a letter or digit first and last", yamltree.Quote(queue))
	}
	if of != nil && !subscriptionName.MatchString(subscription) {
		return Events{}, fmt.Errorf("%s is not the name of a subscription; allowed are up to 50 letters, digits, '.', '-' and '_', a letter or digit first and last", yamltree.Quote(subscription))
	}
	connection, err := ParseServiceBusConnection(lookup, setting, queue)
	return Events{Queue: queue, Subscription: subscription, ServiceBus: connection}, err
}

// ServiceBusConnection is a Service Bus namespace and how to sign in to it.
type ServiceBusConnection struct {
	Setting          string   // name of the setting
	Namespace        string   // host[:port]
	ConnectionString Secret   // without EntityPath, in the form that azservicebus reads; zero if an identity signs in
	Entity           string   // that the connection string is limited to (EntityPath); "" = the whole namespace
	Identity         Identity // used if ConnectionString is zero
}

// UsesIdentity reports whether an identity signs in, and not a key.
func (c ServiceBusConnection) UsesIdentity() bool { return c.ConnectionString.IsZero() }

// ParseServiceBusConnection reads the connection in a setting, by the convention of Functions
// (docs/configure.md, Connections). The error never contains a key or a signature.
func ParseServiceBusConnection(lookup func(string) (string, bool), name, queue string) (ServiceBusConnection, error) {
	s := findConnection(lookup, name,
		"set "+name+" to a connection string, or "+name+"__fullyQualifiedNamespace to NAMESPACE.servicebus.windows.net to sign in with an identity",
		"fullyQualifiedNamespace")
	c := ServiceBusConnection{Setting: name, Namespace: s.field("fullyQualifiedNamespace")}
	text := s.value()
	if text == "" {
		u, err := url.Parse("sb://" + c.Namespace)
		s.refuse(err != nil || u.Host != c.Namespace || u.Port() != "" || u.Hostname() == "", "__fullyQualifiedNamespace", "is not a host name; allowed is NAMESPACE.servicebus.windows.net, without sb:// and without a path")
		c.Identity = s.identity()
		return c, s.err
	}
	fields, err := connectionstring.Parse(text)
	s.refuse(err != nil, "", fmt.Sprint(err))
	u, err := parseEndpoint(fields["endpoint"], "sb", "amqps", "amqp", "https")
	s.refuse(err != nil, "", fmt.Sprint("is no connection string of Service Bus: its Endpoint ", err))
	c.Namespace, c.Entity = u.Host, fields["entitypath"]
	s.refuse(c.Entity != "" && !strings.EqualFold(c.Entity, queue), "", fmt.Sprintf("is for the entity %s (EntityPath), not for the queue %s; allowed is a connection string of that queue or of the namespace", yamltree.Quote(c.Entity), yamltree.Quote(queue)))
	canonical, emulator := "Endpoint=sb://"+u.Host+"/", strings.ToLower(fields["usedevelopmentemulator"])
	switch keyName, key, signature := fields["sharedaccesskeyname"], fields["sharedaccesskey"], fields["sharedaccesssignature"]; {
	case signature != "":
		canonical += ";SharedAccessSignature=" + signature
	case keyName != "" && key != "":
		canonical += ";SharedAccessKeyName=" + keyName + ";SharedAccessKey=" + key
	default:
		s.refuse(true, "", "does not sign in; allowed are SharedAccessKeyName with SharedAccessKey, or SharedAccessSignature (for an identity, set the same name followed by __fullyQualifiedNamespace instead)")
	}
	s.refuse(!slices.Contains([]string{"", "true", "false"}, emulator), "", "has a bad UseDevelopmentEmulator; allowed are true and false")
	if emulator == "true" {
		canonical += ";UseDevelopmentEmulator=true"
	}
	c.ConnectionString = NewSecret(canonical)
	return c, s.err
}
