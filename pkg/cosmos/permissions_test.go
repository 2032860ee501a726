package cosmos_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestWhetherAThroughputMayBeReplacedIsFoundWithoutAWrite asks what a key, or an identity, may.
func TestWhetherAThroughputMayBeReplacedIsFoundWithoutAWrite(t *testing.T) {
	t.Parallel()
	const all = "Microsoft.DocumentDB/databaseAccounts/*"
	refusedBy := func(kind cosmos.RefusalKind) func(error) bool {
		return func(err error) bool {
			r, ok := errors.AsType[*cosmos.Refusal](err)
			return ok && r.Kind == kind
		}
	}
	permitted := func(err error) bool { return err == nil }
	for _, c := range []struct {
		rule        string
		permissions []string // of an identity; none = a key asks
		readOnly    bool     // the key
		want        func(error) bool
	}{
		{"a key", nil, false, permitted},
		{"a key for reading alone", nil, true, refusedBy(cosmos.KeyRefused)},
		{"the actions of the custom role", []string{"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/read", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/write", "Microsoft.Authorization/permissions/read"}, false, permitted},
		{"all of Azure", []string{"*"}, false, permitted},
		{"Cosmos DB Operator, in another case", []string{"microsoft.documentdb/databaseaccounts/*", "Microsoft.Authorization/*/read", "!Microsoft.DocumentDB/databaseAccounts/listKeys/*"}, false, permitted},
		{"Reader", []string{"*/read", "Microsoft.Authorization/*/read"}, false, refusedBy(cosmos.NotPermitted)},
		{"all but that", []string{all, "Microsoft.Authorization/*/read", "!*/throughputSettings/write"}, false, refusedBy(cosmos.NotPermitted)},
		{"for databases alone", []string{"Microsoft.DocumentDB/databaseAccounts/sqlDatabases/throughputSettings/*", "Microsoft.Authorization/*/read"}, false, refusedBy(cosmos.NotPermitted)},
		{"nobody may ask", []string{all}, false, func(err error) bool { return errors.Is(err, cosmos.ErrPermissionsHidden) }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server := start(t, cosmosfake.Options{})
			testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 1000}))
			byKey := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
			before, err := byKey.ReadThroughput(t.Context(), fixed)
			testworld.Must(t, err)
			if c.readOnly {
				server.Control(cosmosfake.Once(cosmosfake.ReplaceOffer, cosmosfake.Answer{Status: http.StatusUnauthorized}))
			}
			if c.permissions == nil {
				err = byKey.ProbeReplace(t.Context(), fixed, before)
			} else {
				m := managed(t, server, cosmosfake.ManagerOptions{Permissions: c.permissions}, &credential{token: "good"})
				err = m.ProbeReplace(t.Context(), fixed, before)
			}
			if !c.want(err) {
				t.Errorf("found %v", err)
			}
			// The offer is the very one that was read.
			_, err = byKey.ReplaceThroughput(t.Context(), fixed, before, 1100)
			testworld.Must(t, err)
		})
	}
}

// TestAnOfferThatWasFoundIsReadWithOneRequest reads twice, and then what was created again.
func TestAnOfferThatWasFoundIsReadWithOneRequest(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	create := func(ruPerSecond int) {
		t.Helper()
		testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: ruPerSecond}))
	}
	create(1000)
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	read := func(want, requests int) {
		t.Helper()
		got, err := a.ReadThroughput(t.Context(), fixed)
		if err != nil || got.RUPerSecond != want || got.Usage.Requests != requests || got.Usage.Charge <= 0 {
			t.Errorf("%d RU/s, %+v, %v; want %d in %d requests", got.RUPerSecond, got.Usage, err, want, requests)
		}
	}
	read(1000, 4) // and the regions, the RID, the offer
	read(1000, 1)
	sdk, err := testworld.SDK(t, server.ConnectionString()).NewContainer("shop", "fixed")
	testworld.Must(t, err)
	_, err = sdk.Delete(t.Context(), nil)
	testworld.Must(t, err)
	gone, err := a.ReadThroughput(t.Context(), fixed)
	if r, ok := errors.AsType[*cosmos.Refusal](err); !ok || r.Kind != cosmos.Missing || gone.Usage.Requests != 2 {
		t.Errorf("of what is gone: %v with %+v", err, gone.Usage)
	}
	create(700)
	read(700, 3)
}
