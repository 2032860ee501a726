package processors_test

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"time"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// newSimulating is a function that replays the history of orders against fixed counts, with polls of
// so many partitions, one a minute, at each of which 60 changes have arrived.
func newSimulating(t *testing.T, polls, partitions int) function {
	t.Helper()
	f := newFunction(t, "orders")
	f.handler.Groups = []overview.Subject{{Name: "workers"}}
	f.handler.Policies = func(name string) []simulate.Scaler {
		if name != "orders" {
			return nil
		}
		return []simulate.Scaler{simulate.FixedCount(2), simulate.KEDA()}
	}
	f.mux = http.NewServeMux()
	f.handler.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	f.handler.Register(f.mux)
	for i := range polls {
		s := lagging("orders")
		s.AttemptedAt = noon.Add(time.Duration(i) * time.Minute)
		s.Lag.Partitions = nil
		for range partitions {
			s.Lag.Partitions = append(s.Lag.Partitions, changefeed.Partition{Lease: "0", Lag: new(int64(1)), Status: changefeed.StatusLagging})
		}
		s.Memory = scaling.Memory{Arrival: new(1.0), DrainPerReplica: 50}
		record, err := storetest.Load(t.Context(), f.store, "orders")
		testworld.Must(t, err)
		testworld.Must(t, f.store.Commit(t.Context(), record.Version, s, nil))
	}
	f.clock.Advance(time.Duration(polls) * time.Minute)
	return f
}

func TestWhatAPolicyWouldHaveMadeOfTheHistoryIsReplayed(t *testing.T) {
	t.Parallel()
	f := newSimulating(t, 31, 4)
	w := f.ask(t, http.MethodGet, "/api/processors/orders/simulation?since=1h")
	got := testworld.Decode[struct {
		Processor, Policy    string
		Since                time.Time
		Seconds, Partitions  int
		ThroughputPerReplica float64
		ThroughputMeasured   bool
		ReplicaHours         float64
		Series               []struct {
			Time            time.Time
			DesiredReplicas int
		}
	}](t, w.Body.Bytes())
	if w.Code != http.StatusOK || got.Processor != "orders" || got.Policy != "fixed" || !got.Since.Equal(noon) || got.Seconds != 1800 || got.Partitions != 4 ||
		got.ThroughputPerReplica != 50 || !got.ThroughputMeasured || got.ReplicaHours != 1 || len(got.Series) < 2 || !got.Series[0].Time.Equal(noon) || got.Series[1].DesiredReplicas != 2 {
		t.Errorf("%d %.600s", w.Code, w.Body)
	}
	if w := f.ask(t, http.MethodGet, "/api/processors/orders/simulation?policy=keda"); !strings.Contains(w.Body.String(), `"policy":"keda"`) {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}

func TestAReplayThatIsNotPossibleIsRefusedWithWhatIs(t *testing.T) {
	t.Parallel()
	f := newSimulating(t, 3, 20_000)
	for _, c := range []struct {
		rule, path string
		status     int
		says       string
	}{
		{"another policy", "orders/simulation?policy=best", http.StatusBadRequest, "allowed are fixed, keda"},
		{"a time that is none", "orders/simulation?since=yesterday", http.StatusBadRequest, "since is"},
		{"too much work", "orders/simulation", http.StatusBadRequest, "feedscale simulate --trace history:orders"},
		{"nothing recorded", "orders/simulation?since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z", http.StatusBadRequest, "record a longer time"},
		{"a group", "workers/simulation", http.StatusBadRequest, "workers is a group"},
		{"nobody", "nobody/simulation", http.StatusNotFound, "nobody"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			wantProblem(t, f.ask(t, http.MethodGet, "/api/processors/"+c.path), c.status, c.says)
		})
	}
}

func TestWithoutPoliciesNothingIsReplayed(t *testing.T) {
	t.Parallel()
	f := newFunction(t, "orders")
	w := f.mux
	if _, pattern := w.Handler(request(t, "/api/processors/orders/simulation")); pattern != "" {
		t.Errorf("it is %s", pattern)
	}
}

func request(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	testworld.Must(t, err)
	return r
}
