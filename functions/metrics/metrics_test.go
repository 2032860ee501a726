package metrics_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/functions/metrics"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

var polledAt = time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC)

// target is a Handler over a state file, and what it logged.
type target struct {
	*metrics.Handler
	store *countingStore
	mux   *http.ServeMux
	log   *bytes.Buffer
	clock *testworld.Clock
}

// countingStore counts what is loaded of a real store, and can refuse to load
// one processor.
type countingStore struct {
	*boltstore.Store
	loads  atomic.Int64
	broken string
}

func (s *countingStore) Load(ctx context.Context, processor string) (state.Entry, error) {
	s.loads.Add(1)
	if processor == s.broken {
		return state.Entry{}, errors.New("state file: load of processor " + processor + ": not a whole record")
	}
	return s.Store.Load(ctx, processor)
}

func newTarget(t *testing.T, processors ...string) *target {
	t.Helper()
	return newTargetOf(t, &overview.Overview{Processors: subjects(processors...)})
}

// subjects are polled every minute.
func subjects(names ...string) (all []overview.Subject) {
	for _, name := range names {
		all = append(all, overview.Subject{Name: name, Next: func(_ state.State, t time.Time) time.Time { return t.Add(time.Minute) }})
	}
	return all
}

// newTargetOf is one that shows what an overview says.
func newTargetOf(t *testing.T, o *overview.Overview) *target {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "state.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { _ = store.Close() })
	g := &target{store: &countingStore{Store: store}, mux: http.NewServeMux(), log: new(bytes.Buffer), clock: testworld.NewClock(polledAt.Add(time.Minute))}
	o.Store, o.Now, o.Log = g.store, g.clock.Now, slog.New(slog.NewJSONHandler(g.log, nil))
	g.Handler = metrics.New(o, "v1.2.3")
	g.Register(g.mux)
	return g
}

func (g *target) commit(t *testing.T, s state.State, event *state.Event) {
	t.Helper()
	testworld.Must(t, g.store.Commit(t.Context(), "", s, event))
}

// text is one scrape.
func (g *target) text(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	g.mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, metrics.Route, nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v\n%s", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

// scrape reads a scrape as Prometheus does: value by series, as `name{label="value"}`.
func (g *target) scrape(t *testing.T) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(g.text(t)))
	testworld.Must(t, err)
	found := make(map[string]float64)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			series := name
			if len(labels) > 0 {
				series += "{" + strings.Join(labels, ",") + "}"
			}
			found[series] = value(family.GetType(), m)
		}
	}
	return found
}

// value is the number of a series; of a histogram, how much it has seen.
func value(kind dto.MetricType, m *dto.Metric) float64 {
	switch kind {
	case dto.MetricType_COUNTER:
		return m.GetCounter().GetValue()
	case dto.MetricType_HISTOGRAM:
		return m.GetHistogram().GetSampleSum()
	default:
		return m.GetGauge().GetValue()
	}
}

