package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// line is a log line of the handler.
type line struct {
	functionshost.LogLine
	fields map[string]any
}

// handlerLines returns the log lines of the handler, and fails if one is not JSON.
func handlerLines(t *testing.T, h *functionshost.Host) (all []line) {
	t.Helper()
	for _, l := range h.Logs() {
		if l.Category != functionshost.CategoryConsole {
			continue
		}
		read := line{LogLine: l}
		if err := json.Unmarshal([]byte(l.Text), &read.fields); err != nil {
			t.Errorf("%v in %s", err, l.Text)
			continue
		}
		all = append(all, read)
	}
	return all
}

// find returns the lines with a message.
func find(all []line, message string) (found []line) {
	for _, l := range all {
		if l.fields["msg"] == message {
			found = append(found, l)
		}
	}
	return found
}

// await waits for lines with a message, since the host reads the handler's output with a delay.
func await(t *testing.T, h *functionshost.Host, message string) (found []line) {
	t.Helper()
	testworld.Eventually(t, "the line "+message, func() bool {
		found = find(handlerLines(t, h), message)
		return len(found) > 0
	})
	return found
}

// severities are the host's, by the level of a line.
var severities = map[any]functionshost.Level{
	"INFO": functionshost.Information, "WARN": functionshost.Warning, "ERROR": functionshost.Error,
}

// TestWhatIsLoggedArrivesWithItsSeverityAndIsFoundByTheAlerts logs a line of each level, among them
// an error that quotes a warning. It then looks for what the queries of infra/kql match, from which
// infra/modules/alerts.bicep makes its rules.
func TestWhatIsLoggedArrivesWithItsSeverityAndIsFoundByTheAlerts(t *testing.T) {
	t.Parallel()
	app := newSlotted(t, "0 */5 * * * *", "0 */5 * * * *")
	app.options.Settings["FEEDSCALE_LOG_LEVEL"] = "info"
	app.Write("orders0", 5)
	leases := app.LeasesOf("", testworld.OrdersHost, "orders0")
	h := app.start(t)
	// Four polls make a stall if each can read the partition. On a busy machine one may not.
	for polls := 0; polls < 20 && len(find(handlerLines(t, h.Host), "a processor is stalled")) == 0; polls++ {
		app.Put(testworld.Leases, leases.DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{Owner: "worker", Continuation: leasefake.At(0), Updated: app.file.Now()}))
		h.tick(t, 0)
	}
	quotes := newWorld(t)
	settings := quotes.settings()
	settings["TABLES"] = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=c2VjcmV0;TableEndpoint=http://127.0.0.1:1/a"
	settings["FEEDSCALE_STATE"] = "table:TABLES/Warnings" // the error contains its name
	other := quotes.host(settings)
	if _, err := other.Timer(t.Context(), "poll", functionshost.Tick{}); err == nil {
		t.Error("a tick without the state succeeded")
	}
	await(t, other, "the tick failed")
	await(t, h.Host, "a processor is stalled")
	all := append(handlerLines(t, h.Host), handlerLines(t, other)...)
	seen := map[functionshost.Level]bool{}
	quoting := false
	for _, l := range all {
		want, ok := severities[l.fields["level"]]
		if !ok {
			continue // an event, which is printed to standard output here
		}
		if l.Level != want {
			t.Errorf("the host takes it for %s: %s", l.Level, l.Text)
		}
		seen[want] = true
		quoting = quoting || want == functionshost.Error && strings.Contains(strings.ToLower(fmt.Sprint(l.fields)), "warn")
	}
	if len(seen) != len(severities) || !quoting {
		t.Errorf("of the levels %v were logged, and an error that quotes a warning: %t", seen, quoting)
	}
	theQueriesFind(t, all)
}

