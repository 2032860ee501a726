package servicebusfake

import (
	"encoding/xml"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

type queueDescription struct {
	XMLName                             xml.Name `xml:"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect QueueDescription"`
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

func (c *conn) describeQueue(e *entity) queueDescription {
	var messages []broker.Delivery
	var spec broker.Spec
	c.server.namespace.update(e, func(q *broker.Queue, now time.Time) { messages, spec = q.All(now), q.Spec() })
	created := stamp(c.server.started)
	d := queueDescription{
		LockDuration: isoDuration(spec.LockDuration), MaxSizeInMegabytes: 1024,
		RequiresDuplicateDetection: spec.DuplicateDetectionWindow > 0, RequiresSession: spec.RequiresSession,
		DefaultMessageTimeToLive: timeToLive(spec.DefaultTTL), DeadLetteringOnMessageExpiration: spec.DeadLetterOnExpiry,
		DuplicateDetectionHistoryTimeWindow: detectionWindow(spec.DuplicateDetectionWindow), MaxDeliveryCount: spec.MaxDeliveryCount, EnableBatchedOperations: true,
		SizeInBytes: sizeOf(messages), MessageCount: int64(len(messages)), Status: "Active", CreatedAt: created, UpdatedAt: created, AccessedAt: stamp(c.now()),
		SupportOrdering: true, CountDetails: countDetails{Prefix: countsNamespace}, AutoDeleteOnIdle: forever, EntityAvailabilityStatus: "Available",
	}
	d.CountDetails.count(messages)
	return d
}