// want compares single series; want -1 is none.
func want(t *testing.T, found, wanted map[string]float64) {
	t.Helper()
	for series, want := range wanted {
		got, ok := found[series]
		if !ok {
			got = absent
		}
		if got != want {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
}

const absent = -1

func ptr[T any](v T) *T { return &v }

// lagging is a State in which everything is known.
func lagging(name string) state.State {
	return state.State{
		Processor: name, AttemptedAt: polledAt, PolledAt: polledAt, Sequence: 7,
		Lag: changefeed.ProcessorLag{Time: polledAt, Charge: 12.34, Requests: 5, Partitions: []changefeed.Partition{
			{Lease: "0", Lag: ptr(int64(400)), Age: ptr(int64(34)), Status: changefeed.StatusStalled},
			{Lease: "1", Lag: ptr(int64(12)), Age: ptr(int64(2)), Status: changefeed.StatusLagging},
			{Lease: "2", Lag: ptr(int64(0)), Status: changefeed.StatusOK},
		}},
		Decision: &scaling.Decision{Time: polledAt, Replicas: 5, Direction: scaling.Out, Active: true, MetricValue: 300},
		Memory:   scaling.Memory{Arrival: ptr(2.0), DrainPerReplica: 10.7},
		Paused:   true,
	}
}

func TestASeriesForEverythingThatIsKnown(t *testing.T) {
	t.Parallel()
	g := newTarget(t, "orders")
	g.commit(t, lagging("orders"), &state.Event{Processor: "orders", Sequence: 7, Body: []byte("{}")})
	want(t, g.scrape(t), map[string]float64{
		`feedscale_state_readable`:                                                     1,
		`feedscale_processor_lag{processor="orders"}`:                                  412,
		`feedscale_processor_change_age_seconds{processor="orders"}`:                   34,
		`feedscale_processor_partitions{processor="orders"}`:                           3,
		`feedscale_processor_partitions_with_lag{processor="orders"}`:                  2,
		`feedscale_processor_complete{processor="orders"}`:                             1,
		`feedscale_processor_desired_replicas{processor="orders"}`:                     5,
		`feedscale_processor_metric_value{processor="orders"}`:                         300,
		`feedscale_processor_active{processor="orders"}`:                               1,
		`feedscale_processor_paused{processor="orders"}`:                               1,
		`feedscale_processor_arrival_per_second{processor="orders"}`:                   2,
		`feedscale_processor_drain_per_replica_per_second{processor="orders"}`:         10.7,
		`feedscale_processor_catch_up_seconds{processor="orders"}`:                     -1, // absent: a partition is stalled
		`feedscale_processor_last_poll_timestamp_seconds{processor="orders"}`:          1767323045.5,
		`feedscale_processor_last_measured_timestamp_seconds{processor="orders"}`:      1767323045.5,
		`feedscale_processor_failed_polls{processor="orders"}`:                         0,
		`feedscale_processor_poll_requests{processor="orders"}`:                        5,
		`feedscale_processor_poll_request_charge{processor="orders"}`:                  12.34,
		`feedscale_processor_events_total{processor="orders"}`:                         7,
		`feedscale_outbox_events{processor="orders"}`:                                  1,
		`feedscale_processor_status{processor="orders",status="unknown"}`:              0,
		`feedscale_processor_status{processor="orders",status="bootstrap"}`:            0,
		`feedscale_processor_status{processor="orders",status="splitting"}`:            0,
		`feedscale_processor_status{processor="orders",status="stalled"}`:              1,
		`feedscale_processor_status{processor="orders",status="unclaimed"}`:            0,
		`feedscale_processor_status{processor="orders",status="uncheckpointed"}`:       0,
		`feedscale_processor_status{processor="orders",status="lagging"}`:              0,
		`feedscale_processor_status{processor="orders",status="ok"}`:                   0,
		`feedscale_polls_total{processor="orders",result="complete"}`:                  0, // none by this process
		`feedscale_events_unpublished`:                                                 absent,
		`feedscale_build_info{goversion="` + runtime.Version() + `",version="v1.2.3"}`: 1,
		`go_info{version="` + runtime.Version() + `"}`:                                 1,
	})
}

func TestWhatIsUnknownHasNoSeries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		state func(s *state.State)
		known []string // of feedscale_processor_*, beside those that every processor has
	}{
		{"never polled", nil, nil},
		{"a failure without a decision", func(s *state.State) {
			s.PolledAt, s.Decision, s.Memory = time.Time{}, nil, scaling.Memory{Failures: 2}
			s.Lag = changefeed.ProcessorLag{Time: polledAt, Error: "the identity may not read it"}
		}, []string{"paused", "failed_polls", "last_poll_timestamp_seconds", "poll_requests", "poll_request_charge"}},
		{"a failure that holds the last decision", func(s *state.State) {
			s.Lag = changefeed.ProcessorLag{Time: polledAt, Error: "the identity may not read it"}
			s.Memory = scaling.Memory{Failures: 1}
		}, []string{
			"paused", "failed_polls", "last_poll_timestamp_seconds", "last_measured_timestamp_seconds", "poll_requests", "poll_request_charge",
			"desired_replicas", "active", "metric_value",
		}},
		{"no partition known of those that there are", func(s *state.State) {
			s.Lag.Partitions = []changefeed.Partition{{Lease: "0", Status: changefeed.StatusUnknown, Error: "it did not answer in time"}}
			s.Memory = scaling.Memory{}
		}, []string{
			"paused", "failed_polls", "last_poll_timestamp_seconds", "last_measured_timestamp_seconds", "poll_requests", "poll_request_charge",
			"desired_replicas", "active", "metric_value", "partitions",
		}},
		{"nothing pending, and no rate yet", func(s *state.State) {
			s.Lag.Partitions = []changefeed.Partition{{Lease: "0", Lag: ptr(int64(0)), Status: changefeed.StatusOK}}
			s.Memory = scaling.Memory{}
		}, []string{
			"paused", "failed_polls", "last_poll_timestamp_seconds", "last_measured_timestamp_seconds", "poll_requests", "poll_request_charge",
			"desired_replicas", "active", "metric_value", "partitions", "partitions_with_lag", "lag",
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			g := newTarget(t, "orders")
			if c.state != nil {
				s := lagging("orders")
				c.state(&s)
				g.commit(t, s, nil)
			}
			var got []string
			for series := range g.scrape(t) {
				name, ok := strings.CutPrefix(series, "feedscale_processor_")
				if ok && !strings.HasPrefix(name, "status{") {
					got = append(got, strings.TrimSuffix(name, `{processor="orders"}`))
				}
			}
			wanted := append([]string{"complete", "events_total"}, c.known...)
			slices.Sort(got)
			slices.Sort(wanted)
			if !slices.Equal(got, wanted) {
				t.Errorf("got  %q\nwant %q", got, wanted)
			}
		})
	}
}

