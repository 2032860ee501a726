package servicebusfake

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// TopicSpec describes a topic with its subscriptions; the zero value of every field but Name is the
// service's default.
type TopicSpec struct {
	// Name is the path of the topic. Topics and queues share their names.
	Name string `yaml:"name"`
	// DuplicateDetectionWindow is how long a message id is remembered; a message that repeats one
	// is accepted and dropped. 0 = off.
	DuplicateDetectionWindow time.Duration `yaml:"duplicateDetection"`
	// DefaultTTL is how long a message lives that does not say so itself, and the most that one may
	// say. 0 = for ever.
	DefaultTTL time.Duration `yaml:"defaultTtl"`
	// MaxMessageSize is the largest message taken, in bytes. 0 = 256 KiB.
	MaxMessageSize int `yaml:"-"`
	// Subscriptions are there from the start.
	Subscriptions []SubscriptionSpec `yaml:"subscriptions"`
}

// SubscriptionSpec describes a subscription: a queue of its own, that gets a copy of every message
// that its rules select. Its path is TOPIC/Subscriptions/NAME. What QueueSpec says of the fields
// holds here too; a DefaultTTL beyond the topic's is the topic's.
type SubscriptionSpec struct {
	// Name is up to 50 letters, digits, '.', '-' and '_'.
	Name               string        `yaml:"name"`
	LockDuration       time.Duration `yaml:"lockDuration"`
	MaxDeliveryCount   int           `yaml:"maxDeliveryCount"`
	RequiresSession    bool          `yaml:"requiresSession"`
	DefaultTTL         time.Duration `yaml:"defaultTtl"`
	DeadLetterOnExpiry bool          `yaml:"deadLetterOnExpiry"`
	// Rules select messages: one of them is enough. nil = the rule $Default, which selects all;
	// empty, but not nil = nothing.
	Rules []Rule `yaml:"-"`
}

// topic is a topic as the namespace holds it.
type topic struct {
	broker *broker.Topic
	entity *entity
}

// CreateTopic adds a topic with its subscriptions. It fails if there is a topic or queue of that
// name, and where the description is wrong.
func (s *Server) CreateTopic(spec TopicSpec) error { return s.namespace.createTopic(spec) }

// CreateSubscription adds a subscription to a topic, for the messages that are sent from now on. It
// fails if there is no such topic, if it has one of that name, and where the description is wrong.
func (s *Server) CreateSubscription(topic string, spec SubscriptionSpec) error {
	return s.namespace.createSubscription(topic, spec)
}

func (n *namespace) createTopic(spec TopicSpec) error {
	inbox := QueueSpec{
		Name: spec.Name, DuplicateDetectionWindow: spec.DuplicateDetectionWindow, DefaultTTL: spec.DefaultTTL, MaxMessageSize: spec.MaxMessageSize,
	}
	if err := checkSpec("topic", inbox); err != nil {
		return err
	}
	for i, s := range spec.Subscriptions {
		if err := checkSubscription(s); err != nil {
			return fmt.Errorf("topic %q: %w", spec.Name, err)
		}
		if slices.ContainsFunc(spec.Subscriptions[:i], func(other SubscriptionSpec) bool { return strings.EqualFold(other.Name, s.Name) }) {
			return fmt.Errorf("topic %q: there are two subscriptions %q", spec.Name, s.Name)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.vacant(spec.Name); err != nil {
		return err
	}
	t := &topic{broker: broker.NewTopic(broker.TopicSpec{
		Name: spec.Name, DuplicateDetectionWindow: spec.DuplicateDetectionWindow, DefaultTTL: spec.DefaultTTL, MaxMessageSize: spec.MaxMessageSize,
	}, newToken)}
	t.entity = n.add(address{entity: spec.Name}, topicEntity, t.broker.Inbox())
	t.entity.topic = t
	for _, s := range spec.Subscriptions {
		n.subscribe(t, s)
	}
	return nil
}

func (n *namespace) createSubscription(name string, spec SubscriptionSpec) error {
	if err := checkSubscription(spec); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.entities[address{entity: name}.path()]
	if found == nil || found.topic == nil {
		return fmt.Errorf("there is no topic %q", name)
	}
	if n.entities[address{entity: subscriptionPath(found.name, spec.Name)}.path()] != nil {
		return fmt.Errorf("topic %q has a subscription %q already", name, spec.Name)
	}
	n.subscribe(found.topic, spec)
	return nil
}

// subscribe adds a subscription that was checked.
func (n *namespace) subscribe(t *topic, spec SubscriptionSpec) {
	rules := newRules(spec.Rules, n.now())
	path := subscriptionPath(t.entity.name, spec.Name)
	queue := t.broker.Subscribe(broker.Spec{
		Name: path, LockDuration: spec.LockDuration, MaxDeliveryCount: spec.MaxDeliveryCount, RequiresSession: spec.RequiresSession,
		DefaultTTL: spec.DefaultTTL, DeadLetterOnExpiry: spec.DeadLetterOnExpiry, MaxMessageSize: t.broker.Inbox().Spec().MaxMessageSize,
	}, rules.accept)
	main, dead := n.addWithDeadLetters(address{entity: path}, subscriptionEntity, queue)
	main.rules = rules
	t.entity.related = append(t.entity.related, main, dead)
}

// subscriptionSegment is between the names of a topic and of its subscription in a path, in any
// case (https://github.com/Azure/azure-service-bus/pull/319: Subscription, in the singular, is not
// found).
const subscriptionSegment = "/Subscriptions/"

func subscriptionPath(topic, name string) string { return topic + subscriptionSegment + name }

// maxSubscriptionName is the longest name of a subscription and of a rule
// (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-quotas).
const maxSubscriptionName = 50

func checkSubscription(spec SubscriptionSpec) error {
	if spec.Name == "" || len(spec.Name) > maxSubscriptionName || strings.Trim(spec.Name, "._-") != spec.Name || strings.ContainsFunc(spec.Name, foreign) {
		return fmt.Errorf("subscription %q: allowed are up to %d letters, digits, '.', '-' and '_', a letter or digit first and last", spec.Name, maxSubscriptionName)
	}
	if spec.LockDuration < 0 || spec.MaxDeliveryCount < 0 || spec.DefaultTTL < 0 {
		return fmt.Errorf("subscription %q: durations and counts cannot be negative; 0 is the default", spec.Name)
	}
	for i, r := range spec.Rules {
		if err := checkRule(r); err != nil {
			return fmt.Errorf("subscription %q: %w", spec.Name, err)
		}
		if slices.ContainsFunc(spec.Rules[:i], r.named) {
			return fmt.Errorf("subscription %q: there are two rules %q", spec.Name, r.Name)
		}
	}
	return nil
}

func foreign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
}
