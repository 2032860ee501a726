package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/report"
)

// polled is the JSON of poll.
type polled struct{ Processors []report.Processor }

// alsoMissing adds a processor whose container is not there, and sets more fields of orders.
func (p feedscale) alsoMissing(fields string) {
	p.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(p.settings["FEEDSCALE_PROCESSORS"], "}]}",
		fields+"}, {name: missing, connection: COSMOS, databaseId: shop, containerId: nowhere}]}", 1)
}

func TestPollPrintsJSONToTheLetter(t *testing.T) {
	t.Parallel()
	w, clock, p := watching(t)
	w.Write(testworld.Orders, 25)
	clock.Advance(50 * time.Second)
	r := p.run(t, "poll", "--output", "json")
	if r.Status != 0 {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	want := `{"processors":[{"name":"orders","group":null,"lag":25,"changeAgeSeconds":50,"metricValue":10,"active":true,"desiredReplicas":1,"direction":"out",` +
		`"complete":true,"status":"lagging","partitionCount":1,"partitionsWithLag":1,"uncovered":[],"leftover":[],"retentionSeconds":null,"requestCharge":#,"requests":6,"error":null,"findings":[],` +
		`"reasons":[{"step":"threshold","replicas":1,"why":"lag 25 at 10 per replica, capped to 1 partitions"}],` +
		`"partitions":[{"lease":"0","range":null,"owner":"worker","lag":25,"changeAgeSeconds":50,"checkpointLSN":0,"status":"lagging","stall":null,"rewound":null,"ahead":null,"approximate":false,"carried":null,"error":null}],"throughput":[]}],"groups":[]}` + "\n"
	if got := masked(r.Stdout); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e, err := events.Decode([]byte(firstEvent(r.Stderr)))
	if err != nil || e.Sequence != 1 || e.DesiredReplicas != 1 {
		t.Errorf("the event on standard error: %+v, %v", e, err)
	}
}

// firstEvent finds the line of an event among those of the log.
func firstEvent(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, `{"specversion"`) {
			return line
		}
	}
	return ""
}

func TestPollPrintsATableForPeople(t *testing.T) {
	t.Parallel()
	w, clock, p := watching(t)
	w.Write(testworld.Orders, 25)
	clock.Advance(50 * time.Second)
	half := w.LeasesOf("half", testworld.OrdersHost, testworld.Orders)
	p.alsoMissing("}, {name: half, connection: COSMOS, databaseId: shop, containerId: orders, accountHost: " + testworld.OrdersHost + ", processorName: half, changeFeedLagThreshold: 10")
	broken := half.DotNetEPK(leasefake.Range{Min: "7F", Max: "FF"}, leasefake.Fields{})
	broken["ContinuationToken"] = 7
	w.Put(testworld.Leases, broken,
		half.DotNetEPK(leasefake.Range{Max: "7F"}, leasefake.Fields{Continuation: leasefake.At(5)}),
		half.DotNetPKOld("0", leasefake.Fields{Owner: "worker", Continuation: leasefake.At(25), Updated: clock.Now()}))
	for _, c := range []struct {
		golden string
		width  int
		args   []string
	}{
		{"poll", 0, nil},
		{"poll-partitions", 0, []string{"--partitions"}},
		{"poll-partitions-terminal", 80, []string{"--partitions"}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			t.Parallel()
			p := p
			p.width = c.width
			r := p.run(t, append([]string{"poll", "--dry-run"}, c.args...)...)
			if r.Status != 1 {
				t.Errorf("status %d, want 1: a processor is incomplete", r.Status)
			}
			testworld.Golden(t, *update, c.golden, masked(r.Stdout))
		})
	}
}

func TestATerminalIsLeftUncoloredWhereNOCOLORIsSet(t *testing.T) {
	t.Parallel()
	_, _, p := watching(t)
	p.width = 80
	if r := p.run(t, "poll", "--dry-run"); !strings.Contains(r.Stdout, "\x1b[") {
		t.Errorf("no colors in a terminal: %+v", r)
	}
	p.settings["NO_COLOR"] = "1"
	if r := p.run(t, "poll", "--dry-run"); r.Status != 0 || strings.Contains(r.Stdout, "\x1b") {
		t.Errorf("%+v", r)
	}
}

// TestPollSaysWhenTheLagIsDrained polls three times on one state: a rate takes two polls.
func TestPollSaysWhenTheLagIsDrained(t *testing.T) {
	t.Parallel()
	w, clock, p := watching(t)
	w.Write(testworld.Orders, 25)
	for _, c := range []struct {
		rule       string
		checkpoint int64
		writes     int
		want       string
	}{
		{"no rate yet", 5, 0, "-"},
		{"five were done and none came", 10, 0, "75s"},
		{"five were done and fifty came", 15, 50, "never"},
	} {
		clock.Advance(25 * time.Second)
		w.Checkpoint(c.checkpoint)
		w.Write(testworld.Orders, c.writes)
		r := p.run(t, "poll")
		fields := strings.Fields(strings.Split(r.Stdout, "\n")[1])
		if fields[0] != "orders" || fields[1] != "lagging" || fields[4] != c.want {
			t.Errorf("%s: want %s in\n%s%s", c.rule, c.want, r.Stdout, r.Stderr)
		}
	}
}

