package servicebusfake

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

type topicDescription struct {
	XMLName                             xml.Name `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect TopicDescription"`
	DefaultMessageTimeToLive            string
	MaxSizeInMegabytes                  int
	RequiresDuplicateDetection          bool
	DuplicateDetectionHistoryTimeWindow string
	EnableBatchedOperations             bool
	SizeInBytes                         int64
	FilteringMessagesBeforePublishing   bool
	IsAnonymousAccessible               bool
	Status                              string
	CreatedAt                           string
	UpdatedAt                           string
	AccessedAt                          string
	SupportOrdering                     bool
	// of the scheduled messages alone: the others are in subscriptions
	CountDetails                   countDetails
	SubscriptionCount              int
	AutoDeleteOnIdle               string
	EnablePartitioning             bool
	EntityAvailabilityStatus       string
	EnableSubscriptionPartitioning bool
	EnableExpress                  bool
	MaxMessageSizeInKilobytes      int
	// The service has these from api-version 2024-05 on (sdk/messaging/azservicebus/CHANGELOG.md in
	// github.com/Azure/azure-sdk-for-go, 1.11.0). Clients of earlier ones ignore what they do not
	// know.
	SQLFilterCount         int `xml:"SqlFilterCount"`
	CorrelationFilterCount int
}

type subscriptionDescription struct {
	XMLName                                   xml.Name `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect SubscriptionDescription"`
	LockDuration                              string
	RequiresSession                           bool
	DefaultMessageTimeToLive                  string
	DeadLetteringOnMessageExpiration          bool
	DeadLetteringOnFilterEvaluationExceptions bool
	MessageCount                              int64
	MaxDeliveryCount                          int
	EnableBatchedOperations                   bool
	Status                                    string
	CreatedAt                                 string
	UpdatedAt                                 string
	AccessedAt                                string
	CountDetails                              countDetails
	AutoDeleteOnIdle                          string
	EntityAvailabilityStatus                  string
	IsClientAffine                            bool
}

// ofSubscriptions answers for TOPIC/Subscriptions and what is below. ok is false if the path is
// none of these.
func (c *conn) ofSubscriptions(host, path string, query url.Values) (answer httpAnswer, ok bool) {
	segments := strings.Split(path, "/")
	at := slices.IndexFunc(segments, func(s string) bool { return strings.EqualFold(s, strings.Trim(subscriptionSegment, "/")) })
	if at < 1 {
		return httpAnswer{}, false
	}
	if len(segments) > at+2 {
		return c.problem(http.StatusNotImplemented, "This stand-in does not offer what is below a subscription, such as its rules."), true
	}
	name := strings.Join(segments[:at], "/")
	topic := c.server.namespace.find(address{entity: name})
	if topic == nil || topic.kind != topicEntity {
		return c.notFound(host, name), true
	}
	if len(segments) == at+1 {
		return c.list(host, path, "Subscriptions", query, c.server.namespace.subscriptionsOf(topic)), true
	}
	found := c.server.namespace.find(address{entity: path})
	if found == nil || found.kind != subscriptionEntity {
		return c.notFound(host, topic.name+"|"+segments[at+1]), true
	}
	return document("entry", c.entry(host, found)), true
}

// notFound says of a topic's subscription that it is not there, with a 404 and not with a feed as
// at the root
// (ServiceBusAdministrationAsyncClientIntegrationTest.getSubscriptionDoesNotExist[1].json, as
// above). What it says of one whose topic is not there was not recorded; the Go client's own test
// finds nothing there, and no error (admin_client_test.go, TestAdminClient_NotFound).
func (c *conn) notFound(host, entity string) httpAnswer {
	return c.problem(http.StatusNotFound, "Entity '%s:Topic:%s' was not found. To know more visit https://aka.ms/sbResourceMgrExceptions. ", strings.Split(hostOf(host), ".")[0], entity)
}

// subscriptionsOf are those of a topic, by name.
func (n *namespace) subscriptionsOf(topic *entity) []*entity {
	n.mu.Lock()
	defer n.mu.Unlock()
	return topic.subscriptions()
}

// subscriptions are those of a topic, by name. The mutex of the namespace is held.
func (e *entity) subscriptions() []*entity {
	all := slices.DeleteFunc(slices.Clone(e.related), func(other *entity) bool { return other.kind != subscriptionEntity })
	slices.SortFunc(all, byPath)
	return all
}

func subscriptionName(e *entity) string {
	_, name, _ := strings.Cut(e.name, subscriptionSegment)
	return name
}

func (c *conn) describeTopic(e *entity) topicDescription {
	created := stamp(c.server.started)
	d := topicDescription{
		MaxSizeInMegabytes: 1024, EnableBatchedOperations: true, Status: "Active", CreatedAt: created, UpdatedAt: created, AccessedAt: stamp(c.now()),
		SupportOrdering: true, CountDetails: countDetails{Prefix: countsNamespace}, AutoDeleteOnIdle: forever, EntityAvailabilityStatus: "Available",
	}
	c.server.namespace.update(e, func(inbox *broker.Queue, now time.Time) {
		scheduled, spec := inbox.All(now), inbox.Spec()
		d.DefaultMessageTimeToLive = timeToLive(spec.DefaultTTL)
		d.RequiresDuplicateDetection = spec.DuplicateDetectionWindow > 0
		d.DuplicateDetectionHistoryTimeWindow = detectionWindow(spec.DuplicateDetectionWindow)
		d.MaxMessageSizeInKilobytes = spec.MaxMessageSize / 1024
		d.CountDetails.count(scheduled)
		d.SizeInBytes = sizeOf(scheduled)
		for _, s := range e.subscriptions() {
			d.SubscriptionCount++
			d.SizeInBytes += sizeOf(s.queue.All(now))
			for _, rule := range s.rules.all {
				if _, correlation := rule.Filter.(CorrelationFilter); correlation {
					d.CorrelationFilterCount++
				} else {
					// the true filter is one of SQL, and is counted
					// (admin_client_topic_filtercount_test.go, as above)
					d.SQLFilterCount++
				}
			}
		}
	})
	return d
}

func (c *conn) describeSubscription(e *entity) subscriptionDescription {
	var messages []broker.Delivery
	var spec broker.Spec
	c.server.namespace.update(e, func(q *broker.Queue, now time.Time) { messages, spec = q.All(now), q.Spec() })
	created := stamp(c.server.started)
	d := subscriptionDescription{
		LockDuration: isoDuration(spec.LockDuration), RequiresSession: spec.RequiresSession, DefaultMessageTimeToLive: timeToLive(spec.DefaultTTL),
		DeadLetteringOnMessageExpiration: spec.DeadLetterOnExpiry, DeadLetteringOnFilterEvaluationExceptions: true, MessageCount: int64(len(messages)),
		MaxDeliveryCount: spec.MaxDeliveryCount, EnableBatchedOperations: true, Status: "Active", CreatedAt: created, UpdatedAt: created, AccessedAt: stamp(c.now()),
		CountDetails: countDetails{Prefix: countsNamespace}, AutoDeleteOnIdle: forever, EntityAvailabilityStatus: "Available",
	}
	d.CountDetails.count(messages)
	return d
}