// theQueriesFind checks that each query of infra/kql matches lines that were logged, and reads
// fields that they have.
func theQueriesFind(t *testing.T, all []line) {
	t.Helper()
	queries, err := filepath.Glob("../infra/kql/*.kql")
	testworld.Must(t, err)
	if len(queries) == 0 {
		t.Error("there are no queries")
	}
	for _, name := range queries {
		query, err := os.ReadFile(name)
		testworld.Must(t, err)
		parts := regexp.MustCompile(`(?s)message contains '([^']+)'(.*?)(?:message contains|$)`)
		looksFor := 0
		for rest := query; ; looksFor++ { // a query reads fields of the line that it named last
			part := parts.FindSubmatchIndex(rest)
			if part == nil {
				break
			}
			text, behind := rest[part[2]:part[3]], rest[part[4]:part[5]]
			rest = rest[part[5]:]
			found := slices.DeleteFunc(slices.Clone(all), func(l line) bool { return !strings.Contains(l.Text, string(text)) })
			if len(found) == 0 {
				t.Errorf("%s: no line has %s", name, text)
			}
			for _, l := range found {
				for _, field := range regexp.MustCompile(`\bline\.(\w+)`).FindAllSubmatch(behind, -1) {
					if _, ok := l.fields[string(field[1])]; !ok {
						t.Errorf("%s reads %s, which is not in %s", name, field[0], l.Text)
					}
				}
			}
		}
		if looksFor == 0 {
			t.Errorf("%s looks for no line", name)
		}
	}
}

// TestATickThatOverrunsIsSaidOnceWithWhomItWaitedFor has a tick that is longer than its schedule
// allows, so the host begins the next at once.
func TestATickThatOverrunsIsSaidOnceWithWhomItWaitedFor(t *testing.T) {
	t.Parallel()
	const wait = 2500 * time.Millisecond
	for _, c := range []struct {
		who  string
		slow func(w *world, tables *front)
	}{
		{"account 127.0.0.1", func(w *world, _ *front) {
			w.Account.Control(cosmosfake.Times(1, cosmosfake.QueryDocuments, cosmosfake.Answer{Delay: wait}))
		}},
		{"the queue", func(w *world, _ *front) {
			w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
				if r.Op != servicebusfake.OpSend {
					return nil
				}
				return &servicebusfake.Answer{Delay: wait}
			})
		}},
		{"the state", func(_ *world, tables *front) {
			var once sync.Once
			tables.control(func(r *http.Request) {
				if r.Method != http.MethodGet {
					once.Do(func() {
						select {
						case <-time.After(wait):
						case <-r.Context().Done():
						}
					})
				}
			})
		}},
	} {
		t.Run(c.who, func(t *testing.T) {
			t.Parallel()
			w, tables := newWorld(t), newFront(t)
			settings := w.settings()
			settings["AzureWebJobsStorage"] = tables.connection
			settings["FEEDSCALE_TIMER_SCHEDULE"] = "*/2 * * * * *"
			c.slow(w, tables)
			h := startHost(t, functionshost.Options{Settings: settings, Storage: &functionshost.Storage{}})
			var overruns []line
			testworld.Eventually(t, "a tick after the overrun", func() bool {
				overruns = find(handlerLines(t, h), "a tick took longer than its schedule allows")
				return len(overruns) > 0 && logged(h, "Executed 'Functions.poll'") > 1
			})
			first := overruns[0].fields
			took, err := time.ParseDuration(fmt.Sprint(first["took"]))
			longest, longestErr := time.ParseDuration(fmt.Sprint(first["longestTook"]))
			if err != nil || longestErr != nil || took < wait || longest < wait || longest > took || first["longest"] != c.who ||
				first["schedule"] != "*/2 * * * * *" || overruns[0].Level != functionshost.Warning {
				t.Errorf("it says %s, as %s", overruns[0].Text, overruns[0].Level)
			}
			_, _, body := ask(t, h, "/api/metrics", h.MasterKey())
			if said := len(find(handlerLines(t, h), "a tick took longer than its schedule allows")); !strings.Contains(string(body), fmt.Sprintf("feedscale_tick_overruns_total %d\n", said)) {
				t.Errorf("%d overruns were said, and counted:\n%s", said, body)
			}
		})
	}
}