func TestAGroupHasSeries(t *testing.T) {
	t.Parallel()
	g := newTargetOf(t, &overview.Overview{Groups: subjects("shop-workers", "idle")})
	g.commit(t, state.State{
		Processor: "shop-workers", AttemptedAt: polledAt, Decision: &scaling.Decision{Replicas: 5, Active: true},
		Members: []state.Member{
			{Processor: "orders", Replicas: ptr(5), Totals: changefeed.Totals{Lag: ptr(int64(412)), Age: ptr(int64(34)), Complete: true, Status: changefeed.StatusLagging}},
			{Processor: "audit", Totals: changefeed.Totals{Status: changefeed.StatusUnknown}},
		},
	}, nil)
	want(t, g.scrape(t), map[string]float64{
		`feedscale_group_lag{group="shop-workers"}`:                412,
		`feedscale_group_change_age_seconds{group="shop-workers"}`: 34,
		`feedscale_group_complete{group="shop-workers"}`:           0,
		`feedscale_group_desired_replicas{group="shop-workers"}`:   5,
		`feedscale_group_active{group="shop-workers"}`:             1,
		`feedscale_group_members{group="shop-workers"}`:            2,
		`feedscale_group_complete{group="idle"}`:                   absent, // never decided
		`feedscale_group_members{group="idle"}`:                    absent,
		`feedscale_processor_lag{processor="shop-workers"}`:        absent,
	})
}

func TestAContainerWhoseThroughputFollowsHasSeries(t *testing.T) {
	t.Parallel()
	g := newTarget(t, "orders")
	s := lagging("orders")
	s.Containers = []state.Container{
		{Account: "shop.example", Database: "shop", Container: "orders", Max: 4000, Provisioned: 1000, Found: 400, Decision: &scaling.ThroughputDecision{RUPerSecond: 2000, Needed: ptr(5000), AtLimit: true}},
		{Account: "shop.example", Database: "shop", Container: "leases", Max: 4000},
	}
	g.commit(t, s, nil)
	const orders, leases = `{account="shop.example",container="shop/orders",processor="orders"}`, `{account="shop.example",container="shop/leases",processor="orders"}`
	want(t, g.scrape(t), map[string]float64{
		`feedscale_throughput_provisioned_request_units_per_second` + orders: 1000,
		`feedscale_throughput_desired_request_units_per_second` + orders:     2000,
		`feedscale_throughput_needed_request_units_per_second` + orders:      5000,
		`feedscale_throughput_found_request_units_per_second` + orders:       400,
		`feedscale_throughput_at_limit` + orders:                             1,
		`feedscale_throughput_provisioned_request_units_per_second` + leases: absent, // never read
		`feedscale_throughput_desired_request_units_per_second` + leases:     absent,
		`feedscale_throughput_at_limit` + leases:                             0,
	})
}

