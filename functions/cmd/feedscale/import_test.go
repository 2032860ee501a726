package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const scaledObject = `apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: orders, namespace: shop}
spec:
  scaleTargetRef: {name: orders}
  initialCooldownPeriod: 60
  triggers:
  - type: azure-cosmosdb
    metadata: {databaseId: shop, containerId: orders, leaseDatabaseId: shop, leaseContainerId: leases, processorName: projection, connectionFromEnv: COSMOS}
`

// inFolder writes files into a folder of their own.
func inFolder(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range files {
		testworld.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

func TestAnImportIsPrintedAndWhatItLeavesOutIsSaid(t *testing.T) {
	t.Parallel()
	folder := inFolder(t, map[string]string{"orders.yaml": scaledObject})
	from := filepath.Join(folder, "orders.yaml")
	status, stdout, stderr := run(t, "import", from)
	if status != 0 || !strings.HasPrefix(stdout, "# yaml-language-server: $schema=") || !strings.Contains(stdout, "\n- name: orders\n  connection: COSMOS\n") {
		t.Errorf("status %d, stdout %q", status, stdout)
	}
	for _, want := range []string{from + ":6: spec.initialCooldownPeriod: cooldownPeriod counts", "settings to make:\n  COSMOS: a connection string"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q is missing in\n%s", want, stderr)
		}
	}
}

func TestAnImportIsWrittenToANewFileAlone(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--output", "-o"} {
		folder := inFolder(t, map[string]string{"orders.yaml": scaledObject})
		from, to := filepath.Join(folder, "orders.yaml"), filepath.Join(folder, "processors.yaml")
		// The flag comes behind the name, too.
		if status, stdout, stderr := run(t, "import", from, flag, to); status != 0 || stdout != "" {
			t.Fatalf("%s: status %d, stdout %q, stderr %q", flag, status, stdout, stderr)
		}
		written, err := os.ReadFile(to)
		testworld.Must(t, err)
		if _, printed, _ := run(t, "import", from); string(written) != printed {
			t.Errorf("%s: written\n%s\nprinted\n%s", flag, written, printed)
		}
		testworld.Must(t, os.WriteFile(to, []byte("mine"), 0o600))
		status, _, stderr := run(t, "import", flag, to, from)
		if status != 2 || !strings.Contains(stderr, to+" is there already") {
			t.Errorf("%s, to a file that is there: status %d, stderr %q", flag, status, stderr)
		}
		if kept, err := os.ReadFile(to); err != nil || string(kept) != "mine" {
			t.Errorf("%s: it was written over: %q, %v", flag, kept, err)
		}
	}
}

func TestEverythingThatCannotBeImportedIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	folder := inFolder(t, map[string]string{
		"orders.yaml": scaledObject, "broken.yaml": "a: b: c\n", "other.yaml": "services: {}\n", "job.yaml": "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\n",
	})
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct {
		rule string
		args []string
		says []string
	}{
		{"no file", nil, []string{"the files to import are missing"}},
		{"a flag that there is not", []string{"--to", "x", in("orders.yaml")}, []string{"-to"}},
		{"three of four", []string{in("orders.yaml"), in("broken.yaml"), in("other.yaml"), in("nowhere.yaml"), folder},
			[]string{in("broken.yaml") + ":1: is not valid YAML", in("other.yaml") + ":1: is nothing that can be imported", in("nowhere.yaml") + ": cannot be read (no such file", folder + ": cannot be read ("}},
		{"a file that is not there, alone", []string{in("nowhere.yaml")}, []string{in("nowhere.yaml") + ": cannot be read (no such file"}},
		{"nothing but what cannot be carried over", []string{in("job.yaml")}, []string{in("job.yaml") + ":1: a ScaledJob starts", "there is nothing to import"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := run(t, append([]string{"import"}, c.args...)...)
			if status != 2 || stdout != "" {
				t.Errorf("status %d, stdout %q", status, stdout)
			}
			for _, want := range c.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is missing in\n%s", want, stderr)
				}
			}
		})
	}
}
