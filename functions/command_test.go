package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
)

// result is what a command left.
type result struct {
	status         int
	stdout, stderr string
}

// command runs the executable in a folder, with nothing in its environment but
// the settings.
func command(t *testing.T, folder string, settings map[string]string, args ...string) result {
	t.Helper()
	c := prepare(t, folder, settings, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func prepare(t *testing.T, folder string, settings map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), made(t, buildTool), args...)
	c.Dir = folder
	c.Env = []string{"HOME=" + folder}
	for name, value := range settings {
		c.Env = append(c.Env, name+"="+value)
	}
	return c
}

func TestPollPrintsJSONToTheLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	r := command(t, t.TempDir(), w.local(), "poll", "--output", "json")
	if r.status != 0 {
		t.Fatalf("status %d: %s", r.status, r.stderr)
	}
	volatile := regexp.MustCompile(`"(requestCharge|changeAgeSeconds)":[0-9.]+`)
	got := volatile.ReplaceAllString(strings.TrimSpace(r.stdout), `"$1":1`)
	want := `{"processors":[{"name":"orders","lag":25,"changeAgeSeconds":1,"metricValue":10,"active":true,"desiredReplicas":1,"direction":"out",` +
		`"complete":true,"status":"lagging","partitionCount":1,"partitionsWithLag":1,"requestCharge":1,"requests":4,"error":null,` +
		`"reasons":[{"step":"threshold","replicas":1,"why":"lag 25 at 10 per replica, capped to 1 partitions"}],` +
		`"partitions":[{"lease":"0","range":null,"owner":"worker","lag":25,"changeAgeSeconds":1,"status":"lagging","approximate":false,"error":null}]}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	e, err := events.Decode([]byte(firstEvent(r.stderr)))
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

func TestPollPrintsATableForPeopleWithoutColorsInAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	settings := w.local()
	settings["FEEDSCALE_PROCESSORS"] = strings.Replace(settings["FEEDSCALE_PROCESSORS"], "}]}", "}, {name: missing, connection: COSMOS, databaseId: shop, containerId: nowhere}]}", 1)
	r := command(t, t.TempDir(), settings, "poll")
	lines := strings.Split(r.stdout, "\n")
	for i, want := range []string{
		`^PROCESSOR  STATUS   LAG  AGE  CATCH-UP  REPLICAS  PARTITIONS   RU  WHY$`,
		`^orders     lagging   25   \d+s         -        ↑1         1/1  \d\.\d  threshold: lag 25 at 10 per replica, capped to 1 partitions$`,
		`^missing    unknown    \?    -         -         \?           \?  \d\.\d$`,
		`^missing: account 127\.0\.0\.1: it says .*: there is no container nowhere in database shop \(404\S*\): correct databaseId and containerId$`,
	} {
		if len(lines) <= i || !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("line %d does not match %s:\n%s", i+1, want, r.stdout)
		}
	}
	if r.status != 1 {
		t.Errorf("status %d, want 1: a processor is incomplete", r.status)
	}
}

func TestPollPrintsThePartitionsToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	broken := w.leases.DotNetEPK(leasefake.Range{Min: "7F", Max: "FF"}, leasefake.Fields{})
	broken["ContinuationToken"] = 7
	w.put(broken)
	w.put(w.leases.DotNetEPK(leasefake.Range{Max: "7F"}, leasefake.Fields{Continuation: leasefake.At(5)}))
	w.put(w.leases.DotNetPKOld("0", at(25)))
	r := command(t, t.TempDir(), w.local(), "poll", "--partitions")
	lines := strings.Split(r.stdout, "\n")
	for i, want := range []string{
		`^PROCESSOR  STATUS     LAG  AGE  CATCH-UP  REPLICAS  PARTITIONS   RU  WHY$`,
		`^orders     unknown     20   \d+s         -        ↑2         1/3  \d\.\d  threshold: .*$`,
		`^  0        ok           0    -                                       owner worker$`,
		`^  7F-FF    unknown      \?    -                                       no owner; lease \S+: .*ContinuationToken.*$`,
		`^  -7F      unclaimed  ~20   \d+s                                       no owner$`,
	} {
		if len(lines) <= i || !regexp.MustCompile(want).MatchString(lines[i]) {
			t.Errorf("line %d does not match %s:\n%s", i+1, want, r.stdout)
		}
	}
}

// TestPollSaysWhenTheLagIsDrained polls three times on one state: a rate takes
// two polls.
func TestPollSaysWhenTheLagIsDrained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	folder := t.TempDir()
	for _, c := range []struct {
		rule       string
		checkpoint int64
		writes     int
		want       string
	}{
		{"no rate yet", 5, 0, "-"},
		{"five were done and none came", 10, 0, `\d+s`},
		{"five were done and fifty came", 15, 50, "never"},
	} {
		w.checkpoint(c.checkpoint)
		w.write(c.writes)
		r := command(t, folder, w.local(), "poll")
		if !regexp.MustCompile(`(?m)^orders +lagging +\d+ +\d+s +` + c.want + ` +\S?1 `).MatchString(r.stdout) {
			t.Errorf("%s: want %s in\n%s%s", c.rule, c.want, r.stdout, r.stderr)
		}
	}
}

func TestAFailureOfOneProcessorIsOneSentenceAndTheOthersArePolled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	settings := w.local()
	const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	settings["BADKEY"] = "AccountEndpoint=" + w.db.Endpoint() + ";AccountKey=" + secret + ";"
	settings["UNREACHABLE"] = "AccountEndpoint=http://127.0.0.1:1/;AccountKey=" + secret + ";"
	settings["FEEDSCALE_PROCESSORS"] = `{defaults: {databaseId: shop, containerId: orders, accountHost: ` + leaseHost + `}, processors: [
		{name: bad-key, connection: BADKEY}, {name: unreachable, connection: UNREACHABLE}, {name: orders, connection: COSMOS}, {name: missing, connection: COSMOS, containerId: nowhere}]}`
	r := command(t, t.TempDir(), settings, "poll", "--output", "json")
	var out struct {
		Processors []struct {
			Name   string
			Lag    *int64
			Error  *string
			Status string
		}
	}
	must(t, json.Unmarshal([]byte(r.stdout), &out))
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
	if r.status != 1 {
		t.Errorf("status %d, want 1", r.status)
	}
	if strings.Contains(r.stdout+r.stderr, secret) {
		t.Error("a key was shown")
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(25)
	folder := t.TempDir()
	settings := w.local()
	settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + queue
	r := command(t, folder, settings, "poll", "--dry-run", "--output", "json")
	if r.status != 0 || !strings.Contains(r.stdout, `"desiredReplicas":1`) {
		t.Errorf("status %d: %s%s", r.status, r.stdout, r.stderr)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if got := w.bus.Messages(queue); len(got) != 0 {
		t.Errorf("%d messages", len(got))
	}
}

func TestAnEventThatCannotBePublishedIsStatusOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.local()
	settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/nowhere"
	folder := t.TempDir()
	r := command(t, folder, settings, "poll", "--output", "json")
	if r.status != 1 || !strings.Contains(r.stderr, "nowhere") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	settings["FEEDSCALE_EVENTS"] = "servicebus:SERVICEBUS/" + queue
	if r := command(t, folder, settings, "poll"); r.status != 0 {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	w.wantEvents("orders-000000000001 null->0 false")
}

// TestEveryMistakeIsReportedAtOnce also holds that nothing is started or written.
func TestEveryMistakeIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	const document = "processors:\n- name: Orders\n  conection: COSMOS\n  databaseId: shop\n  containerId: orders\n  changeFeedLagThreshold: 0\n  schedule: daily\n"
	for _, args := range [][]string{{"poll"}, {"run"}, {"serve"}, {"poll", "--config", "processors.yaml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			must(t, os.WriteFile(filepath.Join(folder, "processors.yaml"), []byte(document), 0o600))
			r := command(t, folder, map[string]string{"FEEDSCALE_CONCURRENCY": "none"}, args...)
			if r.status != 2 || r.stdout != "" {
				t.Errorf("status %d, stdout %q", r.status, r.stdout)
			}
			for _, want := range []string{"FEEDSCALE_CONCURRENCY", "processors.yaml:2", "processors.yaml:3", "connection", "processors.yaml:6", "processors.yaml:7"} {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("%q is missing in:\n%s", want, r.stderr)
				}
			}
			if entries, _ := os.ReadDir(folder); len(entries) != 1 {
				t.Errorf("written: %v", entries)
			}
		})
	}
}

func TestBadUsageIsStatusTwo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"fly"}, {"poll", "--output", "xml"}, {"poll", "--fast"}, {"poll", "now"}, {"version", "--long"}, {"emulate", "--container", "orders"}, {"emulate", "--queue", "q:fifo"}, {"emulate", "--file", "nowhere.yaml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			if r := command(t, t.TempDir(), nil, args...); r.status != 2 || r.stdout != "" || r.stderr == "" {
				t.Errorf("status %d, stdout %q, stderr %q", r.status, r.stdout, r.stderr)
			}
		})
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"help"}, {"--help"}, {"poll", "--help"}, {"emulate", "-h"}} {
		if r := command(t, t.TempDir(), nil, args...); r.status != 0 || !strings.Contains(r.stdout, "usage: feedscale") || r.stderr != "" {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, r.status, r.stdout, r.stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if r := command(t, t.TempDir(), nil, "version"); r.status != 0 || !regexp.MustCompile(`^feedscale \S+ go1\.\S+ \S+/\S+\n$`).MatchString(r.stdout) {
		t.Errorf("status %d, %q", r.status, r.stdout)
	}
}

func TestASecondProcessOnAStateFileIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	settings := w.local()
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	first := prepare(t, folder, settings, "run")
	stderr, err := first.StderrPipe()
	must(t, err)
	must(t, first.Start())
	newLines(stderr).await(t, `"msg":"listening"`)
	r := command(t, folder, settings, "poll")
	if r.status != 2 || !strings.Contains(r.stderr, "another process") {
		t.Errorf("status %d: %s", r.status, r.stderr)
	}
	must(t, first.Process.Signal(os.Interrupt))
	if err := first.Wait(); err != nil {
		t.Errorf("run, interrupted: %v", err)
	}
}

func TestRunPollsAtOnceAndThenByTheTimer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.local()
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	settings["FEEDSCALE_TIMER_SCHEDULE"] = "* * * * * *"
	c := prepare(t, t.TempDir(), settings, "run")
	stdout, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	printed := newLines(stdout)
	first := printed.await(t, `"orders-000000000001"`)
	if !strings.Contains(first, `"desiredReplicas":0`) {
		t.Errorf("the first event is %s", first)
	}
	w.write(5)
	if second := printed.await(t, `"orders-000000000002"`); !strings.Contains(second, `"desiredReplicas":1`) {
		t.Errorf("the second event is %s", second)
	}
	must(t, c.Process.Signal(os.Interrupt))
	if err := c.Wait(); err != nil {
		t.Errorf("run, interrupted: %v", err)
	}
}

// TestEmulateServesWhatItsFlagsAndFileDescribe polls against it.
func TestEmulateServesWhatItsFlagsAndFileDescribe(t *testing.T) {
	t.Parallel()
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", withTLS), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			must(t, os.WriteFile(filepath.Join(folder, "world.yaml"), []byte("databases: [empty]\ncontainers:\n- {database: shop, id: leases}\nqueues:\n- {name: scale-events, duplicateDetection: 10m}\n"), 0o600))
			args := []string{"emulate", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0", "--container", "shop/orders:4:/customerId", "--file", "world.yaml"}
			if withTLS {
				args = append(args, "--tls")
			}
			c := prepare(t, folder, nil, args...)
			stdout, err := c.StdoutPipe()
			must(t, err)
			must(t, c.Start())
			settings := map[string]string{
				"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]}`,
				"FEEDSCALE_EVENTS":     "servicebus:SERVICEBUS/scale-events",
			}
			names := []string{"COSMOS", "SERVICEBUS"}
			if withTLS {
				names = append(names, "SSL_CERT_FILE")
			}
			lines := newLines(stdout)
			for _, name := range names {
				line := lines.await(t, name+"=")
				settings[name] = strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), name+"="), `"`)
			}
			r := command(t, folder, settings, "poll", "--output", "json")
			if r.status != 0 || !strings.Contains(r.stdout, `"status":"bootstrap"`) {
				t.Errorf("status %d: %s%s", r.status, r.stdout, r.stderr)
			}
			must(t, c.Process.Signal(os.Interrupt))
			if err := c.Wait(); err != nil {
				t.Errorf("emulate, interrupted: %v", err)
			}
		})
	}
}