func TestPartitionsHaveSeriesOnRequestAlone(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		g := newTargetOf(t, &overview.Overview{Processors: subjects("orders"), Partitions: asked})
		s := lagging("orders")
		s.Lag.Partitions[1] = changefeed.Partition{Lease: "1", Status: changefeed.StatusUnknown, Error: "it did not answer in time"}
		g.commit(t, s, nil)
		wanted := map[string]float64{
			`feedscale_partition_lag{lease="0",processor="orders"}`:                     400,
			`feedscale_partition_change_age_seconds{lease="0",processor="orders"}`:      34,
			`feedscale_partition_status{lease="0",processor="orders",status="stalled"}`: 1,
			`feedscale_partition_status{lease="1",processor="orders",status="unknown"}`: 1,
			`feedscale_partition_lag{lease="2",processor="orders"}`:                     0,
			`feedscale_partition_lag{lease="1",processor="orders"}`:                     absent, // unknown
			`feedscale_partition_change_age_seconds{lease="2",processor="orders"}`:      absent, // nothing is pending
			`feedscale_partition_status{lease="0",processor="orders",status="lagging"}`: absent,
		}
		if !asked {
			for series := range wanted {
				wanted[series] = absent
			}
		}
		want(t, g.scrape(t), wanted)
	}
}

func TestSignalQueuesAreCounted(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	g.ObserveSignals("orders-signals", 5, nil)
	g.ObserveSignals("orders-signals", 7, errors.New("the queue does not exist"))
	g.ObserveSignals("audit-signals", 1, errors.New("the queue does not exist"))
	want(t, g.scrape(t), map[string]float64{
		`feedscale_signal_queue_messages{queue="orders-signals"}`:       5,
		`feedscale_signal_queue_failures_total{queue="orders-signals"}`: 1,
		`feedscale_signal_queue_messages{queue="audit-signals"}`:        absent, // nobody knows
	})
}

func TestTicksAreCounted(t *testing.T) {
	t.Parallel()
	g := newTarget(t, "orders", "audit")
	incomplete := lagging("orders")
	incomplete.Lag.Partitions[2] = changefeed.Partition{Lease: "2", Status: changefeed.StatusUnknown, Error: "it did not answer in time"}
	incomplete.Decision.Direction = scaling.None
	failed := state.State{Processor: "audit", AttemptedAt: polledAt, Lag: changefeed.ProcessorLag{Error: "no", Charge: 1, Requests: 1}}

	for _, polled := range []state.State{lagging("orders"), failed, incomplete} {
		g.ObservePoll(polled)
	}
	g.Observe(report.Tick{Uncommitted: 1, Unpublished: 3}, 1500*time.Millisecond, true, nil)
	g.Observe(report.Tick{Unpublished: 2}, 500*time.Millisecond, false, errors.New("nothing could be committed"))
	want(t, g.scrape(t), map[string]float64{
		`feedscale_ticks_total{result="ok"}`:                              1,
		`feedscale_ticks_total{result="failed"}`:                          1,
		`feedscale_tick_duration_seconds`:                                 2,
		`feedscale_tick_overruns_total`:                                   1,
		`feedscale_polls_total{processor="orders",result="complete"}`:     1,
		`feedscale_polls_total{processor="orders",result="incomplete"}`:   1,
		`feedscale_polls_total{processor="orders",result="failed"}`:       0,
		`feedscale_polls_total{processor="audit",result="complete"}`:      0,
		`feedscale_polls_total{processor="audit",result="failed"}`:        1,
		`feedscale_decisions_total{direction="out",processor="orders"}`:   1,
		`feedscale_decisions_total{direction="none",processor="orders"}`:  1,
		`feedscale_decisions_total{direction="in",processor="orders"}`:    0,
		`feedscale_decisions_total{direction="none",processor="audit"}`:   0, // nothing was decided
		`feedscale_requests_total{processor="orders"}`:                    10,
		`feedscale_requests_total{processor="audit"}`:                     1,
		`feedscale_request_charge_total{processor="orders"}`:              24.68,
		`feedscale_commit_failures_total`:                                 1,
		`feedscale_events_unpublished`:                                    2,
		`feedscale_processor_lag{processor="orders"}`:                     absent, // what is observed is not what is stored
		`feedscale_processor_status{processor="orders",status="unknown"}`: 1,
	})
}

