package app_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// served is an app that answers HTTP, in a shop whose clock only the test moves.
type served struct {
	*testworld.Shop
	*app.Host
	clock *testworld.Clock
	file  string // of the state
}

// serve starts it. fields are more of the processor orders, which the tick of every minute polls.
func serve(t *testing.T, fields string) served {
	t.Helper()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	file := filepath.Join(t.TempDir(), "feedscale.db")
	c, o := configured(t, w, clock, file, fields)
	h, err := app.Listen(c, o)
	testworld.Must(t, err)
	serving(t, h)
	return served{w, h, clock, file}
}

// serving has an app answer until the test ends.
func serving(t *testing.T, h *app.Host) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- h.Serve(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		testworld.Must(t, <-ended)
		h.Close()
	})
}

func configured(t *testing.T, w *testworld.Shop, clock *testworld.Clock, file, fields string) (config.Config, app.Options) {
	t.Helper()
	settings := w.Settings()
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	settings["FEEDSCALE_STATE"] = "bolt:" + file
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "0 * * * * *"
	settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "}]}", fields+"}]}", 1)
	c, err := config.Read(config.Input{Environ: testworld.Environ(settings)})
	testworld.Must(t, err)
	return c, app.Options{Log: slog.New(slog.DiscardHandler), EventLines: io.Discard, Version: "v1.2.3", Now: clock.Now}
}

// opened is an app over its state.
func opened(t *testing.T, c config.Config, o app.Options, readOnly bool) *app.App {
	t.Helper()
	store, err := connect.New(c.Settings).Store(readOnly)
	testworld.Must(t, err)
	a, err := app.New(c, o, store)
	testworld.Must(t, err)
	return a
}

// answer is what HTTP answers.
type answer struct {
	status            int
	contentType, body string
}

func (s served) get(t *testing.T, path string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
	testworld.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	testworld.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testworld.Must(t, err)
	return answer{response.StatusCode, response.Header.Get("Content-Type"), string(body)}
}

// TestAnAnswerIsTooOldAfterThreePollsOfItsOwn moves the clock and polls no more: an answer is given up
// at the tick at which the processor's own schedule is due for the third time.
func TestAnAnswerIsTooOldAfterThreePollsOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, fields string
		orders       int           // that are pending
		until        time.Duration // since the poll at noon
	}{
		{"without a schedule every tick is one", "", 5, 3 * time.Minute},
		{"its own schedule counts", ", schedule: '0 */5 * * * *'", 5, 15 * time.Minute},
		{"a schedule between two ticks counts from the tick after it", ", schedule: '30 * * * * *'", 5, 3 * time.Minute},
		{"of a processor that has nothing to do, the idle one counts", ", idleSchedule: '0 */20 * * * *'", 0, time.Hour},
		{"of one that has something to do, it does not", ", idleSchedule: '0 */20 * * * *'", 5, 3 * time.Minute},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.fields)
			s.Write(testworld.Orders, c.orders)
			if _, err := s.Tick(t.Context(), poller.Mode{}); err != nil {
				t.Fatal(err)
			}
			s.clock.Advance(c.until)
			if got := s.get(t, "/api/processors/orders"); got.status != http.StatusOK {
				t.Errorf("after %s: %+v", c.until, got)
			}
			s.clock.Advance(time.Second)
			if got := s.get(t, "/api/processors/orders"); got.status != http.StatusServiceUnavailable || got.contentType != "application/problem+json" ||
				!strings.Contains(got.body, "no decision on processor orders holds: it was last polled at 2026-03-01 12:00 UTC, more than three of its poll intervals ago") {
				t.Errorf("after a second more: %+v", got)
			}
		})
	}
}

func TestAPathThatIsNotThereIsAProblemDocumentThatNamesThoseThatAre(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for _, path := range []string{"/api/", "/api/nowhere", "/api/processors/orders/lag"} {
		got := s.get(t, path)
		document := testworld.Decode[map[string]any](t, []byte(got.body))
		if got.status != http.StatusNotFound || got.contentType != "application/problem+json" || document["instance"] != path ||
			document["detail"] != "there is no such path; allowed are /api/processors, /api/processors/NAME, /api/report, /api/metrics and /api/dashboard" {
			t.Errorf("GET %s: %+v", path, got)
		}
	}
}

