package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// emulating starts the stand-ins in a folder and returns the settings to reach them.
func emulating(t *testing.T, folder string, withTLS bool, args ...string) (running, map[string]string) {
	t.Helper()
	names := []string{"COSMOS", "SERVICEBUS"}
	args = append([]string{"emulate", "--cosmos", "127.0.0.1:0", "--servicebus", "127.0.0.1:0"}, args...)
	if withTLS {
		names, args = append(names, "SSL_CERT_FILE"), append(args, "--tls")
	}
	c := start(t, folder, nil, args...)
	settings := map[string]string{
		"FEEDSCALE_PROCESSORS": `{processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders}]}`,
		"FEEDSCALE_EVENTS":     "servicebus:SERVICEBUS/" + testworld.Queue,
	}
	for _, name := range names {
		settings[name] = strings.Trim(strings.TrimPrefix(strings.TrimSpace(c.stdout.await(t, name+"=")), name+"="), `"`)
	}
	return c, settings
}

// TestEmulateServesWhatItsFlagsAndFileDescribe polls against it.
func TestEmulateServesWhatItsFlagsAndFileDescribe(t *testing.T) {
	t.Parallel()
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", withTLS), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			testworld.Must(t, os.WriteFile(filepath.Join(folder, "world.yaml"), []byte("databases: [empty]\ncontainers:\n- {database: shop, id: leases}\nqueues:\n- {name: scale-events, duplicateDetection: 10m}\n"), 0o600))
			c, settings := emulating(t, folder, withTLS, "--container", "shop/orders:4:/customerId", "--file", "world.yaml")
			r := command(t, folder, settings, "poll", "--output", "json")
			if r.Status != 0 || !strings.Contains(r.Stdout, `"status":"bootstrap"`) {
				t.Errorf("status %d: %s%s", r.Status, r.Stdout, r.Stderr)
			}
			c.interrupt(t)
		})
	}
}

// TestEmulateTakesFaultsOverHTTP: a poll fails, and succeeds after the reset.
func TestEmulateTakesFaultsOverHTTP(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c, settings := emulating(t, folder, false, "--control", "127.0.0.1:0", "--container", "shop/orders", "--container", "shop/leases", "--queue", testworld.Queue)
	faults := strings.Trim(strings.TrimPrefix(strings.TrimSpace(c.stdout.await(t, "FAULTS=")), "FAULTS="), `"`)
	ask := func(method, fault string, want int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, faults, strings.NewReader(fault))
		testworld.Must(t, err)
		response, err := http.DefaultClient.Do(request)
		testworld.Must(t, err)
		if response.Body.Close(); response.StatusCode != want {
			t.Errorf("%s is answered %s", method, response.Status)
		}
	}
	ask(http.MethodPost, `{"cosmos": {"kind": "query documents", "status": 403, "times": 0}}`, http.StatusOK)
	if r := command(t, folder, settings, "poll"); r.Status == 0 {
		t.Errorf("polled all the same: %s", r.Stdout)
	}
	ask(http.MethodDelete, "", http.StatusNoContent)
	if r := command(t, folder, settings, "poll"); r.Status != 0 {
		t.Errorf("status %d after the reset: %s", r.Status, r.Stderr)
	}
	c.interrupt(t)
}

// TestStandInsWithTLSHold also checks that the AMQP port presents its certificate.
func TestStandInsWithTLSHold(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c, settings := emulating(t, folder, true, "--container", "shop/orders", "--container", "shop/leases", "--queue", testworld.Queue)
	r := command(t, folder, settings, "check", "--output", "json")
	got, trusted := testworld.Decode[check.Report](t, []byte(r.Stdout)), strings.Count(r.Stdout, "the certificate is trusted and valid until ")
	if !got.OK || r.Status != 0 || trusted != 2 {
		t.Errorf("status %d, %d certificates, want those of account and namespace: %s", r.Status, trusted, r.Stdout)
	}
	c.interrupt(t)
}
