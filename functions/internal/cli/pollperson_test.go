package cli_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// rows are the first words of the lines of a table but for its head, down to the empty line.
func rows(table string) string {
	var first []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			break
		}
		first = append(first, fields[0])
	}
	return strings.Join(first[1:], " ")
}

func TestPollShowsWhatIsAskedForInTheOrderAskedFor(t *testing.T) {
	t.Parallel()
	w, clock, p := watching(t)
	w.Write(testworld.Orders, 25)
	clock.Advance(50 * time.Second)
	p.alsoMissing("")
	for _, c := range []struct {
		rule   string
		args   []string
		status int
		want   string
	}{
		{"the worst first", nil, 1, "missing orders"},
		{"by name", []string{"--sort", "name"}, 1, "missing orders"},
		{"what is unknown before what is greatest", []string{"--sort", "lag"}, 1, "missing orders"},
		{"of one status", []string{"--status", "lagging"}, 1, "orders"},
		{"of one of several", []string{"--status", "stalled,lagging", "--status", "unknown"}, 1, "missing orders"},
		{"of one that none has", []string{"--status", "stalled"}, 1, ""},
		{"a name", []string{"orders"}, 0, "orders"},
		{"a name before a flag, and one behind it", []string{"missing", "--sort", "name", "orders"}, 1, "missing orders"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			r := p.run(t, append([]string{"poll", "--dry-run"}, c.args...)...)
			if got := rows(r.Stdout); got != c.want || r.Status != c.status {
				t.Errorf("status %d, rows %q, want %q:\n%s%s", r.Status, got, c.want, r.Stdout, r.Stderr)
			}
		})
	}
	if r := p.run(t, "poll", "--dry-run", "order"); r.Status != 2 || !strings.Contains(r.Stderr, `there is no processor "order"; did you mean orders?`) {
		t.Errorf("%+v", r)
	}
	if r := p.run(t, "poll", "--dry-run", "--output", "json"); !strings.HasPrefix(r.Stdout, `{"processors":[{"name":"orders"`) {
		t.Errorf("JSON is not in the order of the file: %s", r.Stdout)
	}
}

func TestAPersonSeesTheTableAndEachFailureOnce(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	w.Write(testworld.Orders, 25)
	p.alsoMissing("")
	p.person = true
	r := p.run(t, "poll")
	if r.Status != 1 || strings.Count(r.Stdout+r.Stderr, "nowhere") != 1 || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	p.settings["FEEDSCALE_LOG_LEVEL"], p.settings["FEEDSCALE_STATE"] = "info", "bolt:"+filepath.Join(t.TempDir(), "another.db")
	if r := p.run(t, "poll"); !strings.Contains(r.Stderr, `"msg":"a failure begins"`) {
		t.Errorf("a log that is asked for is missing: %+v", r)
	}
}

func TestAnErrorThatNoRowSaysIsALogLineBelowTheTable(t *testing.T) {
	t.Parallel()
	_, _, p := watching(t)
	p.settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/nowhere"
	r := p.run(t, "poll")
	if r.Status != 1 || !strings.Contains(r.Stderr, `"msg":"a scale event cannot be published: it stays in the outbox for the next tick","processor":"orders"`) || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestAPersonSeesWhatIsWaitedForAndWhatWasInterrupted(t *testing.T) {
	t.Parallel()
	w, _, p := watching(t)
	p.person = true
	p.settings["FEEDSCALE_TICK_TIMEOUT"] = "50s"
	w.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer { return &cosmosfake.Answer{Delay: time.Minute} })
	for _, args := range [][]string{{"poll"}, {"check"}, {"leases", "--connection", "COSMOS", "--database", testworld.Database}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			what := "account 127.0.0.1"
			switch args[0] {
			case "check":
				what = "the answers to the checks"
			case "poll":
				what = "1 of 1 processors"
			}
			var stdout bytes.Buffer
			var stderr printed
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			ended := make(chan int, 1)
			go func() { ended <- program.Main(ctx, p.env(&stdout, &stderr, args...), commands(), "") }()
			line := "\r\x1b[Kwaiting for " + what + ", "
			testworld.Eventually(t, "what is waited for", func() bool { return strings.Contains(stderr.String(), line) })
			interrupt()
			// A check says of each line that it was interrupted.
			if status := <-ended; status != 1 || (stdout.String() != "") != (args[0] == "check") || !strings.HasSuffix(stderr.String(), "\r\x1b[Kfeedscale: interrupted while waiting for "+what+"\n") {
				t.Errorf("status %d, stdout %s, stderr %q", status, &stdout, stderr.String())
			}
		})
	}
}

func TestAStateTableThatIsDownIsSaidOnce(t *testing.T) {
	t.Parallel()
	_, _, p := watching(t)
	p.alsoMissing("")
	p.settings["FEEDSCALE_STATE"] = "table:TABLES/states"
	p.settings["TABLES"] = "AccountName=shop;AccountKey=" + accountSecret + ";TableEndpoint=http://127.0.0.1:1"
	status := p.run(t, "status")
	first := "state table states at 127.0.0.1:1 does not answer: 2 processors could not be read.\n  Do: run feedscale check:"
	if status.Status != 1 || status.Stderr != "" || !strings.HasPrefix(status.Stdout, first) || strings.Count(status.Stdout, "Do:") != 1 {
		t.Errorf("status: %+v", status)
	}
	if r := p.run(t, "poll"); r.Status != 1 || strings.Count(r.Stderr, "no answer from 127.0.0.1:1") != 1 || !strings.Contains(r.Stderr, "nothing could be committed") {
		t.Errorf("poll: %+v", r)
	}
}
