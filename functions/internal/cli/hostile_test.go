package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// hostile is what may stand where others write: a color, the end of a line, a bell, a C1 escape sequence,
// a link, an override of the direction, what cannot be seen, and a formula.
const hostile = "=1+1\x1b[31mred\r\nfeedscale: all is well\a\u009b2J\x1b]8;;http://attacker.example\x1b\\\u202efed\u200bghi\u2028\U000e0041"

var colors = regexp.MustCompile("\x1b\\[(?:0|1|2|31|32|33)m")

// harmless holds that a text has no character that does not show, and none of the lines that were planted.
func harmless(t *testing.T, what, text string, colored bool) {
	t.Helper()
	if colored {
		text = colors.ReplaceAllString(text, "")
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			t.Errorf("%s has %q: %q", what, r, text[max(0, i-40):min(len(text), i+40)])
			return
		}
	}
	if strings.Contains("\n"+text, "\nfeedscale: all is well") {
		t.Errorf("%s has a line that was planted:\n%s", what, text)
	}
}

// inJSON is a text as it stands between the quotes of JSON.
func inJSON(text string) string {
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err) // a text alone
	}
	return string(encoded[1 : len(encoded)-1])
}

// TestNothingThatOthersWriteTellsATerminalWhatToDo puts control characters into leases, messages of
// the service, names of the configuration and arguments, and checks every output of every command.
func TestNothingThatOthersWriteTellsATerminalWhatToDo(t *testing.T) {
	t.Parallel()
	typed := strings.NewReplacer("\r\n", "", "all is well", "typed").Replace(hostile) // lines that people type are their own
	commands := [][]string{
		{"poll"}, {"poll", "--partitions"}, {"poll", "--explain"}, {"poll", "--output", "json"}, {"poll", typed}, {"poll", "--" + typed},
		{"history", "orders"}, {"history", "orders", "--output", "json"}, {"history", "orders", "--output", "csv"}, {"history", typed},
		{"leases", "--connection", "COSMOS", "--database", "shop"}, {"leases", "--connection", "COSMOS", "--database", "shop", "--output", "json"},
		{"leases", "--connection", "COSMOS", "--database", typed}, {"leases", "--connection", typed, "--database", "shop"},
		{"check"}, {"check", "--output", "json"}, {"simulate", "--trace", typed}, {"simulate", "--trace", "history:orders", "--policy", typed},
		{"consume", "--action", typed}, {typed},
	}
	for _, c := range []struct {
		rule  string
		plant func(*testworld.Shop, feedscale)
		shown string // somewhere, so that the test proves something
	}{
		{"in the owner of a lease", func(w *testworld.Shop, _ feedscale) {
			w.Put(testworld.Leases, map[string]any{"id": w.Processor.DotNetPrefix() + "..0", "LeaseToken": "0", "Owner": hostile, "ContinuationToken": `"1"`, "timestamp": noon.Format(time.RFC3339)})
		}, "all is well"},
		{"in the token of a lease", func(w *testworld.Shop, _ feedscale) {
			w.Put(testworld.Leases, map[string]any{"id": w.Processor.DotNetPrefix() + "..1", "LeaseToken": "0" + hostile, "Owner": "o"})
		}, "cannot be seen"},
		{"in the id of a lease", func(w *testworld.Shop, _ feedscale) {
			w.Put(testworld.Leases, map[string]any{"id": strings.NewReplacer("/", "", "\\", "").Replace(hostile) + w.Processor.DotNetPrefix() + "..0", "LeaseToken": "0", "Owner": "o"})
		}, "1+1"},
		{"in the position of a lease", func(w *testworld.Shop, _ feedscale) {
			w.Put(testworld.Leases, map[string]any{"id": w.Processor.DotNetPrefix() + "..0", "LeaseToken": "0", "Owner": "o", "ContinuationToken": hostile})
		}, "control characters"},
		{"in the service's own words", func(w *testworld.Shop, _ feedscale) {
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind != cosmosfake.ReadChangeFeed && r.Kind != cosmosfake.QueryDocuments {
					return nil
				}
				return &cosmosfake.Answer{Status: 403, Body: `{"code":"Forbidden","message":"` + inJSON(hostile) + `"}`}
			})
		}, "all is well"},
		{"in names of the configuration", func(_ *testworld.Shop, p feedscale) {
			p.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(p.settings["FEEDSCALE_PROCESSORS"], "containerId: orders", `containerId: "`+inJSON(hostile)+`", processorName: "`+inJSON(hostile)+`"`, 1)
		}, "containerId"},
		{"in settings", func(_ *testworld.Shop, p feedscale) {
			p.settings["FEEDSCALE_LISTEN"], p.settings["FEEDSCALE_CONFIG"], p.settings["FEEDSCALE_LOG_LEVEL"] = hostile, hostile, hostile
		}, "FEEDSCALE_LOG_LEVEL"},
		{"in names of fields", func(_ *testworld.Shop, p feedscale) {
			p.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(p.settings["FEEDSCALE_PROCESSORS"], "containerId: orders", `containerId: orders, "x`+"\u202e\u200b"+`": 1`, 1)
		}, "is an unknown field"},
	} {
		for _, width := range []int{0, 80} {
			t.Run(fmt.Sprintf("%s, %d columns", c.rule, width), func(t *testing.T) {
				t.Parallel()
				w, clock, p := watching(t)
				p.width = width
				w.Write(testworld.Orders, 5)
				c.plant(w, p)
				var all strings.Builder
				for _, args := range commands {
					r := p.run(t, args...)
					clock.Advance(15 * time.Second)
					harmless(t, fmt.Sprintf("stdout of %q", args), r.Stdout, width > 0)
					harmless(t, fmt.Sprintf("stderr of %q", args), r.Stderr, false)
					all.WriteString(r.Stdout + r.Stderr)
				}
				if !strings.Contains(all.String(), c.shown) {
					t.Errorf("%q is nowhere:\n%s", c.shown, all.String())
				}
			})
		}
	}
}