// TestPollExplainsADecisionInSentences shows four polls of one state, the first of them a dry run.
func TestPollExplainsADecisionInSentences(t *testing.T) {
	t.Parallel()
	w, clock, p := watching(t)
	w.Write(testworld.Orders, 25)
	p.alsoMissing(", minReplicaCount: 1")
	var told strings.Builder
	for _, c := range []struct {
		rule   string
		change func()
		args   []string
	}{
		{"a dry run", func() {}, []string{"--dry-run"}},
		{"a first decision", func() {}, nil},
		{"all is processed", func() { w.Checkpoint(25) }, nil},
		{"nothing has changed", func() {}, nil},
	} {
		clock.Advance(30 * time.Second)
		c.change()
		r := p.run(t, append([]string{"poll", "--explain"}, c.args...)...)
		if r.Status != 1 {
			t.Errorf("%s: status %d, want 1: a processor is incomplete", c.rule, r.Status)
		}
		told.WriteString("# " + c.rule + "\n\n" + r.Stdout + "\n")
	}
	testworld.Golden(t, *update, "poll-explain", masked(told.String()))
	p.width = 80
	testworld.Golden(t, *update, "poll-explain-terminal", masked(p.run(t, "poll", "--explain", "--dry-run").Stdout))
}

func TestAFailureOfOneProcessorIsOneSentenceAndTheOthersArePolled(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	w.Write(testworld.Orders, 25)
	const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	p.settings["BADKEY"] = "AccountEndpoint=" + w.Account.Endpoint() + ";AccountKey=" + secret + ";"
	p.settings["UNREACHABLE"] = "AccountEndpoint=http://127.0.0.1:1/;AccountKey=" + secret + ";"
	p.settings["FEEDSCALE_PROCESSORS"] = `{defaults: {databaseId: shop, containerId: orders, accountHost: ` + testworld.OrdersHost + `}, processors: [
		{name: bad-key, connection: BADKEY, processorName: other}, {name: unreachable, connection: UNREACHABLE}, {name: orders, connection: COSMOS}, {name: missing, connection: COSMOS, containerId: nowhere}]}`
	r := p.run(t, "poll", "--output", "json")
	out := testworld.Decode[polled](t, []byte(r.Stdout))
	for i, says := range []string{"setting BADKEY", "setting UNREACHABLE", "", "nowhere in database shop"} {
		p := out.Processors[i]
		if says == "" {
			if p.Error != nil || p.Lag == nil || *p.Lag != 25 {
				t.Errorf("%s: lag %v, error %v", p.Name, p.Lag, p.Error)
			}
			continue
		}
		if p.Lag != nil || p.Status != "unknown" || p.Error == nil || !strings.Contains(*p.Error, says) || strings.Count(*p.Error, "\n") > 0 {
			t.Errorf("%s: %+v", p.Name, p)
		}
	}
	if r.Status != 1 {
		t.Errorf("status %d, want 1", r.Status)
	}
	if strings.Contains(r.Stdout+r.Stderr, secret) {
		t.Error("a key was shown")
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	w.Write(testworld.Orders, 25)
	p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
	r := p.run(t, "poll", "--dry-run", "--output", "json")
	if r.Status != 0 || !strings.Contains(r.Stdout, `"desiredReplicas":1`) {
		t.Errorf("status %d: %s%s", r.Status, r.Stdout, r.Stderr)
	}
	p.leavesNoFile(t)
	if got := w.Namespace.Messages(testworld.Queue); len(got) != 0 {
		t.Errorf("%d messages", len(got))
	}
}

// leavesNoFile holds that there is nothing where the state file would be.
func (p feedscale) leavesNoFile(t *testing.T) {
	t.Helper()
	folder := filepath.Dir(strings.TrimPrefix(p.settings["FEEDSCALE_STATE"], "bolt:"))
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("in %s: %v, %v", folder, entries, err)
	}
}

func TestAnEventThatCannotBePublishedIsStatusOneAndAnotherQueueGetsTheDecisionAnew(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/nowhere"
	r := p.run(t, "poll", "--output", "json")
	if r.Status != 1 || !strings.Contains(r.Stderr, "nowhere") {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
	p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
	if r := p.run(t, "poll"); r.Status != 0 {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
	messages := w.Namespace.Messages(testworld.Queue)
	if len(messages) != 1 {
		t.Fatalf("%d messages, want one", len(messages))
	}
	if e, err := events.Decode(messages[0].Body); err != nil || messages[0].ID != e.ID() || e.Sequence != 2 || e.DesiredReplicas != 0 || e.Active {
		t.Errorf("%s: %+v, %v", messages[0].ID, e, err)
	}
}

func TestAnEventIsPublishedAgainOnceItsHeartbeatIsDue(t *testing.T) {
	t.Parallel()
	_, clock, p := watching(t)
	p.settings["FEEDSCALE_EVENT_HEARTBEAT"] = "1m"
	for _, c := range []struct {
		after time.Duration
		comes bool
	}{{0, true}, {59 * time.Second, false}, {time.Second, true}, {time.Second, false}} {
		clock.Advance(c.after)
		if r := p.run(t, "poll"); r.Status != 0 || (firstEvent(r.Stderr) != "") != c.comes {
			t.Errorf("after %s more: status %d, want an event: %v\n%s", c.after, r.Status, c.comes, r.Stderr)
		}
	}
}

func TestPollExplainsInPlaceOfTheTableOnly(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--output", "json"}, {"--partitions"}} {
		r := feedscale{}.run(t, append([]string{"poll", "--explain"}, args...)...)
		if r.Status != 2 || r.Stdout != "" || !strings.Contains(r.Stderr, "--explain replaces the table") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestPollFailsAfterAnEventThatIsTooLarge(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	w.Write(testworld.Orders, 25)
	p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + testworld.Queue
	w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op != servicebusfake.OpSend {
			return nil
		}
		return &servicebusfake.Answer{Condition: "amqp:link:message-size-exceeded"}
	})
	if r := p.run(t, "poll"); r.Status != 1 || !strings.Contains(r.Stderr, `"msg":"a scale event is too large for the queue`) {
		t.Errorf("%+v", r)
	}
}