// TestLocalSettingsSampleIsComplete holds that the sample is what `func start`
// needs with the stand-ins at their default addresses.
func TestLocalSettingsSampleIsComplete(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../local.settings.sample.json")
	must(t, err)
	var sample struct{ Values map[string]string }
	must(t, json.Unmarshal(text, &sample))
	for _, name := range []string{"FUNCTIONS_WORKER_RUNTIME", "AzureWebJobsStorage", "FEEDSCALE_TIMER_SCHEDULE"} {
		if sample.Values[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if got, want := sample.Values["COSMOS"], "AccountEndpoint=http://127.0.0.1:8081/;AccountKey="+cosmosfake.WellKnownKey+";"; got != want {
		t.Errorf("COSMOS is %s, want %s", got, want)
	}
	want := "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=" + servicebusfake.DefaultKeyName + ";SharedAccessKey=" + servicebusfake.DefaultKey + ";UseDevelopmentEmulator=true"
	if got := sample.Values["SERVICEBUS"]; got != want {
		t.Errorf("SERVICEBUS is %s, want %s", got, want)
	}
	settings := sample.Values
	settings["FEEDSCALE_LISTEN"] = "127.0.0.1:0"
	settings["AzureWebJobsStorage"] = made(t, startTables).ConnectionString()
	r := command(t, t.TempDir(), settings, "poll", "--dry-run", "--output", "json")
	if r.status == 2 {
		t.Errorf("the sample is refused: %s", r.stderr)
	}
}

func TestStagingTwiceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	again := filepath.Join(t.TempDir(), "app")
	dist := exec.CommandContext(t.Context(), "make", "dist", "DIST="+again, "GOOS=", "GOARCH=")
	dist.Dir = ".."
	if output, err := dist.CombinedOutput(); err != nil {
		t.Fatalf("make dist: %v\n%s", err, output)
	}
	staged := made(t, stage)
	must(t, filepath.WalkDir(staged, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, _ := filepath.Rel(staged, path)
		first, err := os.ReadFile(path)
		must(t, err)
		second, err := os.ReadFile(filepath.Join(again, relative))
		must(t, err)
		if !bytes.Equal(first, second) {
			t.Errorf("%s differs", relative)
		}
		return nil
	}))
}

