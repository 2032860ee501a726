package azurite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/azurite"
)

// callsVariable names a file to which every call of the false npm adds a byte.
const callsVariable = "AZURITE_TEST_CALLS"

func installOnce() int {
	dir, err := azurite.Install(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(dir)
	return 0
}

// installSlowly is the false npm: it counts the call, and takes long enough for the other processes
// to arrive.
func installSlowly() int {
	calls, err := os.OpenFile(os.Getenv(callsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	if _, err := calls.WriteString("."); err != nil {
		return 1
	}
	<-time.After(300 * time.Millisecond)
	if err := os.Mkdir("node_modules", 0o750); err != nil {
		return 1
	}
	return 0
}

func TestProcessesThatInstallAtOnceInstallOnce(t *testing.T) {
	t.Parallel()
	bin, cache := t.TempDir(), t.TempDir()
	calls := filepath.Join(t.TempDir(), "calls")
	if err := os.Symlink(os.Args[0], filepath.Join(bin, executable("npm"))); err != nil {
		t.Fatal(err)
	}
	environment := append(os.Environ(), roleVariable+"=install", callsVariable+"="+calls,
		"PATH="+bin, "HOME="+cache, "XDG_CACHE_HOME="+cache, "LocalAppData="+cache)

	var installers [5]*exec.Cmd
	var outputs [len(installers)]strings.Builder
	for i := range installers {
		installers[i] = exec.CommandContext(t.Context(), os.Args[0])
		installers[i].Env = environment
		installers[i].Stdout = &outputs[i]
		if err := installers[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, installer := range installers {
		if err := installer.Wait(); err != nil {
			t.Fatalf("process %d: %v: %s", i, err, &outputs[i])
		}
		dir := strings.TrimSpace(outputs[i].String())
		if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
			t.Errorf("process %d: not installed in %q", i, dir)
		}
		if !strings.HasPrefix(dir, cache) || !strings.HasSuffix(dir, "azurite-"+azurite.Version) {
			t.Errorf("process %d: installed in %q", i, dir)
		}
	}
	got, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "." {
		t.Errorf("npm was called %d times, want once", len(got))
	}
}

func TestTheVersionIsThePinnedOne(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join("npm", "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(content, &manifest); err != nil {
		t.Fatal(err)
	}
	if got := manifest.Dependencies["azurite"]; got != azurite.Version {
		t.Errorf("npm/package.json has %s, Version is %s", got, azurite.Version)
	}
}
