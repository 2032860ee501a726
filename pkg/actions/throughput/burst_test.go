package throughput_test

import (
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// TestABurstDrainsWhereThroughputFollowsAndCostsLessThanItsPeak has four replicas read, 500 RU/s each,
// from a container of 400, and looks at the bill of the day.
func TestABurstDrainsWhereThroughputFollowsAndCostsLessThanItsPeak(t *testing.T) {
	t.Parallel()
	const (
		replicas, readsEach = 4, 5      // in a second
		backlog             = 200       // reads, of 100 RU each
		objective           = 15        // seconds
		found, peak         = 400, 2000 // RU/s
	)
	day := func(apply bool) (seconds, throttled, billed int) {
		clock := testworld.NewClock(noon.Add(-12 * time.Hour))
		w := testworld.New(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
		w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}, Throughput: found})
		w.Put("orders", map[string]any{"id": "big", "text": strings.Repeat("x", 100<<10-300)})
		store, err := boltstore.Open(filepath.Join(t.TempDir(), "state.db"))
		testworld.Must(t, err)
		defer func() { testworld.Must(t, store.Close()) }()
		way := w.Client()
		k := &throughput.Keeper{Store: store, Log: slog.New(slog.DiscardHandler), Containers: []*throughput.Container{{
			Account: w.Account.Endpoint(), Setting: "COSMOS", Container: orders, Client: way, Apply: apply,
			Processors: []throughput.Processor{{Name: "orders", RUPerReplica: peak / replicas}},
			Policy:     scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: time.Hour},
		}}}
		tick := func(n int) {
			turn := k.Begin(t.Context(), clock.Now())
			turn.Settle(t.Context(), map[string]throughput.Want{"orders": {Replicas: &n}})
			if text := turn.Shown("orders")[0].Error; text != "" {
				t.Fatal(text)
			}
		}
		read := reader(t, w)
		tick(0)
		clock.Advance(8*time.Hour + 10*time.Minute)
		tick(replicas)
		for left := backlog; left > 0; seconds++ {
			clock.Advance(time.Second)
			for range replicas * readsEach {
				if left > 0 && read() {
					left--
				} else if left > 0 {
					throttled++
				}
			}
		}
		for range 15 {
			tick(0)
			clock.Advance(time.Hour)
		}
		hours, err := w.Account.Bill(testworld.Database, "orders")
		testworld.Must(t, err)
		for _, h := range hours[:24] {
			billed += h.RUPerSecond
		}
		now, err := way.ReadThroughput(t.Context(), orders)
		testworld.Must(t, err)
		if now.RUPerSecond != found {
			t.Errorf("apply %t: the day ends with %d RU/s", apply, now.RUPerSecond)
		}
		return seconds, throttled, billed
	}
	with, refused, billed := day(true)
	without, held, least := day(false)
	t.Logf("with apply %d s, %d throttled, %d RU/s-hours; without %d s, %d throttled, %d; at the peak all day %d", with, refused, billed, without, held, least, 24*peak)
	if with > objective || refused > 0 {
		t.Errorf("with apply it took %d s and was throttled %d times", with, refused)
	}
	if without <= objective || held == 0 {
		t.Errorf("without it took %d s and was throttled %d times: the objective proves nothing", without, held)
	}
	if billed > 24*peak/2 || least != 24*found {
		t.Errorf("billed %d RU/s-hours, and %d without", billed, least)
	}
}

// reader returns a read of the big document by the SDK, which is false where it is throttled.
func reader(t *testing.T, w *testworld.World) func() bool {
	t.Helper()
	key, err := azcosmos.NewKeyCredential(cosmosfake.WellKnownKey)
	testworld.Must(t, err)
	client, err := azcosmos.NewClientWithKey(w.Account.Endpoint(), key, &azcosmos.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}})
	testworld.Must(t, err)
	container, err := client.NewContainer(testworld.Database, "orders")
	testworld.Must(t, err)
	return func() bool {
		_, err := container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("big"), "big", nil)
		if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && answer.StatusCode == http.StatusTooManyRequests {
			return false
		}
		testworld.Must(t, err)
		return true
	}
}
