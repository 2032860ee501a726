package cosmos_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const (
	writeRegion = 0
	otherRegion = 1
)

// outages are what may become of a region.
var outages = map[string]cosmosfake.RegionState{
	"answers 503":         cosmosfake.Unavailable,
	"refuses connections": cosmosfake.Refusing,
	"hangs":               cosmosfake.Hanging,
}

// azure is an account of two regions that is found by the names that Azure has for it: its own, and
// one for each region (azure-cosmos-dotnet-v3, LocationHelper.cs).
func azure(t *testing.T) *testworld.World {
	t.Helper()
	w := testworld.New(t, testworld.Options{InMemory: true, Account: cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}}})
	w.Container(orders.ID, 2)
	hosts := map[string]int{
		"acct.documents.azure.com:80":             writeRegion,
		"acct-westeurope.documents.azure.com:80":  writeRegion,
		"acct-northeurope.documents.azure.com:80": otherRegion,
	}
	dial := w.Transport.DialContext
	w.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if region, ok := hosts[address]; ok {
			endpoint, err := url.Parse(w.Account.RegionEndpoint(region))
			if err != nil {
				return nil, err
			}
			address = endpoint.Host
		}
		return dial(ctx, network, address)
	}
	return w
}

func clientOf(t *testing.T, w *testworld.World, o cosmos.Options) *cosmos.Account {
	t.Helper()
	o.Setting, o.Key, o.Transport = "COSMOS", cosmosfake.WellKnownKey, &http.Client{Transport: w.Transport}
	o.Concurrency = cmp.Or(o.Concurrency, 4)
	if o.Endpoint == "" {
		o.Endpoint = "http://acct.documents.azure.com/"
	}
	a, err := cosmos.NewAccount(o)
	testworld.Must(t, err)
	return a
}

// TestEveryRequestFailsOverFromAWriteRegionThatIsOutOfOrder has RIDs, ranges, leases and feeds read
// while the write region is out of order and the other one is not.
func TestEveryRequestFailsOverFromAWriteRegionThatIsOutOfOrder(t *testing.T) {
	t.Parallel()
	for outage, state := range outages {
		for _, c := range []struct {
			rule   string
			region string // that feedscale runs in
			before bool   // the account was asked before the outage
		}{
			{"of which the account has told before", "", true},
			{"in which feedscale runs itself, and of which the account has told before", "westeurope", true},
			{"while feedscale runs in the other one", "North Europe", true},
			{"and that was never asked, while feedscale runs in the other one", "northeurope", false},
		} {
			t.Run(fmt.Sprintf("one that %s, %s", outage, c.rule), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := azure(t)
					a := clientOf(t, w, cosmos.Options{Region: c.region})
					if c.before {
						_, err := a.ProbeAccount(t.Context())
						testworld.Must(t, err)
						_, _, err = a.Describe(t.Context(), orders) // which reads the account's regions
						testworld.Must(t, err)
					}
					testworld.Must(t, w.Account.SetRegion(writeRegion, state))
					for poll := range 3 {
						began := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
						for i, err := range everything(ctx, a) {
							if err != nil {
								t.Errorf("poll %d, request %d: %v", poll, i, err)
							}
						}
						cancel()
						if took := time.Since(began); took > 10*time.Second {
							t.Errorf("poll %d took %s: what is out of order is waited for again and again", poll, took)
						}
						time.Sleep(time.Minute)
					}
				})
			})
		}
	}
}

// TestReadsFollowTheAccountAfterAFailover has the write region move while the first one is gone, and
// come back.
func TestReadsFollowTheAccountAfterAFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := azure(t)
		a := clientOf(t, w, cosmos.Options{Region: "westeurope"})
		poll := func() {
			t.Helper()
			for i, err := range everything(t.Context(), a) {
				if err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
			time.Sleep(10 * time.Minute)
		}
		poll()
		testworld.Must(t, w.Account.SetRegion(writeRegion, cosmosfake.Hanging))
		poll()
		w.Account.Failover(otherRegion)
		poll()
		testworld.Must(t, w.Account.SetRegion(writeRegion, cosmosfake.Online))
		poll()
		testworld.Must(t, w.Account.SetRegion(otherRegion, cosmosfake.Refusing))
		poll()
	})
}
