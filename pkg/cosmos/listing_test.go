package cosmos_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestDatabasesAndContainersAreListedOnAllPages(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Token: func(string) error { return nil }})
	const more = 130 // than a page holds
	for i := range more {
		testworld.Must(t, server.CreateDatabase(fmt.Sprint("d", i)))
		testworld.Must(t, server.CreateContainer("d0", cosmosfake.ContainerSpec{ID: fmt.Sprint("c", i), PartitionKey: []string{"/tenant", "/user"}}))
	}
	for name, a := range map[string]*cosmos.Account{
		"with a key":       testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey),
		"with an identity": withIdentity(t, server.Endpoint(), &credential{token: "token"}),
	} {
		t.Run(name, func(t *testing.T) {
			databases, usage, err := a.Databases(t.Context())
			if err != nil || len(databases) != more+1 || usage.Charge <= 0 {
				t.Errorf("%d databases, %+v, %v", len(databases), usage, err)
			}
			containers, _, err := a.Containers(t.Context(), "d0")
			if err != nil || len(containers) != more || containers[0].ID != "c0" || strings.Join(containers[0].PartitionKey.Paths, " ") != "/tenant /user" {
				t.Errorf("%d containers, %v", len(containers), err)
			}
			if _, _, err := a.Containers(t.Context(), "nowhere"); err == nil || !strings.Contains(err.Error(), "nowhere") {
				t.Errorf("of a database that is not there: %v", err)
			}
		})
	}
}

func TestAListThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for body, says := range map[string]string{`{}`: "it has no Databases", `<html>`: "no whole page", `{"Databases":7}`: "no whole page"} {
		server := start(t, cosmosfake.Options{})
		server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind != cosmosfake.ListDatabases {
				return nil
			}
			return &cosmosfake.Answer{Status: http.StatusOK, Body: body}
		})
		if _, _, err := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey).Databases(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestAListWithoutAnEndEnds(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ListDatabases {
			return nil
		}
		return &cosmosfake.Answer{Status: http.StatusOK, Header: http.Header{"X-Ms-Continuation": {"more"}}, Body: `{"Databases":[{"id":"shop"}]}`}
	})
	if ids, _, err := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey).Databases(t.Context()); err == nil || len(ids) != 20 {
		t.Errorf("%d databases, %v", len(ids), err)
	}
}

func TestAGlanceReadsTheFirstDocumentsAlone(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	glance := func() (cosmos.Glance, cosmos.Usage) {
		g, usage, err := a.Glance(t.Context(), orders)
		testworld.Must(t, err)
		return g, usage
	}
	if g, _ := glance(); g != (cosmos.Glance{Whole: true}) {
		t.Errorf("of nothing: %+v", g)
	}
	of := leasefake.Processor{Name: "p-", Host: "acct", Database: "d", Container: "c"}
	testworld.Must(t, server.Upsert("shop", "orders", of.JavaPK("0", testworld.At(1))))
	testworld.Must(t, server.Upsert("shop", "orders", leasefake.Info(of.DotNetPrefix())))
	testworld.Must(t, server.Upsert("shop", "orders", map[string]any{"id": "a..b", "customer": 7}))
	testworld.Must(t, server.Upsert("shop", "orders", map[string]any{"id": "plain", "LeaseToken": "0"}))
	if g, _ := glance(); g != (cosmos.Glance{Seen: 4, Leases: 1, Whole: true}) {
		t.Errorf("of a lease among others: %+v", g)
	}
	for i := range 2000 {
		testworld.Must(t, server.Upsert("shop", "orders", map[string]any{"id": fmt.Sprint("document-", i)}))
	}
	if g, usage := glance(); g.Seen < 50 || g.Seen > 100 || g.Whole || usage.Requests > 5 {
		t.Errorf("of many documents: %+v in %d requests", g, usage.Requests)
	}
	if _, _, err := a.Glance(t.Context(), cosmos.Container{Database: "shop", ID: "nowhere"}); !errors.Is(err, cosmos.ErrMissing) {
		t.Errorf("of a container that is not there: %v", err)
	}
}
