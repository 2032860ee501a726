package cosmos_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestEveryLeaseOfAContainerIsFoundOnAllPages(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	const leases = 1100 // more than one page holds
	for n := range leases {
		of := leasefake.Processor{Name: fmt.Sprintf("p%d-", n), Host: "acct", Database: "d", Container: "c"}
		lease := of.JavaPK("0", testworld.At(1))
		lease["bulk"] = strings.Repeat("x", 100) // makes the page full
		testworld.Must(t, server.Upsert("shop", "orders", lease))
	}
	testworld.Must(t, server.Upsert("shop", "orders", leasefake.Info(processor(0).DotNetPrefix())))
	testworld.Must(t, server.Upsert("shop", "orders", processor(0).V2("1", testworld.At(1))))
	found, usage, err := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey).Leases(t.Context(), orders, nil)
	testworld.Must(t, err)
	formats := make(map[changefeed.Format]int)
	for _, l := range found {
		if l.Err != nil {
			t.Errorf("lease %s: %v", l.ID, l.Err)
		}
		formats[l.Format]++
	}
	if formats[changefeed.FormatJavaPK] != leases || formats[changefeed.FormatV2] != 1 || len(found) != leases+1 {
		t.Errorf("%d documents, by format %v", len(found), formats)
	}
	if usage.Charge <= 0 || usage.Requests == 0 {
		t.Errorf("usage %+v", usage)
	}
}

func TestAContainerIsNamedByItsRIDs(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Token: func(string) error { return nil }})
	for name, a := range map[string]*cosmos.Account{
		"with a key":       testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey),
		"with an identity": withIdentity(t, server.Endpoint(), &credential{token: "token"}),
	} {
		t.Run(name, func(t *testing.T) {
			described, _, err := a.Describe(t.Context(), orders)
			testworld.Must(t, err)
			rid := described.RID
			databaseRID, err := changefeed.DatabaseRID(rid)
			testworld.Must(t, err)
			got, usage, err := a.NamesOf(t.Context(), databaseRID, rid)
			if err != nil || got != orders || usage.Requests < 2 {
				t.Errorf("%s, %+v, %v; want %s", got, usage, err, orders)
			}
			for _, gone := range [][2]string{{databaseRID, "q0oIALS6YvQ="}, {"q0oIAA==", "q0oIALS6YvQ="}} {
				if _, _, err := a.NamesOf(t.Context(), gone[0], gone[1]); !errors.Is(err, cosmos.ErrMissing) {
					t.Errorf("%s: %v, want ErrMissing", gone, err)
				}
			}
		})
	}
}

func TestAContainerThatIsNotThereIsToldFromOneThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	if _, _, err := a.Describe(t.Context(), orders); err != nil {
		t.Errorf("%s: %v", orders, err)
	}
	for _, c := range []cosmos.Container{{Database: "shop", ID: "nowhere"}, {Database: "nowhere", ID: "orders"}} {
		if _, _, err := a.Describe(t.Context(), c); !errors.Is(err, cosmos.ErrMissing) {
			t.Errorf("%s: %v, want ErrMissing", c, err)
		}
	}
	if _, _, err := a.Leases(t.Context(), cosmos.Container{Database: "nowhere", ID: "leases"}, nil); !errors.Is(err, cosmos.ErrMissing) {
		t.Errorf("%v, want ErrMissing", err)
	}
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadContainer || r.Kind == cosmosfake.QueryDocuments {
			return &cosmosfake.Answer{Status: http.StatusForbidden}
		}
		return nil
	})
	_, _, has := a.Describe(t.Context(), orders)
	_, _, names := a.NamesOf(t.Context(), "q0oIAA==", "q0oIALS6YvQ=")
	_, _, leases := a.Leases(t.Context(), orders, nil)
	for i, err := range []error{has, names, leases} {
		if err == nil || errors.Is(err, cosmos.ErrMissing) || !strings.Contains(err.Error(), "403") {
			t.Errorf("request %d: %v", i, err)
		}
	}
}