func TestTheHostsPingAndTheFunctionsAreAnswered(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	if _, err := s.Tick(t.Context(), poller.Mode{}); err != nil {
		t.Fatal(err)
	}
	for path, shows := range map[string]string{
		"/": "feedscale\n", "/api/processors": `"name":"orders"`, "/api/metrics": `version="v1.2.3"`, "/api/dashboard": "<title>feedscale</title>",
		"/api/processors/orders/history?since=2026-03-01T00:00:00Z&until=2026-03-02T00:00:00Z": `"time":"2026-03-01T12:00:00Z"`,
	} {
		if got := s.get(t, path); got.status != http.StatusOK || !strings.Contains(got.body, shows) {
			t.Errorf("GET %s shows no %s: %+v", path, shows, got)
		}
	}
}

// TestAHistoryIsReplayedByRunAndNotUnderAFunctionsHost: a replay uses the CPU of the function app, so
// no function.json declares the path.
func TestAHistoryIsReplayedByRunAndNotUnderAFunctionsHost(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	if _, err := s.Tick(t.Context(), poller.Mode{}); err != nil {
		t.Fatal(err)
	}
	for policy, says := range map[string]string{"own": "has an arrival rate", "default": "has an arrival rate", "keda": "has an arrival rate", "best": "allowed are own, default, keda"} {
		if got := s.get(t, "/api/processors/orders/simulation?since=2026-03-01T00:00:00Z&until=2026-03-02T00:00:00Z&policy="+policy); got.status != http.StatusBadRequest || !strings.Contains(got.body, says) {
			t.Errorf("%s after one poll: %+v", policy, got)
		}
	}
	c, o := configured(t, s.Shop, s.clock, filepath.Join(t.TempDir(), "behind.db"), "")
	o.BehindHost = true
	h, err := app.Listen(c, o)
	testworld.Must(t, err)
	serving(t, h)
	behind := served{s.Shop, h, s.clock, ""}
	if got := behind.get(t, "/api/processors/orders/simulation"); got.status != http.StatusNotFound || !strings.Contains(got.body, "there is no such path") {
		t.Errorf("under a Functions host: %+v", got)
	}
}

// TestMetricsArePushedWhereOpenTelemetrysVariablesAskForIt: the last push is at the end.
func TestMetricsArePushedWhereOpenTelemetrysVariablesAskForIt(t *testing.T) {
	pushes := make(chan []byte, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testworld.Must(t, err)
		pushes <- body
	}))
	defer collector.Close()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), "")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	h, err := app.Listen(c, o)
	testworld.Must(t, err)
	defer h.Close()
	ended, end := context.WithCancel(t.Context())
	testworld.Must(t, h.Serve(ended, func(ctx context.Context) error {
		_, err := h.Tick(ctx, poller.Mode{})
		end()
		return err
	}))
	var pushed metrics.MetricsData
	testworld.Must(t, proto.Unmarshal(<-pushes, &pushed))
	for _, m := range pushed.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		if m.Name == "feedscale_processor_desired_replicas" && m.GetGauge().DataPoints[0].Attributes[0].Value.GetStringValue() == "orders" {
			return
		}
	}
	t.Errorf("the decision was not pushed: %v", &pushed)
}

func TestAnAddressThatIsTakenLeavesTheStateAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	file := filepath.Join(t.TempDir(), "other.db")
	c, o := configured(t, s.Shop, s.clock, file, "")
	c.Settings.Listen = strings.TrimPrefix(s.URL(), "http://")
	if _, err := app.Listen(c, o); err == nil || !strings.Contains(err.Error(), "set FEEDSCALE_LISTEN to another address") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the state file: %v", err)
	}
}

func TestAStateThatCannotBeOpenedFreesTheAddress(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	c, o := configured(t, s.Shop, s.clock, s.file, "") // which s has open
	c.Settings.Listen = testworld.FreeAddress(t)
	if _, err := app.Listen(c, o); err == nil || !strings.Contains(err.Error(), "another process has the state file open") {
		t.Errorf("got %v", err)
	}
	again, err := net.Listen("tcp", c.Settings.Listen)
	testworld.Must(t, err)
	testworld.Must(t, again.Close())
}

func TestCloseReleasesTheStateAndSaysNothingWhereAllWasClosed(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	file := filepath.Join(t.TempDir(), "feedscale.db")
	c, o := configured(t, w, clock, file, "")
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	opened(t, c, o, false).Close()
	store, err := boltstore.Open(file)
	testworld.Must(t, err)
	testworld.Must(t, store.Close())
	if log.Len() > 0 {
		t.Errorf("it logged %s", log.String())
	}
}
