package discover_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const host = "shop.documents.azure.com"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// look searches the lease container of the account host.
func look(t *testing.T, w *testworld.World) (discover.Report, error) {
	t.Helper()
	connection := config.CosmosConnection{Setting: "COSMOS", Host: host}
	return discover.Leases(t.Context(), w.Client(), connection, cosmos.Container{Database: testworld.Database, ID: testworld.Leases}, func() time.Time { return noon })
}

func TestOwnersAreLiveForAMinuteAfterTheyRenewed(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("orders", 1)
	of := w.LeasesOf("projection", host, "orders")
	w.Put(testworld.Leases,
		of.DotNetPKOld("0", leasefake.Fields{Owner: "live", Updated: noon.Add(-59 * time.Second)}),
		of.DotNetPKOld("1", leasefake.Fields{Owner: "dead", Updated: noon.Add(-61 * time.Second)}),
		of.DotNetPKOld("2", leasefake.Fields{Owner: "ahead", Updated: noon.Add(time.Second)}),
	)
	r, err := look(t, w)
	testworld.Must(t, err)
	p := r.Processors[0]
	if len(r.Processors) != 1 || p.Partitions != 3 || *p.NewestSeconds != 0 || *p.OldestSeconds != 61 || !r.Complete() {
		t.Errorf("got %+v", r.Processors)
	}
	live := make(map[string]bool)
	for _, o := range p.Owners {
		live[o.Name] = o.Live
		if *o.RenewedSeconds < 0 {
			t.Errorf("%s renews in %d s", o.Name, -*o.RenewedSeconds)
		}
	}
	if want := map[string]bool{"live": true, "dead": false, "ahead": true}; !maps.Equal(live, want) {
		t.Errorf("live are %v, want %v", live, want)
	}
}

func TestAnOwnerWhoRenewsInTwoDaysIsNotLive(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("orders", 1)
	w.Put(testworld.Leases, w.LeasesOf("projection", host, "orders").DotNetPKOld("0", leasefake.Fields{Owner: "ahead", Updated: noon.Add(48 * time.Hour)}))
	r, err := look(t, w)
	testworld.Must(t, err)
	if o := r.Processors[0].Owners[0]; o.Live || o.RenewedSeconds != nil {
		t.Errorf("got %+v", o)
	}
}

func TestTwoFormatsOfOneProcessorAreOneEntryThatFindsBoth(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("orders", 1)
	spelled := w.LeasesOf("audit", "Shop.Documents.azure.com", "orders")
	w.Put(testworld.Leases, spelled.JavaPK("0", testworld.At(0)), spelled.DotNetPKOld("0", testworld.At(0)))
	r, err := look(t, w)
	testworld.Must(t, err)
	entries, notes := 0, ""
	for _, p := range r.Processors {
		if p.Entry != nil {
			entries++
			if p.Entry.AccountHost != "Shop.Documents.azure.com" {
				t.Errorf("the entry's host is %q, want that which Java wrote", p.Entry.AccountHost)
			}
		} else if p.Note != nil {
			notes += *p.Note
		}
	}
	if len(r.Processors) != 2 || entries != 1 || !strings.HasPrefix(notes, "the same processor as audit") {
		t.Errorf("%d processors, %d entries, note %q", len(r.Processors), entries, notes)
	}
}

// TestNamesThatCanBePartedInTooManyWaysAreNotLookedUp has as many underscores as there may be readings.
func TestNamesThatCanBePartedInTooManyWaysAreNotLookedUp(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("orders", 1)
	many := leasefake.Processor{Host: host, Database: strings.Repeat("a_", 10) + "a", Container: strings.Repeat("b_", 10) + "b"}
	w.Put(testworld.Leases, many.JavaPK("0", testworld.At(0)))
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadContainer || r.Kind == cosmosfake.ReadDatabase {
			t.Errorf("the account was asked whether they exist: %+v", r)
		}
		return nil
	})
	r, err := look(t, w)
	testworld.Must(t, err)
	if p := r.Processors[0]; p.Entry != nil || p.Note == nil || !strings.Contains(*p.Note, "write an entry") {
		t.Errorf("got %+v", p)
	}
}

func TestALeaseContainerThatMayNotBeQueriedIsAnError(t *testing.T) {
	t.Parallel()
	w := testworld.New(t, testworld.Options{})
	w.Container("orders", 1)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.QueryDocuments {
			return nil
		}
		return &cosmosfake.Answer{Status: http.StatusForbidden}
	})
	if r, err := look(t, w); err == nil || !strings.Contains(err.Error(), "403") || len(r.Processors) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
