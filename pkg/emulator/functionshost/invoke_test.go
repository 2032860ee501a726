package functionshost_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestAnAnswerIsJudgedAsTheHostDoes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name                        string
		status, contentType, answer string
		want                        string // in the error; "" = success
	}{
		{name: "an empty object is enough", answer: `{}`},
		{name: "any 2xx", status: "202", answer: `{}`},
		{name: "a charset is fine", contentType: "application/json; charset=utf-8", answer: `{"Outputs":null,"ReturnValue":null}`},
		{name: "what net/http sniffs is not JSON", contentType: "text/plain; charset=utf-8", answer: `{}`, want: `the content type is "text/plain; charset=utf-8"`},
		{name: "no content type at all", contentType: " ", answer: `{}`, want: "it must be application/json"},
		{name: "a list is no answer", answer: `[]`, want: "invalid HttpResponseMessage"},
		{name: "text is no answer", answer: `done`, want: "invalid HttpResponseMessage"},
		{name: "Outputs must be an object", answer: `{"Outputs":["a"]}`, want: "invalid HttpResponseMessage"},
		{name: "302 fails", status: "302", answer: `{}`, want: "does not indicate success: 302"},
		{name: "not 2xx fails whatever it says", status: "500", answer: `{"Outputs":{"out":"x"},"Logs":["why"]}`, want: "does not indicate success: 500"},
		{name: "not found fails", status: "404", contentType: "text/plain", answer: "404 page not found", want: "does not indicate success: 404"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := map[string]string{"ANSWER": c.answer}
			if c.status != "" {
				settings["ANSWER_STATUS"] = c.status
			}
			if c.contentType != "" {
				settings["ANSWER_TYPE"] = strings.TrimSpace(c.contentType)
			}
			r := app{host: forwardHost, settings: settings}.start(t)
			_, err := r.Timer(t.Context(), "poll", functionshost.Tick{})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	const timer = `{"type":"timerTrigger","name":"timer","schedule":"0 0 * * * *"}`
	output := func(name, rest string) string {
		return `,{"type":"serviceBus","direction":"out","queueName":"scale","connection":"BUS","name":"` + name + `"` + rest + `}`
	}
	cases := []struct {
		name     string
		bindings string
		answer   string
		want     map[string]any
	}{
		{"text is text", output("out", ""), `{"Outputs":{"out":"hello!"}}`, map[string]any{"out": "hello!"}},
		{"text that happens to be base64 becomes bytes", output("out", ""), `{"Outputs":{"out":"abcd"}}`, map[string]any{"out": []byte{0x69, 0xb7, 0x1d}}},
		{"also with white space in it", output("out", ""), `{"Outputs":{"out":"ab cd\n"}}`, map[string]any{"out": []byte{0x69, 0xb7, 0x1d}}},
		{"JSON text is safe", output("out", ""), `{"Outputs":{"out":"{\"a\":1}"}}`, map[string]any{"out": `{"a":1}`}},
		{"binary is left alone", output("out", `,"dataType":"binary"`), `{"Outputs":{"out":"abcd"}}`, map[string]any{"out": "abcd"}},
		{"objects and lists stay what they are", output("out", ""), `{"Outputs":{"out":[{"a":1}]}}`, map[string]any{"out": []any{map[string]any{"a": 1.0}}}},
		{"what has no binding is dropped", output("out", ""), `{"Outputs":{"Out":"x!","other":"y!"}}`, map[string]any{}},
		{"null is nothing", output("out", ""), `{"Outputs":{"out":null}}`, map[string]any{}},
		{"ReturnValue goes to $return", output("$return", ""), `{"ReturnValue":"hello!"}`, map[string]any{"$return": "hello!"}},
		{"an object as ReturnValue is several outputs", output("a", "") + output("b", ""), `{"ReturnValue":{"a":"x!","b":2,"c":3}}`, map[string]any{"a": "x!", "b": 2.0}},
		{"unless a binding takes it", output("$return", "") + output("a", ""), `{"ReturnValue":{"a":"x!"}}`, map[string]any{"$return": map[string]any{"a": "x!"}}},
		{"a ReturnValue that nothing takes is dropped", output("out", ""), `{"ReturnValue":"hello!"}`, map[string]any{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{
				host:      bundleHost,
				functions: map[string]string{"poll": `{"bindings":[` + timer + c.bindings + `]}`},
				settings:  map[string]string{"BUS": "Endpoint=sb://localhost", "ANSWER": c.answer},
			}.start(t)
			got, err := r.Timer(t.Context(), "poll", functionshost.Tick{})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Outputs, c.want) {
				t.Errorf("got %#v, want %#v", got.Outputs, c.want)
			}
		})
	}
}

