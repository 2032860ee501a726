package testworld_test

import (
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestAWorldHasWhatATestPutIntoIt(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	w := testworld.New(t, testworld.Options{
		Account: cosmosfake.Options{Now: clock.Now},
		Queues:  []servicebusfake.QueueSpec{{Name: "scale-events"}},
	})
	w.Container("orders", 2)
	w.Write("orders", 3)
	of, other := w.LeasesOf("projection", "Acct", "orders"), w.LeasesOf("other", "acct", "orders")
	w.Put(testworld.Leases, leasefake.Info(of.DotNetPrefix()), of.DotNetPKOld("0", testworld.At(7)), other.DotNetPKOld("0", testworld.At(8)))
	clock.Advance(time.Minute)
	w.Write("orders", 1)

	sdk := testworld.SDK(t, w.Account.ConnectionString())
	type document struct {
		ID      string `json:"id"`
		Written int64  `json:"_ts"`
	}
	written := map[string]int64{}
	for _, d := range testworld.Documents[document](t, sdk, testworld.Database, "orders") {
		written[d.ID] = d.Written
	}
	if last := written["doc-4"]; len(written) != 4 || last != clock.Now().Unix() || written["doc-1"] != last-60 {
		t.Errorf("got %v, want four documents, the last a minute after the others", written)
	}
	leases := testworld.ReadLeases(t, sdk, testworld.Database, testworld.Leases, "projection")
	if len(leases) != 1 || leases[0].ID != of.DotNetPrefix()+"..0" || *leases[0].Continuation != `"7"` {
		t.Errorf("got leases %+v, want the one of projection", leases)
	}
	if messages := w.Namespace.Messages("scale-events"); len(messages) != 0 {
		t.Errorf("got messages %v in a queue that nobody has sent to", messages)
	}
}

func TestAShopIsProcessedAsFarAsItsCheckpointAtTheTimeOfItsClock(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	for _, lsn := range []int64{0, 7} {
		if lsn > 0 {
			clock.Advance(time.Minute)
			w.Checkpoint(lsn)
		}
		leases := testworld.ReadLeases(t, w.SDK(), testworld.Database, testworld.Leases, testworld.OrdersHost)
		if len(leases) != 1 || *leases[0].Continuation != *leasefake.At(lsn) || !strings.HasPrefix(*leases[0].Timestamp, clock.Now().Format("2006-01-02T15:04:05")) {
			t.Errorf("at %d: leases %+v", lsn, leases)
		}
	}
}
