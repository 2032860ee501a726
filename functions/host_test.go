package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// world is the Azure of a function app under test: a shop, and a table for the state.
type world struct {
	*testworld.Shop
	t     *testing.T
	table string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{Shop: testworld.NewShop(t, testworld.Options{}), t: t, table: newTable()}
}

// newTable returns a table name that no other test uses.
func newTable() string { return fmt.Sprintf("app%d", time.Now().UnixNano()) }

// settings are the app settings of a function app in this world.
func (w *world) settings() map[string]string {
	w.t.Helper()
	s := w.Settings()
	s["AzureWebJobsStorage"] = made(w.t, startTables).ConnectionString()
	s["FEEDSCALE_STATE"] = "table:AzureWebJobsStorage/" + w.table
	s["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
	return s
}

func (w *world) host(settings map[string]string) *functionshost.Host {
	w.t.Helper()
	return startHost(w.t, functionshost.Options{Settings: settings})
}

// startHost starts the staged app, or the app in the options, with only the settings in its
// environment.
func startHost(t *testing.T, o functionshost.Options) *functionshost.Host {
	t.Helper()
	if o.Root == "" {
		o.Root = made(t, stage)
	}
	o.Environment = []string{"HOME=" + t.TempDir()}
	h, err := functionshost.Start(t.Context(), o)
	testworld.Must(t, err)
	t.Cleanup(h.Close)
	return h
}

func (w *world) store() *tablestore.Store {
	w.t.Helper()
	store, err := tablestore.OpenWithConnectionString(made(w.t, startTables).ConnectionString(), w.table, azcore.ClientOptions{Transport: bounded.NewClient()})
	testworld.Must(w.t, err)
	return store
}

func tick(t *testing.T, h *functionshost.Host) {
	t.Helper()
	if _, err := h.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
		t.Fatalf("%v\n%v", err, h.Logs())
	}
}

// epochOfID matches the epoch in the id of an event.
var epochOfID = regexp.MustCompile(`-\d{10}-`)

// wantEvents compares the events on the queue, as "id from->to active", without the epoch.
func (w *world) wantEvents(want ...string) {
	w.t.Helper()
	var got []string
	for _, m := range w.Namespace.Messages(testworld.Queue) {
		e, err := events.Decode(m.Body)
		testworld.Must(w.t, err)
		if m.ID != e.ID() || m.SessionID != "orders" || m.Subject != events.Type || m.Properties["sequence"] != e.Sequence {
			w.t.Errorf("message %+v is not that of event %s", m, e.ID())
		}
		from := "null"
		if e.PreviousReplicas != nil {
			from = fmt.Sprint(*e.PreviousReplicas)
		}
		got = append(got, fmt.Sprintf("%s %s->%d %v", epochOfID.ReplaceAllString(m.ID, "-"), from, e.DesiredReplicas, e.Active))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		w.t.Errorf("events %q, want %q", got, want)
	}
}

// get sends a GET to the host's front and returns the status and the JSON of the answer.
func get(t *testing.T, h *functionshost.Host, path, key string) (int, string, map[string]any) {
	t.Helper()
	status, header, body := ask(t, h, path, key)
	var object map[string]any
	if len(body) > 0 && status != http.StatusUnauthorized {
		if err := json.Unmarshal(body, &object); err != nil {
			t.Errorf("GET %s: %v in %s", path, err, body)
		}
	}
	return status, header.Get("Content-Type"), object
}

// ask sends a GET, with a key if there is one.
func ask(t *testing.T, h *functionshost.Host, path, key string) (int, http.Header, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL()+path, nil)
	testworld.Must(t, err)
	if key != "" {
		request.Header.Set("x-functions-key", key)
	}
	response, err := http.DefaultClient.Do(request)
	testworld.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testworld.Must(t, err)
	return response.StatusCode, response.Header, body
}

func TestABacklogComesAndGoesUnderTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.host(w.settings())
	w.Write(testworld.Orders, 5)
	tick(t, h)
	const first = "orders-000000000001 null->1 true"
	w.wantEvents(first)
	record, err := storetest.Load(t.Context(), w.store(), "orders")
	testworld.Must(t, err)
	if s := record.State; s.Sequence != 1 || *s.Lag.Lag() != 5 || len(record.Outbox) != 0 {
		t.Errorf("state %+v, %d events in the outbox", s, len(record.Outbox))
	}
	tick(t, h)
	w.wantEvents(first)
	w.Checkpoint(5)
	tick(t, h)
	w.wantEvents(first, "orders-000000000002 1->1 false")
	for _, line := range h.Logs() {
		if line.Level == functionshost.Error || line.Level == functionshost.Warning {
			t.Errorf("the host logged %+v", line)
		}
	}
}

