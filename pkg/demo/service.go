package demo

import (
	"cmp"
	_ "embed"
	"time"
)

// processors is the processors file that feedscale is run with. It names every service below.
//
//go:embed processors.yaml
var processors string

// database holds the containers of all services, and the leases.
const (
	database       = "shop"
	leaseContainer = "leases"
)

// Of this container one partition is split and merged while everything goes on, and its handlers are
// those that faults hang and break.
const (
	troubled      = "orders"
	reshapedRange = "2" // id of the partition key range, at the start
)

// service is one application of the shop: a container that is written to, and a change feed
// processor on it.
type service struct {
	database      string // "" = database
	name          string // of the container and, in processors.yaml, of the processor
	processorName string
	key           string // path of the container's partition key
	partitions    int
	load          load
	document      func(*writer) any
	throughput    int  // changes a replica handles per second
	stuck         bool // its replicas never finish the first page
	settles       bool // its replicas write each change to the ledger
}

func (s service) in() string { return cmp.Or(s.database, database) }

// services are what the world consists of. processors.yaml tells a reader what to expect of each.
func services() []service {
	return []service{
		{
			name: "orders", processorName: "order-projection", key: "/customerId", partitions: 6,
			load: steady{perSecond: 90}, document: newOrder, throughput: 40,
		},
		{
			name: "payments", processorName: "payment-settlement", key: "/accountId", partitions: 8,
			load: bursty{size: 900, perSecond: 300, first: 5 * time.Second, every: 40 * time.Second}, document: newPayment, throughput: 40, settles: true,
		},
		{
			name: "audit", processorName: "audit-archive", key: "/actor", partitions: 2,
			load: steady{perSecond: 3}, document: newAuditEntry, throughput: 40, stuck: true,
		},
	}
}