// TestNoTickThatStartsLateAndNoShardIsAnOverrun has a tick of 2 s that starts 1 s before the next
// slot, and a shard longer than the time between two slots. Neither makes the timer late.
func TestNoTickThatStartsLateAndNoShardIsAnOverrun(t *testing.T) {
	t.Parallel()
	const took = 2 * time.Second
	for _, c := range []struct {
		what, schedule string
		run            func(t *testing.T, h *functionshost.Host) error
	}{
		{"a tick that starts late", "*/8 * * * * *", func(t *testing.T, h *functionshost.Host) error {
			const slot = 8 * time.Second
			now := time.Now()
			<-time.After((2*slot - time.Second - now.Sub(now.Truncate(slot))) % slot)
			_, err := h.Timer(t.Context(), "poll", functionshost.Tick{})
			return err
		}},
		{"a shard", "* * * * * *", func(t *testing.T, h *functionshost.Host) error {
			body := fmt.Sprintf(`{"tick":%q,"of":1,"names":["orders"]}`, time.Now().UTC().Format(time.RFC3339Nano))
			_, err := h.Deliver(t.Context(), "shard", functionshost.Message{Body: []byte(body)})
			return err
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			settings := w.settings()
			settings["FEEDSCALE_TIMER_SCHEDULE"] = c.schedule
			settings["FEEDSCALE_SHARD_QUEUE"], settings["FEEDSCALE_SHARDS"] = shardQueue, settings["SERVICEBUS"]
			h := startHost(t, functionshost.Options{Root: made(t, stageFanOut), Settings: settings})
			w.Account.Control(cosmosfake.Times(1, cosmosfake.QueryDocuments, cosmosfake.Answer{Delay: took}))
			start := time.Now()
			testworld.Must(t, c.run(t, h))
			if time.Since(start) < took {
				t.Fatal("it did not take as long as it was to")
			}
			_, _, body := ask(t, h, "/api/metrics", h.MasterKey())
			if !strings.Contains(string(body), "feedscale_tick_overruns_total 0\n") {
				t.Errorf("it counts as an overrun:\n%s", body)
			}
			if said := find(handlerLines(t, h), "a tick took longer than its schedule allows"); len(said) > 0 {
				t.Errorf("it said %v", said)
			}
		})
	}
}

// TestATickTellsWhatItCouldNotMeasure measures nothing, a part and all of a processor.
func TestATickTellsWhatItCouldNotMeasure(t *testing.T) {
	t.Parallel()
	const refusal = "a failure begins"
	for _, c := range []struct {
		what    string
		refused func(r *cosmosfake.Request) bool
		unknown float64
		says    string
	}{
		{"all is known", func(*cosmosfake.Request) bool { return false }, 0, ""},
		{"one of two partitions", func(r *cosmosfake.Request) bool { return r.Kind == cosmosfake.ReadChangeFeed && r.RangeID == "0" }, 1, refusal},
		{"no partition", func(r *cosmosfake.Request) bool { return r.Kind == cosmosfake.ReadChangeFeed }, 1, refusal},
		{"no lease", func(r *cosmosfake.Request) bool { return r.Kind == cosmosfake.QueryDocuments }, 1, refusal},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Container("two", 2)
			of := w.LeasesOf("", testworld.OrdersHost, "two")
			for _, partition := range []string{"0", "1"} {
				w.Put(testworld.Leases, of.DotNetPKOld(partition, testworld.At(0)))
			}
			settings := w.settings()
			settings["FEEDSCALE_PROCESSORS"] = strings.ReplaceAll(settings["FEEDSCALE_PROCESSORS"], "containerId: orders", "containerId: two")
			h := w.host(settings)
			tick(t, h) // after this the number of leases is known
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if c.refused(r) {
					return &cosmosfake.Answer{Status: 403}
				}
				return nil
			})
			tick(t, h)
			var ticks []line
			testworld.Eventually(t, "the lines of both ticks", func() bool {
				ticks = find(handlerLines(t, h), "tick")
				return len(ticks) == 2
			})
			last := ticks[1].fields
			for field, want := range map[string]any{"polled": 1.0, "unknown": c.unknown, "leases": 2.0, "handedOver": 0.0, "uncommitted": 0.0} {
				if last[field] != want {
					t.Errorf("%s is %v, want %v: %s", field, last[field], want, ticks[1].Text)
				}
			}
			said := find(handlerLines(t, h), refusal)
			if (len(said) == 1) != (c.says == refusal) || len(said) == 1 && (said[0].fields["processors"] != 1.0 || said[0].fields["next"] == "") {
				t.Errorf("it said %v", said)
			}
		})
	}
}

