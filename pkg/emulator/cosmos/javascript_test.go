package cosmos_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/interop"
)

// The packages are installed outside the tree, once per version of the lock file.
func installNodeModules(t *testing.T) (script string) {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "feedscale", "cosmos-js")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unchanged := true
	for _, name := range []string{"package.json", "package-lock.json", "client.mjs"} {
		wanted, err := os.ReadFile(filepath.Join("testdata", "js", name))
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && string(have) == string(wanted) {
			continue
		}
		unchanged = unchanged && name == "client.mjs"
		if err := os.WriteFile(filepath.Join(dir, name), wanted, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@azure", "cosmos")); err != nil || !unchanged {
		install := exec.CommandContext(t.Context(), "npm", "ci", "--no-audit", "--no-fund")
		install.Dir = dir
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("installing the JavaScript SDK with npm: %v\n%s", err, out)
		}
	}
	return filepath.Join(dir, "client.mjs")
}

func TestTheJavaScriptSDKCannotTellTheDifference(t *testing.T) {
	t.Parallel()
	script := installNodeModules(t)
	account, err := cosmos.Start(cosmos.Options{VersionRetention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = account.Close() }()
	if err := interop.Conduct(t.Context(), account, nil, t.Output(), nil, "node", script); err != nil {
		t.Fatal(err)
	}
}