// TestAnEventTellsATerminalNothing has an event of another program in the queue, whose labels are hostile.
func TestAnEventTellsATerminalNothing(t *testing.T) {
	t.Parallel()
	bus := testworld.StartNamespace(t, servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: testworld.Queue}}})
	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(), nil)
	testworld.Must(t, err)
	defer func() { testworld.Must(t, client.Close(t.Context())) }()
	sender, err := client.NewSender(testworld.Queue, nil)
	testworld.Must(t, err)
	for i, body := range []string{
		`{"specversion":"1.0","id":"orders-000000000001","source":"` + inJSON(hostile) + `","type":"feedscale.scale.v1","subject":"orders","time":"2026-01-01T00:00:00Z","datacontenttype":"application/json",` +
			`"data":{"processor":"orders","sequence":1,"desiredReplicas":5,"previousReplicas":3,"active":true,"direction":"out","metricValue":1,"lag":1,"changeAgeSeconds":1,"partitionCount":1,` +
			`"partitionsWithLag":1,"complete":true,"status":"lagging","reasons":[{"step":"threshold","replicas":5,"why":"` + inJSON(hostile) + `"}],"target":{"a":"` + "\u202e\u009b2J" + `"}}}`,
		`{"specversion":"` + inJSON(hostile) + `"}`,
		"\u202e no event \u009b2J",
	} {
		testworld.Must(t, sender.SendMessage(t.Context(), &azservicebus.Message{MessageID: new("id-\u202e\u009b" + fmt.Sprint(i)), Body: []byte(body)}, nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr safe
	ended := make(chan int, 1)
	go func() {
		ended <- program.Main(ctx, program.Env{
			Args: []string{"consume"}, Stdout: &stdout, Stderr: &stderr, Now: time.Now, Version: version,
			Environ:  []string{"SERVICEBUS=" + bus.ConnectionString(), "FEEDSCALE_EVENTS=servicebus:SERVICEBUS/" + testworld.Queue},
			Terminal: func() (width, height int, ok bool) { return 80, 25, true },
		}, commands(), "")
	}()
	testworld.Eventually(t, "the messages are settled", func() bool {
		for _, m := range bus.Messages(testworld.Queue) {
			if m.State != servicebusfake.DeadLettered {
				return false
			}
		}
		return true
	})
	cancel()
	<-ended
	harmless(t, "stdout", stdout.String(), true)
	harmless(t, "stderr", stderr.String(), false)
	if !strings.Contains(stdout.String(), `"desiredReplicas":5`) || strings.Count(stderr.String(), "dead-letter") < 2 {
		t.Errorf("stdout %s\nstderr %s", stdout.String(), stderr.String())
	}
}

// safe is a buffer that is written while it is read.
type safe struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