// request sends a request with the master key through the host.
func request(t *testing.T, h *functionshost.Host, method, path string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, nil)
	testworld.Must(t, err)
	r.Header.Set("x-functions-key", h.MasterKey())
	response, err := http.DefaultClient.Do(r)
	testworld.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testworld.Must(t, err)
	return response, string(body)
}

func TestTheHostsRoutesAreTheHandlers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	// one poll must stay recent for the whole test
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "0 0 * * * *"
	h := w.host(settings)
	tick(t, h)
	for _, path := range []string{"/api/processors", "/api/processors/orders", "/api/metrics", "/api/dashboard"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			capital := "/api/" + strings.ToUpper(path[5:6]) + path[6:]
			for _, spelling := range []string{path, path + "/", capital, capital + "/", strings.ToUpper(path)} {
				get, body := request(t, h, http.MethodGet, spelling)
				if get.StatusCode != http.StatusOK || body == "" {
					t.Errorf("GET %s: %d %q", spelling, get.StatusCode, body)
				}
				head, none := request(t, h, http.MethodHead, spelling)
				if head.StatusCode != http.StatusOK || none != "" || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
					t.Errorf("HEAD %s: %d %v %q", spelling, head.StatusCode, head.Header, none)
				}
			}
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
				if other, body := request(t, h, method, path); other.StatusCode != http.StatusNotFound || body != "" {
					t.Errorf("%s %s: %d %q, want the host's empty 404", method, path, other.StatusCode, body)
				}
			}
		})
	}
	if response, _ := request(t, h, http.MethodHead, "/api/processors/unknown"); response.StatusCode != http.StatusNotFound || response.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("HEAD of an unknown processor: %d %v", response.StatusCode, response.Header)
	}
}

func TestWithoutATimerScheduleNothingIsPolledAndEverybodyIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	delete(settings, "FEEDSCALE_TIMER_SCHEDULE")
	h := w.host(settings)
	if err := h.FunctionErrors()["poll"]; err == nil || !strings.Contains(err.Error(), "FEEDSCALE_TIMER_SCHEDULE") {
		t.Errorf("the host says of poll: %v", err)
	}
	const why = "never polled, since the app setting FEEDSCALE_TIMER_SCHEDULE is missing"
	if status, contentType, problem := get(t, h, "/api/processors/orders", h.MasterKey()); status != http.StatusServiceUnavailable || contentType != "application/problem+json" || !strings.Contains(fmt.Sprint(problem["detail"]), why) {
		t.Errorf("%d %s %v", status, contentType, problem)
	}
	status, _, all := get(t, h, "/api/processors", h.MasterKey())
	if orders := all["processors"].([]any)[0].(map[string]any); status != http.StatusOK || !strings.Contains(fmt.Sprint(orders["error"]), why) {
		t.Errorf("%d %v", status, all)
	}
	if said := await(t, h, "nothing is polled"); len(said) != 1 || said[0].Level != functionshost.Error || !strings.Contains(said[0].Text, "FEEDSCALE_TIMER_SCHEDULE") {
		t.Errorf("at its start the handler said %v", said)
	}
}

