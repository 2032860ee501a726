package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// shadowed is a program, at noon, with a state file that has six hours of two owners in it, an hour of
// which is missing, and a processors file.
func shadowed(t *testing.T) feedscale {
	t.Helper()
	path := filepath.Join(t.TempDir(), "feedscale.db")
	store, err := boltstore.Open(path)
	testworld.Must(t, err)
	var last state.State
	var version state.Version
	for at := noon.Add(-6 * time.Hour); at.Before(noon); at = at.Add(time.Minute) {
		if ago := noon.Sub(at); ago > 2*time.Hour && ago <= 3*time.Hour {
			continue
		}
		lag := changefeed.ProcessorLag{Time: at, Charge: 3}
		for _, lease := range []string{"0", "1", "2", "3"} {
			lag.Partitions = append(lag.Partitions, changefeed.Partition{
				Lease: lease, Owner: "worker-" + string('a'+lease[0]%2), LeaseTime: at, Status: changefeed.StatusLagging, Lag: new(int64(10)), Age: new(int64(at.Minute() + 10)),
			})
		}
		next := state.State{Processor: "orders", AttemptedAt: at, Lag: lag}
		next.Memory.Arrival, next.Memory.DrainPerReplica = new(20.0), 25
		next.Record(&last, state.Observation{LeaseExpiration: time.Minute, Due: last.AttemptedAt.Add(time.Minute)})
		testworld.Must(t, store.Commit(t.Context(), version, next, nil))
		stored, err := store.Load(t.Context(), "orders")
		testworld.Must(t, err)
		last, version = next, stored.Version
	}
	testworld.Must(t, store.Close())
	return feedscale{settings: map[string]string{
		"FEEDSCALE_STATE": "bolt:" + path, "COSMOS": "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey + ";",
		"FEEDSCALE_PROCESSORS": `{"processors": [{"name": "orders", "connection": "COSMOS", "databaseId": "shop", "containerId": "orders", "leaseContainerId": "leases"}]}`,
	}, now: func() time.Time { return noon }}
}

// testKey is shaped as a key.
const testKey = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmU="

func TestReportSaysWhatRanBesideWhatWouldHaveRun(t *testing.T) {
	t.Parallel()
	p := shadowed(t)
	for golden, args := range map[string][]string{
		"report":          {"report", "--since", "6h", "--ran", "fixed:2"},
		"report-markdown": {"report", "orders", "--since", "6h", "--output", "markdown"},
	} {
		r := p.run(t, args...)
		if r.Status != 0 || r.Stderr != "" {
			t.Errorf("%s: status %d: %s", golden, r.Status, r.Stderr)
		}
		testworld.Golden(t, *update, golden, r.Stdout)
	}
	r := p.run(t, "report", "--since", "6h", "--ran", "keda", "--output", "json")
	var all shadow.Report
	testworld.Must(t, json.Unmarshal([]byte(r.Stdout), &all))
	of := all.Processors[0]
	if *of.ReplicaHours < 9.8 || *of.ReplicaHours > 10.2 || len(of.Gaps) != 1 || of.Model == nil || *of.Model.Ran != "keda" || of.Model.ErrorPercent == nil {
		t.Errorf("got %s", r.Stdout)
	}
}

func TestReportRefusesWhatItCannotAnswer(t *testing.T) {
	t.Parallel()
	p := shadowed(t)
	r := p.run(t, "report", "--since", "1s", "--ran", "fixed:0", "--output", "csv")
	for _, says := range []string{"--since", "--ran is \"fixed:0\"", "--output is \"csv\""} {
		if r.Status != 2 || !strings.Contains(r.Stderr, says) {
			t.Errorf("status %d: %s", r.Status, r.Stderr)
		}
	}
	if r := p.run(t, "report", "order"); r.Status != 2 || !strings.Contains(r.Stderr, "order") {
		t.Errorf("another name: status %d: %s", r.Status, r.Stderr)
	}
}

func TestReportAsksAFeedscaleThatRunsElsewhere(t *testing.T) {
	t.Parallel()
	pages := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := shadow.NewCollector(noon.Add(-time.Hour), noon)
		page := c.Report()
		for i := range 500 {
			c.Add("p-"+r.FormValue("page")+string(rune('a'+i%26)), "", nil, nil)
			page = c.Report()
		}
		if pages++; r.FormValue("page") == "" {
			page.NextPage = new(1)
		}
		testworld.Must(t, json.NewEncoder(w).Encode(page))
	}))
	t.Cleanup(server.Close)
	r := feedscale{now: func() time.Time { return noon }}.run(t, "report", "--url", server.URL, "--output", "json")
	var all shadow.Report
	testworld.Must(t, json.Unmarshal([]byte(r.Stdout), &all))
	if r.Status != 0 || pages != 2 || len(all.Processors) != 1000 || all.NextPage != nil {
		t.Errorf("status %d %s: %d pages, %d processors", r.Status, r.Stderr, pages, len(all.Processors))
	}
}