func TestTheStagedFolderIsWhatTheHostNeeds(t *testing.T) {
	t.Parallel()
	staged := made(t, stage)
	var got []string
	err := filepath.WalkDir(staged, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			relative, _ := filepath.Rel(staged, path)
			got = append(got, relative)
		}
		return err
	})
	must(t, err)
	slices.Sort(got)
	want := []string{"dashboard/function.json", "handler", "host.json", "local.settings.json", "metrics/function.json", "poll/function.json", "processors/function.json"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("staged %q, want %q", got, want)
	}
	if info, err := os.Stat(filepath.Join(staged, "handler")); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the handler cannot be executed: %v, %v", info, err)
	}
}

func TestAnEventIsHeartbeatenByPoll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	settings := w.local()
	settings["FEEDSCALE_EVENT_HEARTBEAT"] = "1s"
	if r := command(t, folder, settings, "poll"); firstEvent(r.stderr) == "" {
		t.Errorf("no first event: %s", r.stderr)
	}
	eventually(t, "a heartbeat", func() bool { return firstEvent(command(t, folder, settings, "poll").stderr) != "" })
}

// TestTheDemoClosesTheLoop holds that events bring workers, which take the lag
// away, and that the end is clean.
func TestTheDemoClosesTheLoop(t *testing.T) {
	t.Parallel()
	c := prepare(t, t.TempDir(), map[string]string{"FEEDSCALE_LISTEN": "127.0.0.1:0"}, "demo")
	stdout, err := c.StdoutPipe()
	must(t, err)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	must(t, c.Start())
	printed := newLines(stdout)
	printed.await(t, "payments   - → 1   bootstrap")
	printed.await(t, "payments   1 → ")
	printed.await(t, "audit      1 → 2   stalled")
	printed.await(t, " → 0   ok")
	must(t, c.Process.Signal(os.Interrupt))
	if err := c.Wait(); err != nil {
		t.Errorf("demo, interrupted: %v", err)
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", stderr.String())
	}
}
