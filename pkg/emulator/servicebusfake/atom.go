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

// The documents of the management API, with the elements in the order of
// sdk/messaging/azservicebus/internal/atom/testdata/queue.xml in github.com/Azure/azure-sdk-for-go, which was recorded from the
// service.
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
	Author    string      `xml:"author>name"`
	Link      atomLink    `xml:"link"`
	Content   atomContent `xml:"content"`
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
	Type  string           `xml:"type,attr"`
	Queue queueDescription `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect QueueDescription"`
}

type queueDescription struct {
	LockDuration                        string
	MaxSizeInMegabytes                  int
	RequiresDuplicateDetection          bool
	RequiresSession                     bool
	DefaultMessageTimeToLive            string
	DeadLetteringOnMessageExpiration    bool
	DuplicateDetectionHistoryTimeWindow string
	MaxDeliveryCount                    int
	EnableBatchedOperations             bool
	SizeInBytes                         int64
	MessageCount                        int64
	IsAnonymousAccessible               bool
	Status                              string
	CreatedAt                           string
	UpdatedAt                           string
	AccessedAt                          string
	SupportOrdering                     bool
	CountDetails                        countDetails
	AutoDeleteOnIdle                    string
	EnablePartitioning                  bool
	EntityAvailabilityStatus            string
	EnableExpress                       bool
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

// getQueue describes one queue. Where there is none the service answers 200 with the feed that stands at its root, and clients know
// that feed (internal/atom/entity_manager.go, deserializeBody).
func (c *conn) getQueue(host, path string) httpAnswer {
	found := c.server.namespace.find(address{entity: path})
	if found == nil || found.kind != queueEntity {
		return document("feed", atomFeed{
			Title: atomText{"text", "Publicly Listed Services"}, Subtitle: "This is the list of publicly-listed services currently available.",
			ID: "uuid:00000000-0000-0000-0000-000000000000;id=1", Updated: stamp(c.now()),
		})
	}
	return document("entry", c.entry(host, found))
}

// listQueues is a page of all queues by name: $skip and $top are those of the service, which gives 100 at most.
func (c *conn) listQueues(host string, query url.Values) httpAnswer {
	top := 100
	if n, err := strconv.Atoi(query.Get("$top")); err == nil && n > 0 && n < top {
		top = n
	}
	skip, _ := strconv.Atoi(query.Get("$skip"))
	queues := c.server.namespace.queues()
	queues = queues[min(max(skip, 0), len(queues)):]
	feed := atomFeed{Title: atomText{"text", "Queues"}, ID: "https://" + host + "/$Resources/Queues", Updated: stamp(c.now())}
	feed.Links = []atomLink{{"self", feed.ID}}
	for _, q := range queues[:min(top, len(queues))] {
		feed.Entries = append(feed.Entries, c.entry(host, q))
	}
	return document("feed", feed)
}

// queues are all queues, without the dead-letter queues, by name.
func (n *namespace) queues() []*entity {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*entity
	for _, e := range n.entities {
		if e.kind == queueEntity {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entity) int { return strings.Compare(a.path, b.path) })
	return all
}

func (c *conn) entry(host string, e *entity) atomEntry {
	var messages []broker.Delivery
	var spec broker.Spec
	c.server.namespace.update(e, func(q *broker.Queue, now time.Time) { messages, spec = q.All(now), q.Spec() })
	created := stamp(c.server.started)
	d := queueDescription{
		LockDuration: isoDuration(spec.LockDuration), MaxSizeInMegabytes: 1024,
		RequiresDuplicateDetection: spec.DuplicateDetectionWindow > 0, RequiresSession: spec.RequiresSession,
		DefaultMessageTimeToLive: forever, DeadLetteringOnMessageExpiration: spec.DeadLetterOnExpiry,
		DuplicateDetectionHistoryTimeWindow: "PT10M", MaxDeliveryCount: spec.MaxDeliveryCount, EnableBatchedOperations: true,
		MessageCount: int64(len(messages)), Status: "Active", CreatedAt: created, UpdatedAt: created, AccessedAt: stamp(c.now()), SupportOrdering: true,
		AutoDeleteOnIdle: forever, EntityAvailabilityStatus: "Available",
	}
	if spec.DefaultTTL > 0 {
		d.DefaultMessageTimeToLive = isoDuration(spec.DefaultTTL)
	}
	if spec.DuplicateDetectionWindow > 0 {
		d.DuplicateDetectionHistoryTimeWindow = isoDuration(spec.DuplicateDetectionWindow)
	}
	d.CountDetails.Prefix = countsNamespace
	for _, m := range messages {
		d.SizeInBytes += int64(len(m.Content))
		switch m.State {
		case Scheduled:
			d.CountDetails.Scheduled++
		case DeadLettered:
			d.CountDetails.DeadLetter++
		default:
			// Locked messages (https://github.com/Azure/azure-sdk-for-net/pull/27238) and deferred ones
			// (https://github.com/paolosalvatori/ServiceBusExplorer/issues/662) count as active.
			d.CountDetails.Active++
		}
	}
	self := "https://" + host + "/" + e.name + "?api-version=2017-04"
	return atomEntry{
		ID: self, Title: atomText{"text", e.name}, Published: created, Updated: created, Author: strings.Split(hostOf(host), ".")[0],
		Link: atomLink{"self", self}, Content: atomContent{Type: "application/xml", Queue: d},
	}
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
