package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/program"
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

// inFolder writes files into a new folder.
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
	folder := inFolder(t, map[string]string{"orders.yaml": scaledObject})
	from, to := filepath.Join(folder, "orders.yaml"), filepath.Join(folder, "processors.yaml")
	// A flag may follow the name.
	if status, stdout, stderr := run(t, "import", from, "--config", to); status != 0 || stdout != "" {
		t.Fatalf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	written, err := os.ReadFile(to)
	testworld.Must(t, err)
	if _, printed, _ := run(t, "import", from); string(written) != printed {
		t.Errorf("written\n%s\nprinted\n%s", written, printed)
	}
	testworld.Must(t, os.WriteFile(to, []byte("mine"), 0o600))
	status, _, stderr := run(t, "import", "--config", to, from)
	if status != 2 || !strings.Contains(stderr, to+" exists, and is not overwritten") {
		t.Errorf("to a file that is there: status %d, stderr %q", status, stderr)
	}
	if kept, err := os.ReadFile(to); err != nil || string(kept) != "mine" {
		t.Errorf("it was written over: %q, %v", kept, err)
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
		{"no file", nil, []string{"name the files to import"}},
		{"a flag that there is not", []string{"--to", "x", in("orders.yaml")}, []string{"-to"}},
		{"three of four", []string{in("orders.yaml"), in("broken.yaml"), in("other.yaml"), in("nowhere.yaml"), t.TempDir()},
			[]string{in("broken.yaml") + ":1: is not valid YAML", in("other.yaml") + ":1: cannot be imported", in("nowhere.yaml") + ": cannot be read (no such file", ": cannot be read (is a directory)"}},
		{"a file to write, as in earlier releases", []string{in("orders.yaml"), "-o", "processors.yaml"}, []string{`--output is "processors.yaml"; allowed is yaml. --config names the file to write`}},
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

func TestAnImportReadsStandardInputAndSeveralFiles(t *testing.T) {
	t.Parallel()
	const function = `{"bindings": [{"type": "cosmosDBTrigger", "name": "changes", "direction": "in", "connection": "COSMOS", "databaseName": "shop", "containerName": "payments"}]}`
	folder := inFolder(t, map[string]string{"orders.yaml": scaledObject})
	testworld.Must(t, os.Mkdir(filepath.Join(folder, "Pay"), 0o700))
	testworld.Must(t, os.WriteFile(filepath.Join(folder, "Pay", "function.json"), []byte(function), 0o600))
	var piped bytes.Buffer
	var said strings.Builder
	env := program.Env{Args: []string{"import", "-"}, Stdin: strings.NewReader(""), Stdout: &piped, Stderr: &said, Now: time.Now}
	if status := program.Main(t.Context(), env, commands(), ""); status != 2 || !strings.HasPrefix(said.String(), "feedscale: standard input: is empty") {
		t.Errorf("status %d, %s", status, &said)
	}
	env.Stdin, env.Stderr = strings.NewReader(scaledObject), io.Discard
	if status := program.Main(t.Context(), env, commands(), ""); status != 0 || !strings.Contains(piped.String(), "- name: orders\n") {
		t.Errorf("of standard input: status %d, %s", status, piped.String())
	}
	status, stdout, stderr := run(t, "import", filepath.Join(folder, "orders.yaml"), filepath.Join(folder, "Pay", "function.json"))
	if status != 0 || !strings.Contains(stdout, "- name: orders\n") || !strings.Contains(stdout, "- name: pay\n") {
		t.Errorf("of several files: status %d, stdout %s, stderr %s", status, stdout, stderr)
	}
}
