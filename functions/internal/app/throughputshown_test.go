package app_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
)

// TestWhatThroughputIsNeededIsShownFromTheFirstTickOn looks at the result, the event and the state of one
// tick, and at what an app over the same state knows that has not polled.
func TestWhatThroughputIsNeededIsShownFromTheFirstTickOn(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"recommend", "apply"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC))
			w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
			w.Create(cosmosfake.ContainerSpec{ID: "views", PartitionKey: []string{"/id"}, Throughput: 500})
			w.Write(testworld.Orders, 30)
			file := filepath.Join(t.TempDir(), "feedscale.db")
			c, o := configured(t, w, clock, file, ", throughput: {mode: "+mode+", containers: [{container: views, ruPerReplica: 1500}]}")
			var published bytes.Buffer
			o.EventLines = &published
			a := opened(t, c, o, false)
			result, err := a.Poll(t.Context(), poller.Mode{All: true})
			testworld.Must(t, err)
			a.Close()

			event, err := events.Decode(bytes.TrimSpace(published.Bytes()))
			testworld.Must(t, err)
			if len(event.Throughput) != 1 {
				t.Fatalf("the event says %s", published.String())
			}
			said := event.Throughput[0]
			if said.Container != "shop/views" || said.Mode != mode || *said.Provisioned != 500 || *said.Desired != 1500 || *said.Needed != 1500 || said.AtLimit {
				t.Errorf("the event says %+v", said)
			}
			polled := report.New(result.Polled[0])
			if got := polled.Throughput[0]; got.RUPerSecond() != "500 → 1500" || got.Mode != mode || got.Bill.ProvisionedRUHours != 500 || got.Bill.DesiredRUHours != 1500 {
				t.Errorf("the result says %+v", got)
			}
			// Leases, RID, a page. Reading the throughput is charged to no processor.
			if polled.Requests < 3 || polled.RequestCharge == 0 {
				t.Errorf("%d requests with %g RU were made", polled.Requests, polled.RequestCharge)
			}

			// Another app over the same state has polled nothing.
			h, err := app.Listen(c, o)
			testworld.Must(t, err)
			serving(t, h)
			clock.Advance(time.Second)
			s := served{w, h, clock, file}
			one := testworld.Decode[report.StoredProcessor](t, []byte(s.get(t, "/api/processors/orders").body))
			if len(one.Throughput) != 1 || *one.Throughput[0].Desired != 1500 || len(one.Throughput[0].Reasons) == 0 {
				t.Errorf("the API says %+v", one.Throughput)
			}
			if history := s.get(t, "/api/processors/orders/history").body; !strings.Contains(history, `"provisionedRUPerSecond":500,"desiredRUPerSecond":1500`) {
				t.Errorf("the history says %s", history)
			}
		})
	}
}

// TestAContainerThatStaysAsItIsIsReadOnceInFiveMinutes counts requests for the throughput of three.
func TestAContainerThatStaysAsItIsIsReadOnceInFiveMinutes(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	named := ""
	for _, id := range []string{"a", "b", "c"} {
		w.Create(cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}, Throughput: 1000})
		named += "{container: " + id + ", ruPerReplica: 500}, "
	}
	w.Write(testworld.Orders, 30)
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), ", throughput: {mode: apply, containers: ["+named+"]}")
	a := opened(t, c, o, false)
	defer a.Close()
	reads := func() int {
		n := w.Account.Requests().Requests
		return n[cosmosfake.ReadOffer] + n[cosmosfake.ListOffers]
	}
	for minute := range 11 {
		before, replaced := reads(), w.Account.Requests().Requests[cosmosfake.ReplaceOffer]
		_, err := a.Poll(t.Context(), poller.Mode{All: true})
		testworld.Must(t, err)
		want := 0
		if minute%5 == 0 { // a query and a read each
			want = 6
		}
		if got := reads() - before; got != want {
			t.Errorf("minute %d: %d reads, want %d", minute, got, want)
		}
		if w.Account.Requests().Requests[cosmosfake.ReplaceOffer] != replaced {
			t.Errorf("minute %d: a container that has enough was changed", minute)
		}
		clock.Advance(time.Minute)
	}
}

// TestADryRunShowsWhatTwoProcessorsNeedOfOneContainer counts writes, of which there are none.
func TestADryRunShowsWhatTwoProcessorsNeedOfOneContainer(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	w.Create(cosmosfake.ContainerSpec{ID: "views", PartitionKey: []string{"/id"}, Throughput: 500})
	w.Write(testworld.Orders, 30)
	const follows = ", throughput: {mode: apply, containers: [{container: views, ruPerReplica: 1500}]}"
	second := "}, {name: second, connection: COSMOS, databaseId: shop, containerId: orders, processorName: second, accountHost: " + testworld.OrdersHost + ", changeFeedLagThreshold: 10" + follows
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), follows+second)
	a := opened(t, c, o, true)
	defer a.Close()
	result, err := a.Poll(t.Context(), poller.Mode{All: true, DryRun: true})
	testworld.Must(t, err)
	for _, s := range result.Polled {
		if got := report.New(s).Throughput; len(got) != 1 || *got[0].Desired != 3000 || *got[0].Needed != 3000 {
			t.Errorf("%s: %+v, want what both need", s.Processor, got)
		}
	}
	if n := w.Account.Requests().Requests[cosmosfake.ReplaceOffer]; n != 0 {
		t.Errorf("%d writes", n)
	}
}

func TestASettingThatNothingReadsAnyMoreIsSaidOnce(t *testing.T) {
	t.Parallel()
	w, clock := testworld.NewShop(t, testworld.Options{}), testworld.NewClock(time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC))
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), "")
	for set, want := range map[string]int{"": 0, "FEEDSCALE_RU_PRICE": 1} {
		var log bytes.Buffer
		c.Settings.Ignored, o.Log = set, slog.New(slog.NewJSONHandler(&log, nil))
		a := opened(t, c, o, false)
		_, err := a.Poll(t.Context(), poller.Mode{All: true})
		testworld.Must(t, err)
		a.Close()
		if got := strings.Count(log.String(), `"level":"WARN","msg":"a setting is ignored`); got != want || !strings.Contains(log.String(), set) {
			t.Errorf("%d warnings, want %d: %s", got, want, log.String())
		}
	}
}