func TestLogsOfAnAnswerAreLoggedForTheFunction(t *testing.T) {
	t.Parallel()
	r := app{settings: map[string]string{"ANSWER": `{"Logs":["polled 3 processors"]}`}}.start(t)
	got, err := r.Timer(t.Context(), "poll", functionshost.Tick{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"polled 3 processors"}; !slices.Equal(got.Logs, want) {
		t.Errorf("got %v, want %v", got.Logs, want)
	}
	want := functionshost.LogLine{Level: functionshost.Information, Category: "Function.poll.User", Text: "polled 3 processors"}
	if !slices.Contains(r.Logs(), want) {
		t.Errorf("%v is not in %v", want, r.Logs())
	}
}

func TestAnInvocationRequestIsTheHosts(t *testing.T) {
	t.Parallel()
	r := app{functions: map[string]string{"Poll": timerFunction}}.start(t)
	got, err := r.Timer(t.Context(), "poll", functionshost.Tick{})
	if err != nil {
		t.Fatal(err)
	}
	request := r.lastSeen(t)
	if request.Method != http.MethodPost || request.URI != "/Poll" {
		t.Errorf("got %s %s, want POST /Poll, in the case of the folder", request.Method, request.URI)
	}
	if got := request.TransferEncoding; !slices.Equal(got, []string{"chunked"}) {
		t.Errorf("the transfer encoding is %v, want chunked", got)
	}
	if parts := strings.Split(functionshost.Version, "."); len(parts) != 4 {
		t.Errorf("the version %s has %d parts, want 4", functionshost.Version, len(parts))
	}
	for name, want := range map[string]string{
		"Content-Type":                   "application/json; charset=utf-8",
		"X-Azure-Functions-Hostversion":  functionshost.Version,
		"X-Azure-Functions-Invocationid": got.ID,
		"User-Agent":                     "Azure-Functions-Host/" + functionshost.Version,
	} {
		if got := request.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestTimerPayload(t *testing.T) {
	t.Parallel()
	hourly := func(rest string) map[string]string {
		return map[string]string{"poll": `{"bindings":[{"type":"timerTrigger","name":"timer","schedule":"0 0 * * * *"` + rest + `}]}`}
	}
	start := time.Date(2026, 5, 15, 17, 40, 0, 1_200_000, time.UTC)
	firstStatus := `{"Last":"0001-01-01T00:00:00+00:00","LastUpdated":"0001-01-01T00:00:00+00:00","Next":"2026-05-15T18:00:00+00:00"}`
	cases := []struct {
		name      string
		functions map[string]string
		settings  map[string]string
		tick      functionshost.Tick
		want      string
	}{
		{"more often than once a minute: no status", nil, nil, functionshost.Tick{}, `{"IsPastDue":false,"Schedule":{"AdjustForDST":true},"ScheduleStatus":null}`},
		{"the monitor is off: no status", hourly(`,"useMonitor":false`), nil, functionshost.Tick{}, `{"IsPastDue":false,"Schedule":{"AdjustForDST":true},"ScheduleStatus":null}`},
		{"monitored, the first run", hourly(``), nil, functionshost.Tick{}, `{"IsPastDue":false,"Schedule":{"AdjustForDST":true},"ScheduleStatus":` + firstStatus + `}`},
		{"past due", hourly(``), nil, functionshost.Tick{PastDue: true}, `{"IsPastDue":true,"Schedule":{"AdjustForDST":true},"ScheduleStatus":` + firstStatus + `}`},
		{
			"a constant interval", nil, map[string]string{"SCHEDULE": "00:20:00"}, functionshost.Tick{},
			`{"IsPastDue":false,"Schedule":{"AdjustForDST":false},"ScheduleStatus":` + strings.Replace(firstStatus, "18:00:00", "18:00:00.0012", 1) + `}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{functions: c.functions, settings: c.settings, options: functionshost.Options{Clock: functionshost.NewClock(start)}}.start(t)
			if _, err := r.Timer(t.Context(), "poll", c.tick); err != nil {
				t.Fatal(err)
			}
			payload := r.lastSeen(t).payload(t)
			if got := string(payload.Data["timer"]); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			var sys struct{ MethodName, UtcNow, RandGuid string }
			if err := json.Unmarshal(payload.Metadata["sys"], &sys); err != nil {
				t.Fatal(err)
			}
			if sys.MethodName != "poll" || sys.UtcNow != "2026-05-15T17:40:00.0012Z" || len(sys.RandGuid) != 36 {
				t.Errorf("sys is %+v", sys)
			}
		})
	}
}

func TestTheStatusOfALaterRunIsThatOfTheOneBefore(t *testing.T) {
	t.Parallel()
	clock := functionshost.NewClock(time.Date(2026, 5, 15, 17, 40, 0, 0, time.UTC))
	r := app{functions: map[string]string{"poll": hourlyFunction}, options: functionshost.Options{Clock: clock}}.start(t)
	for range 2 {
		if _, err := r.Timer(t.Context(), "poll", functionshost.Tick{}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(20 * time.Minute)
	}
	var timer struct {
		ScheduleStatus struct{ Last, Next, LastUpdated time.Time }
	}
	if err := json.Unmarshal(r.lastSeen(t).payload(t).Data["timer"], &timer); err != nil {
		t.Fatal(err)
	}
	last, next := time.Date(2026, 5, 15, 17, 40, 0, 0, time.UTC), time.Date(2026, 5, 15, 18, 0, 0, 0, time.UTC)
	if s := timer.ScheduleStatus; !s.Last.Equal(last) || !s.Next.Equal(next) || !s.LastUpdated.Equal(last) {
		t.Errorf("got %+v, want %v and %v", s, last, next)
	}
}

func TestATimerNeverOverlapsItself(t *testing.T) {
	t.Parallel()
	r := app{functions: map[string]string{"slow": hourlyFunction}}.start(t)
	first := make(chan error, 1)
	go func() {
		_, err := r.Timer(t.Context(), "slow", functionshost.Tick{})
		first <- err
	}()
	testworld.Eventually(t, "the first run", func() bool { return len(r.seen(t)) == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Timer(ctx, "slow", functionshost.Tick{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second run says %v", err)
	}
	release(t, r)
	if err := testworld.Came(t, "the end of the first run", first); err != nil {
		t.Error(err)
	}
	if n := len(r.seen(t)); n != 1 {
		t.Errorf("the handler got %d requests, want 1", n)
	}
}

func TestAnswersWithoutContentHangToFunctionTimeout(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, status, contentType, answer string
	}{
		{"empty", "200", "application/json", ""},
		{"empty, whatever its type", "200", "text/plain", ""},
		{"204", "204", "application/json", ""},
		{"null", "200", "application/json", " null\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := functionshost.NewClock(time.Unix(0, 0))
			r := app{
				host:     fiveMinutesHost,
				settings: map[string]string{"ANSWER": c.answer, "ANSWER_STATUS": c.status, "ANSWER_TYPE": c.contentType},
				options:  functionshost.Options{Clock: clock},
			}.start(t)
			ended := make(chan error, 1)
			go func() {
				_, err := r.Timer(t.Context(), "poll", functionshost.Tick{})
				ended <- err
			}()
			testworld.Eventually(t, "the invocation", func() bool { return len(r.seen(t)) == 1 })
			clock.Advance(5*time.Minute - time.Millisecond)
			if err := r.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-ended:
				t.Fatalf("it ended before functionTimeout: %v", err)
			default:
			}
			clock.Advance(time.Millisecond)
			r.awaitLog(t, functionshost.Error, "timeout value of 5m0s was exceeded")
			clock.Advance(2 * time.Second)
			if err := testworld.Came(t, "the end of the run", ended); err == nil || !strings.Contains(err.Error(), "the answer has no content") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// release ends one run of the function slow.
func release(t *testing.T, r running) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.HandlerURL()+"/test/release", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestWhatIsNoTimerCannotFire(t *testing.T) {
	t.Parallel()
	r := app{
		functions: map[string]string{
			"web": `{"bindings":[{"type":"httpTrigger","name":"req"},{"type":"http","direction":"out","name":"res"}]}`,
			"off": hourlyFunction, "linux": hourlyFunction,
			"old": `{"disabled":true,"bindings":[{"type":"timerTrigger","name":"timer","schedule":"0 0 * * * *"}]}`,
		},
		settings: map[string]string{"AzureWebJobs.off.Disabled": "True", "AzureWebJobs_linux_Disabled": "1"},
	}.start(t)
	for name, want := range map[string]string{"web": "no timer function", "none": "no timer function", "off": "is disabled", "linux": "is disabled", "old": "is disabled"} {
		if _, err := r.Timer(t.Context(), name, functionshost.Tick{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, want)
		}
	}
}

func TestServiceBusPayload(t *testing.T) {
	t.Parallel()
	binary := strings.Replace(queueFunction, `"name":"msg"`, `"name":"msg","dataType":"binary"`, 1)
	cases := []struct {
		name         string
		function     string
		message      functionshost.Message
		wantData     string
		wantMetadata map[string]string // as JSON
	}{
		{
			"a body of JSON is encoded twice, and its fields stand in the metadata", queueFunction,
			functionshost.Message{Body: []byte(`{"a":1,"b":"x","c":true,"d":null,"e":[1],"f":{"g":2}}`), DeliveryCount: 1},
			`"\"{\\\"a\\\":1,\\\"b\\\":\\\"x\\\",\\\"c\\\":true,\\\"d\\\":null,\\\"e\\\":[1],\\\"f\\\":{\\\"g\\\":2}}\""`,
			map[string]string{"DeliveryCount": `"1"`, "a": `"\"1\""`, "b": `"\"x\""`, "c": `"\"True\""`, "d": ``, "e": ``, "f": `{"g":2}`},
		},
		{"a body of text too", queueFunction, functionshost.Message{Body: []byte("hi")}, `"\"hi\""`, map[string]string{"a": ``}},
		{"binary is base64", binary, functionshost.Message{Body: []byte("hi")}, `"aGk="`, nil},
		{
			"properties are encoded twice, but for objects", queueFunction,
			functionshost.Message{
				MessageID: "orders-000000000042", SessionID: "orders", SequenceNumber: 7,
				EnqueuedTime:          time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
				ApplicationProperties: map[string]any{"processor": "orders"},
			},
			`"\"\""`,
			map[string]string{
				"MessageId": `"\"orders-000000000042\""`, "SessionId": `"\"orders\""`, "SequenceNumber": `"7"`,
				"EnqueuedTimeUtc": `"\"2026-01-01T00:00:00Z\""`, "ApplicationProperties": `{"processor":"orders"}`, "UserProperties": `{"processor":"orders"}`,
				"Subject": ``,
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := app{host: bundleHost, functions: map[string]string{"take": c.function}, settings: map[string]string{"BUS__fullyQualifiedNamespace": "bus.example"}}.start(t)
			if _, err := r.Deliver(t.Context(), "take", c.message); err != nil {
				t.Fatal(err)
			}
			payload := r.lastSeen(t).payload(t)
			if got := string(payload.Data["msg"]); got != c.wantData {
				t.Errorf("got  %s\nwant %s", got, c.wantData)
			}
			for name, want := range c.wantMetadata {
				if got := string(payload.Metadata[name]); got != want {
					t.Errorf("metadata %s is %s, want %s", name, got, want)
				}
			}
		})
	}
}

func TestDeliverNeedsAServiceBusFunction(t *testing.T) {
	t.Parallel()
	r := app{}.start(t)
	if _, err := r.Deliver(t.Context(), "poll", functionshost.Message{}); err == nil || !strings.Contains(err.Error(), "no Service Bus function") {
		t.Errorf("got %v", err)
	}
}
