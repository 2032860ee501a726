package servicebusfake

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// The documents of the management API. Their elements are in the order of answers that were
// recorded from the service: of queues in
// sdk/messaging/azservicebus/internal/atom/testdata/queue.xml of github.com/Azure/azure-sdk-for-go,
// of topics in sdk/messaging/azservicebus/admin/admin_client_topic_filtercount_test.go there, and
// of subscriptions in ServiceBusAdministrationAsyncClientIntegrationTest.listSubscriptions[1].json
// among the session-records of sdk/servicebus/azure-messaging-servicebus in
// github.com/Azure/azure-sdk-for-java.
const (
	countsNamespace = "http://schemas.microsoft.com/netservices/2011/06/servicebus"

	// forever is the longest duration of .NET, as the service writes it.
	forever = "P10675199DT2H48M5.4775807S"
)

type atomEntry struct {
	XMLName   xml.Name    `xml:"http://www.w3.org/2005/Atom entry"`
	ID        string      `xml:"id"`
	Title     atomText    `xml:"title"`
	Published string      `xml:"published"`
	Updated   string      `xml:"updated"`
	Author    *atomAuthor `xml:"author"` // nil of a subscription
	Link      atomLink    `xml:"link"`
	Content   atomContent `xml:"content"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomText struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

type atomLink struct {
	Rel  string `xml:"rel,attr"`
	Href string `xml:"href,attr"`
}

type atomContent struct {
	Type string `xml:"type,attr"`
	// a queueDescription, topicDescription or subscriptionDescription, whose name is the element's
	Description any
}

type countDetails struct {
	Prefix             string `xml:"xmlns:d2p1,attr"`
	Active             int    `xml:"d2p1:ActiveMessageCount"`
	DeadLetter         int    `xml:"d2p1:DeadLetterMessageCount"`
	Scheduled          int    `xml:"d2p1:ScheduledMessageCount"`
	Transfer           int    `xml:"d2p1:TransferMessageCount"`
	TransferDeadLetter int    `xml:"d2p1:TransferDeadLetterMessageCount"`
}

type atomFeed struct {
	XMLName  xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	Title    atomText    `xml:"title"`
	Subtitle string      `xml:"subtitle,omitempty"`
	ID       string      `xml:"id"`
	Updated  string      `xml:"updated"`
	Links    []atomLink  `xml:"link"`
	Entries  []atomEntry `xml:"entry"`
}

// nowhere is the service's answer, with status 200, if there is no entity at the root: its feed of
// published entities. Clients expect it (internal/atom/entity_manager.go, deserializeBody).
func (c *conn) nowhere() httpAnswer {
	return document("feed", atomFeed{
		Title: atomText{"text", "Publicly Listed Services"}, Subtitle: "This is the list of publicly-listed services currently available.",
		ID: "uuid:00000000-0000-0000-0000-000000000000;id=1", Updated: stamp(c.now()),
	})
}

// getEntity describes a queue or a topic, whichever stands at the path. A client that asked for the
// other kind finds no description of that kind in it (TopicPropertiesExtensions.cs in
// Azure.Messaging.ServiceBus, github.com/Azure/azure-sdk-for-net: "Topic was not found").
func (c *conn) getEntity(host, path string) httpAnswer {
	found := c.server.namespace.find(address{entity: path})
	if found == nil || found.kind != queueEntity && found.kind != topicEntity {
		return c.nowhere()
	}
	return document("entry", c.entry(host, found))
}

// list is a page of entities: $skip and $top are those of the service, which gives 100 at most.
func (c *conn) list(host, path, title string, query url.Values, entities []*entity) httpAnswer {
	top := 100
	if n, err := strconv.Atoi(query.Get("$top")); err == nil && n > 0 && n < top {
		top = n
	}
	skip, _ := strconv.Atoi(query.Get("$skip"))
	entities = entities[min(max(skip, 0), len(entities)):]
	feed := atomFeed{Title: atomText{"text", title}, ID: "https://" + host + "/" + path, Updated: stamp(c.now())}
	feed.Links = []atomLink{{"self", feed.ID}}
	for _, e := range entities[:min(top, len(entities))] {
		feed.Entries = append(feed.Entries, c.entry(host, e))
	}
	return document("feed", feed)
}

// ofKind are all entities of a kind, by name.
func (n *namespace) ofKind(wanted kind) []*entity {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*entity
	for _, e := range n.entities {
		if e.kind == wanted {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, byPath)
	return all
}

func byPath(a, b *entity) int { return strings.Compare(a.path, b.path) }

func (c *conn) entry(host string, e *entity) atomEntry {
	self := "https://" + host + "/" + e.name + "?api-version=2017-04"
	entry := atomEntry{
		ID: self, Title: atomText{"text", e.name}, Published: stamp(c.server.started), Updated: stamp(c.server.started),
		Author: &atomAuthor{strings.Split(hostOf(host), ".")[0]}, Link: atomLink{"self", self}, Content: atomContent{Type: "application/xml"},
	}
	switch e.kind {
	case topicEntity:
		entry.Content.Description = c.describeTopic(e)
	case subscriptionEntity:
		entry.Title.Text, entry.Author = subscriptionName(e), nil
		entry.Content.Description = c.describeSubscription(e)
	default:
		entry.Content.Description = c.describeQueue(e)
	}
	return entry
}

// count adds messages to the counts. Locked messages
// (https://github.com/Azure/azure-sdk-for-net/pull/27238) and deferred ones
// (https://github.com/paolosalvatori/ServiceBusExplorer/issues/662) count as active.
func (d *countDetails) count(messages []broker.Delivery) {
	for _, m := range messages {
		switch m.State {
		case Scheduled:
			d.Scheduled++
		case DeadLettered:
			d.DeadLetter++
		default:
			d.Active++
		}
	}
}

func sizeOf(messages []broker.Delivery) (bytes int64) {
	for _, m := range messages {
		bytes += int64(len(m.Content))
	}
	return bytes
}

// timeToLive is a default time to live as the service writes it.
func timeToLive(d time.Duration) string {
	if d == 0 {
		return forever
	}
	return isoDuration(d)
}

// detectionWindow is how long a queue or topic would remember message ids, whether it does or not.
func detectionWindow(d time.Duration) string {
	if d == 0 {
		d = 10 * time.Minute
	}
	return isoDuration(d)
}

func document(kind string, value any) httpAnswer {
	body, err := xml.Marshal(value)
	if err != nil {
		// The values above have no field that cannot be marshalled.
		return httpAnswer{status: http.StatusInternalServerError, kind: "text/plain"}
	}
	return httpAnswer{http.StatusOK, "application/atom+xml;type=" + kind + ";charset=utf-8", body}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.0000000Z") }

// isoDuration writes a duration as XML Schema does.
func isoDuration(d time.Duration) string {
	text := "P"
	if days := d / (24 * time.Hour); days > 0 {
		text += fmt.Sprintf("%dD", days)
		d -= days * 24 * time.Hour
	}
	if d == 0 && text != "P" {
		return text
	}
	text += "T"
	if hours := d / time.Hour; hours > 0 {
		text += fmt.Sprintf("%dH", hours)
		d -= hours * time.Hour
	}
	if minutes := d / time.Minute; minutes > 0 {
		text += fmt.Sprintf("%dM", minutes)
		d -= minutes * time.Minute
	}
	if d > 0 || text == "PT" {
		text += strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "S"
	}
	return text
}
