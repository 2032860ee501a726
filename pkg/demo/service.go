package demo

import (
	"cmp"
	_ "embed"
	"time"
)

// processors is the processors file for feedscale. It names every service below.
//
//go:embed processors.yaml
var processors string

// database has the containers and leases of all services.
const (
	database       = "shop"
	leaseContainer = "leases"
)

// One partition of this container is split and merged, and faults hang and break its handlers.
const (
	troubled      = "orders"
	reshapedRange = "2" // id of the partition key range at the start
)

// service is one application of the shop: a container with a load, and a change feed processor on
// it.
type service struct {
	database      string // "" = database
	name          string // of the container, and of the processor in processors.yaml
	processorName string
	key           string // path of the container's partition key
	partitions    int
	load          load
	document      func(*writer) any
	throughput    int  // changes that one replica handles per second
	stuck         bool // its replicas never finish their first page
	settles       bool // its replicas write each change to the ledger
}

func (s service) in() string { return cmp.Or(s.database, database) }

// services are all services of the world. processors.yaml says what to expect of each.
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
