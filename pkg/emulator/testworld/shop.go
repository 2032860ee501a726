package testworld

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// What every shop has.
const (
	Orders     = "orders"       // id of the monitored container, which is the name of its processor, too
	Queue      = "scale-events" // of the namespace
	OrdersHost = "shop.documents.azure.com"
)

// Shop is a world with one processor to scale: the container orders, with one lease that the .NET
// SDK wrote in Azure, and a queue for the events.
type Shop struct {
	*World
	Processor leasefake.Processor // of orders
}

// NewShop starts a shop, none of whose orders is processed yet. Its queue takes the place of those
// in the options.
func NewShop(t testing.TB, o Options) *Shop {
	t.Helper()
	o.Queues = []servicebusfake.QueueSpec{{Name: Queue, DuplicateDetectionWindow: 10 * time.Minute}}
	w := &Shop{World: New(t, o)}
	w.Container(Orders, 1)
	w.Processor = w.LeasesOf("", OrdersHost, Orders)
	w.Checkpoint(0)
	return w
}

// Checkpoint writes the lease of orders as its owner does that has processed up to an LSN.
func (w *Shop) Checkpoint(lsn int64) {
	w.t.Helper()
	fields := At(lsn)
	fields.Updated = w.now()
	w.Put(Leases, w.Processor.DotNetPK("0", leasefake.Range{Max: "FF"}, fields))
}

// Settings are those of a program that scales orders by its lag: one replica for ten changes. The
// test adds the state and the destination of events.
func (w *Shop) Settings() map[string]string {
	return map[string]string{
		"COSMOS":                   w.Account.ConnectionString(),
		"SERVICEBUS":               w.Namespace.ConnectionString(),
		"FEEDSCALE_TIMER_SCHEDULE": "*/15 * * * * *",
		"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders, ` +
			`accountHost: ` + OrdersHost + `, changeFeedLagThreshold: 10}]}`,
	}
}