func TestDeliveriesAreCounted(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	g.Observe(report.Tick{Published: 2}, time.Second, false, nil)
	g.Observe(report.Tick{PublishErrors: 1}, time.Second, false, nil)
	want(t, g.scrape(t), map[string]float64{`feedscale_events_published_total`: 2, `feedscale_event_publish_failures_total`: 1})
}

// everything is a Handler with each kind of series that there is.
func everything(t *testing.T) *target {
	t.Helper()
	g := newTargetOf(t, &overview.Overview{Processors: subjects("orders"), Groups: subjects("shop-workers"), Partitions: true})
	s := lagging("orders")
	s.Containers = []state.Container{{Account: "shop.example", Database: "shop", Max: 4000, Provisioned: 1000, Found: 400, Decision: &scaling.ThroughputDecision{Needed: ptr(5000)}}}
	g.commit(t, s, nil)
	g.commit(t, state.State{
		Processor: "shop-workers", AttemptedAt: polledAt, Decision: &scaling.Decision{Replicas: 5},
		Members: []state.Member{{Processor: "orders", Totals: changefeed.Totals{Lag: ptr(int64(412)), Age: ptr(int64(34))}}},
	}, nil)
	g.Observe(report.Tick{}, time.Second, false, nil)
	g.ObserveSignals("orders-signals", 5, nil)
	return g
}

func TestNamesAndUnitsFollowTheConventions(t *testing.T) {
	t.Parallel()
	g := everything(t)
	problems, err := promlint.New(strings.NewReader(g.text(t))).Lint()
	testworld.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestAStoreThatCannotBeReadLeavesTheSeriesOfTheProcess(t *testing.T) {
	t.Parallel()
	g := newTarget(t, "orders", "audit")
	g.commit(t, lagging("orders"), nil)
	want(t, g.scrape(t), map[string]float64{`feedscale_state_readable`: 1, `feedscale_processor_lag{processor="orders"}`: 412})
	testworld.Must(t, g.store.Close())
	g.Observe(report.Tick{}, time.Second, false, nil)
	for range 3 {
		g.clock.Advance(time.Minute)
		found := g.scrape(t)
		want(t, found, map[string]float64{`feedscale_state_readable`: 0, `feedscale_ticks_total{result="ok"}`: 1})
		for series := range found {
			if strings.HasPrefix(series, "feedscale_processor_") || strings.HasPrefix(series, "feedscale_outbox_") {
				t.Errorf("there is %s", series)
			}
		}
	}
	if n := strings.Count(g.log.String(), "cannot be read"); n != 1 {
		t.Errorf("it was logged %d times, want once:\n%s", n, g.log)
	}
}

func TestOneStateThatCannotBeReadTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	g := newTarget(t, "orders", "audit")
	g.commit(t, lagging("orders"), nil)
	g.store.broken = "audit"
	want(t, g.scrape(t), map[string]float64{
		`feedscale_state_readable`:                    0,
		`feedscale_processor_lag{processor="orders"}`: 412,
		`feedscale_outbox_events{processor="audit"}`:  absent,
	})
	g.store.broken = ""
	g.clock.Advance(time.Minute)
	want(t, g.scrape(t), map[string]float64{`feedscale_state_readable`: 1, `feedscale_outbox_events{processor="audit"}`: 0})
	for _, message := range []string{`"unread":1`, "not a whole record", "every processor again"} {
		if !strings.Contains(g.log.String(), message) {
			t.Errorf("%q was not logged:\n%s", message, g.log)
		}
	}
}

func TestOnlyGETIsAllowed(t *testing.T) {
	t.Parallel()
	g := newTarget(t)
	w := httptest.NewRecorder()
	g.mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, metrics.Route, nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}