func TestABrokerThatWasDownGetsTheNewestEventOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	down := true
	var mu sync.Mutex
	w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		mu.Lock()
		defer mu.Unlock()
		if down {
			return &servicebusfake.Answer{Drop: true, Keep: true}
		}
		return nil
	})
	h := w.host(w.settings())
	w.Write(testworld.Orders, 5)
	tick(t, h)
	w.Checkpoint(5)
	tick(t, h)
	w.wantEvents()
	mu.Lock()
	down = false
	mu.Unlock()
	tick(t, h)
	w.wantEvents("orders-000000000002 1->1 false") // it has overtaken the first
}

func TestAKillBetweenCommitAndPublishLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		answer servicebusfake.Answer
		want   []string
	}{
		{"before the broker has the event, which the next one overtakes", servicebusfake.Answer{Delay: time.Hour}, []string{"orders-000000000002 1->1 false"}},
		{"behind the broker's acceptance, of which nobody hears", servicebusfake.Answer{LoseReply: true}, []string{"orders-000000000001 null->1 true", "orders-000000000002 1->1 false"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			sending := make(chan struct{}, 1)
			w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != servicebusfake.OpSend {
					return nil
				}
				sending <- struct{}{}
				return &c.answer // only once
			})
			h := w.host(w.settings())
			w.Write(testworld.Orders, 5)
			ticked := make(chan error, 1)
			go func() {
				_, err := h.Timer(context.WithoutCancel(t.Context()), "poll", functionshost.Tick{})
				ticked <- err
			}()
			<-sending
			if record, err := storetest.Load(t.Context(), w.store(), "orders"); err != nil || len(record.Outbox) != 1 {
				t.Fatalf("%d events in the outbox, %v; want the one that is being sent", len(record.Outbox), err)
			}
			h.Kill()
			if err := <-ticked; err == nil {
				t.Error("the invocation of a killed handler succeeded")
			}
			testworld.Must(t, h.Ready(t.Context()))
			w.Checkpoint(5)
			tick(t, h)
			w.wantEvents(c.want...)
			if record, err := storetest.Load(t.Context(), w.store(), "orders"); err != nil || len(record.Outbox) != 0 {
				t.Errorf("%d events in the outbox, %v", len(record.Outbox), err)
			}
		})
	}
}

func TestATickThatCommitsNothingFailsItsInvocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	settings["TABLES"] = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;TableEndpoint=http://127.0.0.1:1/a"
	settings["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
	h := w.host(settings)
	if _, err := h.Timer(t.Context(), "poll", functionshost.Tick{}); err == nil {
		t.Error("the invocation succeeded")
	}
	logged := func() bool {
		return slices.ContainsFunc(h.Logs(), func(l functionshost.LogLine) bool { return strings.Contains(l.Text, "the tick failed") })
	}
	testworld.Eventually(t, "a line in the log, since the host shows only a status", logged)
	for _, line := range h.Logs() {
		if strings.Contains(line.Text, "c2VjcmV0") {
			t.Errorf("a key in the log: %s", line.Text)
		}
	}
	w.wantEvents()
}

func TestWhatKEDAReads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "}]}", "}, {name: silent, connection: NOWHERE, databaseId: shop, containerId: silent}]}", 1)
	settings["NOWHERE"] = "AccountEndpoint=http://127.0.0.1:1/;AccountKey=c2VjcmV0;"
	h := w.host(settings)
	key := h.Key("processors")

	if status, _, _ := get(t, h, "/api/processors/orders", ""); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d, want 401", status)
	}
	status, contentType, problem := get(t, h, "/api/processors/orders", key)
	if status != http.StatusServiceUnavailable || contentType != "application/problem+json" || problem["status"] != float64(503) || problem["title"] == "" || problem["detail"] == "" {
		t.Errorf("never polled: %d %s %v, want a problem document with 503", status, contentType, problem)
	}
	if status, _, all := get(t, h, "/api/processors", key); status != 200 || len(all["processors"].([]any)) != 2 || all["time"] == nil {
		t.Errorf("never polled, all: %d %v", status, all)
	}

	w.Write(testworld.Orders, 25)
	tick(t, h)
	if status, _, history := get(t, h, "/api/processors/orders/history", h.Key("history")); status != 200 || history["processor"] != "orders" {
		t.Errorf("its history: %d %v", status, history)
	}
	status, contentType, orders := get(t, h, "/api/processors/orders", key)
	if status != http.StatusOK || contentType != "application/json" {
		t.Fatalf("%d %s %v", status, contentType, orders)
	}
	for field, want := range map[string]any{
		"name": "orders", "lag": 25.0, "metricValue": 10.0, "desiredReplicas": 1.0, "active": true, "complete": true,
		"status": "lagging", "sequence": 1.0, "paused": false, "error": nil, "partitionCount": 1.0, "partitionsWithLag": 1.0, "direction": "out",
	} {
		if got, ok := orders[field]; !ok || got != want {
			t.Errorf("%s: %v, want %v", field, got, want)
		}
	}
	if _, err := time.Parse(time.RFC3339, fmt.Sprint(orders["polledAt"])); err != nil {
		t.Errorf("polledAt: %v", err)
	}
	if status, _, problem := get(t, h, "/api/processors/silent", key); status != http.StatusServiceUnavailable || strings.Contains(fmt.Sprint(problem), "c2VjcmV0") {
		t.Errorf("failed without a fallback value: %d %v, want 503", status, problem)
	}
	if status, contentType, _ := get(t, h, "/api/processors/unknown", key); status != http.StatusNotFound || contentType != "application/problem+json" {
		t.Errorf("unknown: %d %s, want a problem document with 404", status, contentType)
	}
	_, _, all := get(t, h, "/api/processors", key)
	if first := all["processors"].([]any)[0].(map[string]any); !maps.EqualFunc(first, orders, func(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("in the list: %v\nalone: %v", first, orders)
	}

	// A failure with a held decision or a fallback is a 200 with its count.
	remove := w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.QueryDocuments {
			return &cosmosfake.Answer{Status: 403}
		}
		return nil
	})
	defer remove()
	tick(t, h)
	if status, _, orders := get(t, h, "/api/processors/orders", key); status != 200 || orders["metricValue"] != 10.0 || orders["lag"] != nil || orders["error"] == nil {
		t.Errorf("after a failure: %d %v", status, orders)
	}
}

