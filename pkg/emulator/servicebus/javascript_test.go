package servicebus_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebus"
)

// TestTheJavaScriptClientCannotTell runs the official client. It needs Node.js and, the first time, a package registry.
func TestTheJavaScriptClientCannotTell(t *testing.T) {
	t.Parallel()
	folder := installed(t)
	certificate, _ := certificate(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	must(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	tests := map[string]*tls.Config{
		"in plain":  nil,
		"under TLS": {Certificates: []tls.Certificate{certificate}},
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, servicebus.Options{
				TLS: config, Queues: []servicebus.QueueSpec{{Name: "orders"}, {Name: "sessions", RequiresSession: true}},
			})
			client := exec.CommandContext(deadline(t), "node", "client.mjs", s.ConnectionString())
			client.Dir = folder
			client.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+trusted)
			if output, err := client.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
		})
	}
}

// installed is a folder outside the tree that holds the script and the packages of its lock file. Its name tells its content, so
// that what is there need not be looked at.
func installed(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	must(t, err)
	names := []string{"client.mjs", "package.json", "package-lock.json"}
	files := make([][]byte, len(names))
	hash := sha256.New()
	for i, name := range names {
		files[i], err = os.ReadFile(filepath.Join("testdata", "js", name))
		must(t, err)
		hash.Write(files[i])
	}
	folder := filepath.Join(cache, "feedscale", "servicebus-js-"+hex.EncodeToString(hash.Sum(nil)[:8]))
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	must(t, os.MkdirAll(filepath.Dir(folder), 0o755))
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), "installing-")
	must(t, err)
	for i, name := range names {
		must(t, os.WriteFile(filepath.Join(unfinished, name), files[i], 0o644))
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = unfinished
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci needs Node.js and a package registry: %v\n%s", err, output)
	}
	must(t, os.Rename(unfinished, folder))
	return folder
}
