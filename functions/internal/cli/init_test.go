package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// newInitWorld is an account with leases in two databases, among data. Its clock is the machine's, with
// which check compares it.
func newInitWorld(t *testing.T) (w *leaseWorld, file string) {
	t.Helper()
	w = &leaseWorld{World: testworld.New(t, testworld.Options{Account: cosmosfake.Options{VersionRetention: time.Hour}}), t: t}
	w.Container("orders", 1)
	w.Container("my_orders", 1)
	w.settings = map[string]string{"COSMOS": strings.Replace(w.Account.ConnectionString(), "127.0.0.1", ownHost, 1)}
	w.everySDK()
	testworld.Must(t, w.Account.CreateDatabase("other"))
	testworld.Must(t, w.Account.CreateContainer("other", cosmosfake.ContainerSpec{ID: "checkpoints", PartitionKey: []string{"/partitionKey"}}))
	testworld.Must(t, w.Account.CreateContainer("other", cosmosfake.ContainerSpec{ID: "tenants", PartitionKey: []string{"/tenant"}}))
	lease := w.LeasesOf("projection", ownHost, "my_orders").DotNetPKOld("0", renewed(0))
	lease["partitionKey"] = lease["id"]
	testworld.Must(t, w.Account.Upsert("other", "checkpoints", lease))
	w.settings["FEEDSCALE_STATE"] = stateFile(t)
	return w, filepath.Join(t.TempDir(), "processors.yaml")
}

func TestInitWritesAFileThatFindsEveryProcessor(t *testing.T) {
	t.Parallel()
	w, file := newInitWorld(t)
	r := w.run(t, "init", "--config", file)
	if r.Status != 0 || r.Stderr != "" || !strings.Contains(r.Stdout, "account localhost: 2 databases, 5 containers: leases in 2 of the 4 that can hold them") ||
		!strings.Contains(r.Stdout, "7 processors") || !strings.Contains(r.Stdout, "find leases") {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(file)
	testworld.Must(t, err)
	if first, _, _ := strings.Cut(string(text), "\n"); first != "# yaml-language-server: $schema="+config.SchemaURL {
		t.Errorf("the first line is %s", first)
	}
	for _, want := range []string{"# 1 lease of shop/my_orders in other/checkpoints, ", "  leaseDatabaseId: other\n  leaseContainerId: checkpoints\n", "startFrom", ": act.md"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	got := testworld.Decode[polled](t, []byte(w.run(t, "poll", "--dry-run", "--output", "json", "--config", file).Stdout)).Processors
	if len(got) != 7 {
		t.Errorf("%d processors", len(got))
	}
	for _, p := range got {
		if !p.Complete || *p.PartitionCount != 1 {
			t.Errorf("%s: %+v", p.Name, p)
		}
	}
	if again := w.run(t, "init", "--config", file); again.Status != 2 || again.Stdout != "" || !strings.Contains(again.Stderr, "exists, and is not overwritten; name another file with --config") {
		t.Errorf("again: %+v", again)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(text) {
		t.Errorf("what was there was written over: %v", err)
	}
}

// TestInitProposesWhatTheConfigurationTakesAlone has a lease id that is longer than any name may be, and a name with
// characters that cannot be seen.
func TestInitProposesWhatTheConfigurationTakesAlone(t *testing.T) {
	t.Parallel()
	const unseen = "pay\u202e\u200bments\u00a0\U000e0041\u0007"
	w, file := newInitWorld(t)
	w.put(
		w.LeasesOf(strings.Repeat("long", 225), ownHost, "orders").DotNetPKOld("0", renewed(0)),
		w.LeasesOf(unseen, ownHost, "orders").DotNetPKOld("0", renewed(0)),
	)
	for _, args := range [][]string{{"leases", "--connection", "COSMOS", "--database", "shop"}, {"init", "--config", file}} {
		r := w.run(t, args...)
		if r.Status != 0 || r.Stderr != "" {
			t.Errorf("%s: %+v", args[0], r)
		}
		harmless(t, args[0], r.Stdout, false)
		for line := range strings.Lines(r.Stdout) {
			if len(line) > 700 {
				t.Errorf("%s prints a line of %d bytes: %.80s…", args[0], len(line), line)
			}
		}
	}
	text, err := os.ReadFile(file)
	testworld.Must(t, err)
	harmless(t, "the file", string(text), false)
	if !regexp.MustCompile(`(?m)^# [long]+…: .*processorName.* allowed are up to 255 characters`).Match(text) {
		t.Errorf("what is left out is not named:\n%s", text)
	}
	if !regexp.MustCompile(`(?m)^# pay .*: a name has invisible characters`).Match(text) {
		t.Errorf("that a name cannot be printed is not said:\n%s", text)
	}
	c, err := config.Load(file, text, config.Lookup(testworld.Environ(w.settings)))
	if err != nil || len(c.Processors) != 7 {
		t.Errorf("%d processors, %v\n%s", len(c.Processors), err, text)
	}
	for _, p := range testworld.Decode[polled](t, []byte(w.run(t, "poll", "--dry-run", "--output", "json", "--config", file).Stdout)).Processors {
		if !p.Complete || *p.PartitionCount != 1 {
			t.Errorf("%s: %+v", p.Name, p)
		}
	}
}

func TestInitLooksWhereItIsAsked(t *testing.T) {
	t.Parallel()
	w, file := newInitWorld(t)
	w.settings["SHOP"] = w.settings["COSMOS"]
	w.settings["FEEDSCALE_CONFIG"] = file
	r := w.run(t, "init", "SHOP", "--database", "other")
	text, err := os.ReadFile(file)
	if r.Status != 0 || err != nil || strings.Count(string(text), "- name:") != 1 || !strings.Contains(string(text), "connection: SHOP") || !strings.Contains(r.Stdout, "1 database, 2 containers: leases in 1 of the 1 that") {
		t.Errorf("%+v, %v\n%s", r, err, text)
	}
}

func TestWhereNothingIsFoundNothingIsWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule     string
		prepare  func(*leaseWorld)
		args     []string
		status   int
		says     string
		requests bool // whether the account is asked at all
	}{
		{"no leases", func(*leaseWorld) {}, nil, 1, "no container that was looked at holds leases", true},
		{"documents of other kinds", func(w *leaseWorld) { w.Write("orders", 200) }, nil, 1, "3 containers: leases in 0 of the 3 that can hold them", true},
		{"leases that nothing can be told of", func(w *leaseWorld) {
			w.put(leasefake.Processor{Name: "far", Host: "other.documents.azure.com", Database: "shop", Container: "gone"}.JavaPK("0", renewed(0)))
		}, nil, 1, "the leases describe no processor completely", true},
		{"another database", func(*leaseWorld) {}, []string{"--database", "nowhere"}, 1, "nowhere", true},
		{"another setting", func(*leaseWorld) {}, []string{"SHOP"}, 2, "SHOP", false},
		{"several settings", func(*leaseWorld) {}, []string{"A", "B"}, 2, "name one, the connection of the account", false},
		{"a list that is refused", func(w *leaseWorld) {
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind != cosmosfake.ListDatabases {
					return nil
				}
				return &cosmosfake.Answer{Status: http.StatusForbidden}
			})
		}, nil, 1, "with --database only that one is looked at", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newLeaseWorld(t)
			c.prepare(w)
			var asked atomic.Int64
			w.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer { asked.Add(1); return nil })
			file := filepath.Join(t.TempDir(), "processors.yaml")
			r := w.run(t, append([]string{"init", "--config", file}, c.args...)...)
			if r.Status != c.status || !strings.Contains(r.Stdout+r.Stderr, c.says) || (asked.Load() > 0) != c.requests {
				t.Errorf("%d requests, %+v", asked.Load(), r)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("a file is written")
			}
		})
	}
}