// TestWhatKEDAsMetricsAPIScalerTakes reads an answer as KEDA does: the status must be 200, and a
// gjson path must lead to a number.
func TestWhatKEDAsMetricsAPIScalerTakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Write(testworld.Orders, 25)
	h := w.host(w.settings())
	key := h.Key("processors")
	scaler := func(path, location string) (float64, error) {
		status, _, body := ask(t, h, path, key)
		if status != http.StatusOK {
			return 0, fmt.Errorf("status %d", status)
		}
		value := gjson.GetBytes(body, location)
		if value.Type != gjson.Number {
			return 0, fmt.Errorf("%s is %s", location, value.Type)
		}
		return value.Num, nil
	}
	if value, err := scaler("/api/processors/orders", "metricValue"); err == nil {
		t.Errorf("before the first poll: %v, want the scaler's own fallback", value)
	}
	tick(t, h)
	for _, c := range []struct {
		path, location string
		want           float64
	}{
		{"/api/processors/orders", "metricValue", 10},
		{"/api/processors/orders", "desiredReplicas", 1},
		{"/api/processors/orders", "partitions.0.lag", 25},
		{"/api/processors", `processors.#(name=="orders").metricValue`, 10},
	} {
		if got, err := scaler(c.path, c.location); err != nil || got != c.want {
			t.Errorf("%s of %s: %v, %v, want %v", c.location, c.path, got, err, c.want)
		}
	}
	w.Checkpoint(25)
	tick(t, h)
	if got, err := scaler("/api/processors/orders", "metricValue"); err != nil || got != 0 {
		t.Errorf("caught up: %v, %v, want a 0 that is a number", got, err)
	}
}

func TestTheManualTriggerPolls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Write(testworld.Orders, 5)
	h := w.host(w.settings())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL()+"/admin/functions/poll", bytes.NewReader([]byte(`{"input":""}`)))
	testworld.Must(t, err)
	request.Header.Set("x-functions-key", h.MasterKey())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	testworld.Must(t, err)
	response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("status %d", response.StatusCode)
	}
	testworld.Eventually(t, "an event", func() bool { return len(w.Namespace.Messages(testworld.Queue)) > 0 })
	w.wantEvents("orders-000000000001 null->1 true")
}

func TestMetricsAndThePageForPeopleAreServedWithAKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Write(testworld.Orders, 5)
	h := w.host(w.settings())
	tick(t, h)
	for _, c := range []struct{ path, shows string }{
		{"/api/metrics", "feedscale_processor_lag{processor=\"orders\"} 5\n"},
		{"/api/metrics", "feedscale_events_published_total 1\n"},
		{"/api/dashboard", "<title>feedscale</title>"},
	} {
		if status, _, body := ask(t, h, c.path, h.MasterKey()); status != 200 || !strings.Contains(string(body), c.shows) {
			t.Errorf("GET %s: %d without %s:\n%s", c.path, status, c.shows, body)
		}
		if status, _, _ := ask(t, h, c.path, ""); status != 401 {
			t.Errorf("GET %s without a key: %d, want 401", c.path, status)
		}
	}
}