// TestADisabledTimerIsSaidByItsSetting disables the function poll as the portal does, in the form
// in which the setting reaches a handler on Linux, at first and after a poll.
func TestADisabledTimerIsSaidByItsSetting(t *testing.T) {
	t.Parallel()
	const why = "the function poll is disabled by the app setting "
	for _, c := range []struct {
		setting, value string
		disabled       bool
	}{
		{"AzureWebJobs.poll.Disabled", "true", true},
		{"AzureWebJobs_poll_Disabled", "1", true},
		{"AzureWebJobs.Poll.Disabled", "True", true},
		{"AzureWebJobs.poll.Disabled", "false", false},
		{"AzureWebJobs.metrics.Disabled", "true", false},
	} {
		t.Run(c.setting+"="+c.value, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			settings := w.settings()
			settings[c.setting] = c.value
			h := w.host(settings)
			_, err := h.Timer(t.Context(), "poll", functionshost.Tick{})
			if (err != nil) != c.disabled {
				t.Fatalf("the host says of the timer: %v", err)
			}
			if !c.disabled {
				if said := find(handlerLines(t, h), "nothing is polled"); len(said) > 0 {
					t.Errorf("it said %v", said)
				}
				return
			}
			if said := await(t, h, "nothing is polled"); len(said) != 1 || said[0].Level != functionshost.Error || !strings.Contains(said[0].Text, why+c.setting) {
				t.Errorf("at its start the handler said %v", said)
			}
			status, _, problem := get(t, h, "/api/processors/orders", h.MasterKey())
			if status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(problem["detail"]), "never polled, since "+why+c.setting) {
				t.Errorf("%d %v", status, problem)
			}
		})
	}
	t.Run("an old poll", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		settings := w.settings()
		settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
		tick(t, w.host(settings))
		settings["AzureWebJobs.poll.Disabled"] = "true"
		h := w.host(settings)
		testworld.Eventually(t, "a refusal that names the setting", func() bool {
			status, _, problem := get(t, h, "/api/processors/orders", h.MasterKey())
			return status == http.StatusServiceUnavailable && strings.Contains(fmt.Sprint(problem["detail"]), "last polled at") &&
				strings.Contains(fmt.Sprint(problem["detail"]), why)
		})
	})
}

func TestATimerInLocalTimeIsWarnedOf(t *testing.T) {
	t.Parallel()
	const warning = "the host's timer follows local time, while the schedules of processors are in UTC"
	for _, c := range []struct {
		rule, setting, zone string
		warned              bool
	}{
		{"of .NET", "TZ", "Europe/Berlin", true},
		{"of Azure", "WEBSITE_TIME_ZONE", "America/New_York", true},
		{"UTC is what is meant", "TZ", "UTC", false},
		{"in its other name, too", "WEBSITE_TIME_ZONE", "Etc/UTC", false},
		{"nothing is UTC", "TZ", "", false},
		{"as GMT is", "TZ", "GMT", false},
		{"and Zulu", "WEBSITE_TIME_ZONE", "Zulu", false},
		{"and POSIX' form of it", "TZ", "UTC0", false},
		{"London is so in winter only", "TZ", "Europe/London", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			settings := w.settings()
			settings[c.setting] = c.zone
			h := w.host(settings)
			if !c.warned {
				await(t, h, "listening")
				if said := find(handlerLines(t, h), warning); len(said) > 0 {
					t.Errorf("it said %v", said)
				}
				return
			}
			if said := await(t, h, warning); len(said) != 1 || said[0].Level != functionshost.Warning || said[0].fields["setting"] != c.setting || said[0].fields["zone"] != c.zone {
				t.Errorf("it said %v", said)
			}
		})
	}
}
