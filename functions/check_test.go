package main_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// The tests of check with a state table, which is Azurite here. Everything else about check is
// tested in functions/internal/cli.

const badKey = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="

// checked runs check and makes sure that it prints no secret.
func checked(t *testing.T, settings map[string]string) (check.Report, testworld.Result) {
	t.Helper()
	r := command(t, t.TempDir(), settings, "check", "--output", "json")
	for _, secret := range []string{cosmosfake.WellKnownKey, servicebusfake.DefaultKey, "Eby8vdM02xNOcqFlq", badKey} {
		if strings.Contains(r.Stdout+r.Stderr, secret) {
			t.Errorf("a secret is shown: %s%s", r.Stdout, r.Stderr)
		}
	}
	return testworld.Decode[check.Report](t, []byte(r.Stdout)), r
}

func TestCheckHoldsWhereEverythingDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got, r := checked(t, w.settings())
	var summary []string
	for _, l := range got.Checks {
		summary = append(summary, l.Check+" "+string(l.Status))
	}
	want := []string{
		"settings ok",
		// the account
		"dns ok", "connection ok", "tls skip", "clock ok", "identity skip", "read metadata ok",
		// database, container, lease container
		"read metadata ok", "read metadata ok", "read feed ok", "query leases ok", "partition key ok",
		"find leases ok",
		// the table
		"dns ok", "connection ok", "tls skip", "clock ok", "identity skip", "write state ok",
		"dns ok", "connection ok", "tls skip", "identity skip", "send ok", // the queue
	}
	if !slices.Equal(summary, want) {
		t.Errorf("got  %q\nwant %q\n%s", summary, want, r.Stdout)
	}
	if r.Status != 0 || !got.OK || r.Stderr != "" {
		t.Errorf("status %d, ok is %v, standard error %q", r.Status, got.OK, r.Stderr)
	}
	if sent := w.Namespace.Messages(testworld.Queue); len(sent) != 0 {
		t.Errorf("%d messages were sent", len(sent))
	}
	if record, err := storetest.Load(t.Context(), w.store(), "orders"); err != nil || record.Version != "" {
		t.Errorf("state was written: %+v, %v", record, err)
	}
	fields := regexp.MustCompile(`{"target":"[^"]+","check":"[^"]+","status":"(ok|skip)","detail":"[^"]+","fix":null,"processors":\["orders"\]}`)
	if n := len(fields.FindAllString(r.Stdout, -1)); n != len(want) {
		t.Errorf("%d of %d lines have all fields, in their order:\n%s", n, len(want), r.Stdout)
	}
}

func TestAStorageAccountWithAnotherKeyIsSaidOnceWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	settings := newWorld(t).settings()
	settings["TABLES"] = regexp.MustCompile(`AccountKey=[^;]+`).ReplaceAllString(settings["AzureWebJobsStorage"], "AccountKey="+badKey)
	settings["FEEDSCALE_STATE"] = "table:TABLES/feedscale"
	got, r := checked(t, settings)
	failed := slices.DeleteFunc(got.Checks, func(l check.Line) bool { return l.Status != check.Fail })
	if len(failed) != 1 || got.OK || r.Status != 1 {
		t.Fatalf("status %d, %d lines fail, want one:\n%s", r.Status, len(failed), r.Stdout)
	}
	const fix = "az storage account show-connection-string --resource-group RESOURCE_GROUP --name STORAGE_ACCOUNT --query connectionString   # copy it again from the storage account; or let this machine through the account's network rules"
	if l := failed[0]; !strings.HasSuffix(l.Target, "/feedscale") || l.Check != "write state" || !strings.Contains(l.Detail, "account key") || l.Fix == nil || *l.Fix != fix {
		t.Errorf("%s", r.Stdout)
	}
}