func TestWhatCannotBeReadIsSkippedAndSaid(t *testing.T) {
	t.Parallel()
	w, file := newInitWorld(t)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.QueryDocuments || r.Container != "checkpoints" {
			return nil
		}
		return &cosmosfake.Answer{Status: http.StatusForbidden}
	})
	r := w.run(t, "init", "--config", file)
	text, err := os.ReadFile(file)
	if r.Status != 0 || err != nil || !strings.Contains(r.Stdout, "skipped other/checkpoints: ") || strings.Count(string(text), "- name:") != 6 {
		t.Errorf("%+v, %v\n%s", r, err, text)
	}
}

// TestAContainerOfManyDocumentsIsNotSearched counts requests: some leases among thousands of documents.
func TestAContainerOfManyDocumentsIsNotSearched(t *testing.T) {
	t.Parallel()
	w, file := newInitWorld(t)
	testworld.Must(t, w.Account.CreateContainer("other", cosmosfake.ContainerSpec{ID: "mixed", PartitionKey: []string{"/id"}}))
	testworld.Must(t, w.Account.Upsert("other", "mixed", w.LeasesOf("hidden", ownHost, "orders").JavaPK("0", renewed(0))))
	for i := range 3000 {
		testworld.Must(t, w.Account.Upsert("other", "mixed", map[string]any{"id": fmt.Sprint("document-", i)}))
	}
	var asked atomic.Int64
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Container == "mixed" {
			asked.Add(1)
		}
		return nil
	})
	r := w.run(t, "init", "--config", file)
	if r.Status != 0 || asked.Load() > 3 || !strings.Contains(r.Stdout, "skipped other/mixed: only 1 of its first 50 documents are leases, so it is not searched; feedscale leases --connection COSMOS --database other --container mixed searches it") {
		t.Errorf("%d requests, %+v", asked.Load(), r)
	}
}

// TestAFileOfInitIsCheckedAsAnyOther holds that the exit status is that of check.
func TestAFileOfInitIsCheckedAsAnyOther(t *testing.T) {
	t.Parallel()
	w, file := newInitWorld(t)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReadChangeFeed {
			return nil
		}
		return &cosmosfake.Answer{Status: http.StatusForbidden}
	})
	r := w.run(t, "init", "--config", file)
	checked := testworld.Decode[check.Report](t, []byte(w.run(t, "check", "--config", file, "--output", "json").Stdout))
	if r.Status != 1 || checked.OK || !strings.Contains(r.Stdout, "checks failed") {
		t.Errorf("%+v", r)
	}
}

func TestTheDocumentationShowsWhatInitWrites(t *testing.T) {
	t.Parallel()
	w := newLeaseWorld(t)
	w.settings["FEEDSCALE_STATE"] = stateFile(t)
	for n := range 4 {
		w.put(w.LeasesOf("projection", ownHost, "orders").DotNetPKOld(fmt.Sprint(n), renewed(0)))
	}
	file := filepath.Join(t.TempDir(), "processors.yaml")
	w.run(t, "init", "--config", file) // check says that its clock stands still
	text, err := os.ReadFile(file)
	testworld.Must(t, err)
	page, err := os.ReadFile("../../../docs/configure.md")
	testworld.Must(t, err)
	_, rest, _ := strings.Cut(string(page), "## From an account")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	if got := strings.ReplaceAll(string(text), ownHost, "shop.documents.azure.com"); got != shown {
		t.Errorf("docs/configure.md shows\n%s\nand init writes\n%s", shown, got)
	}
}
