package servicebusfake_test

import (
	"crypto/tls"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/npm"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestTheJavaScriptClientCannotTell runs the official client. It needs Node.js and, the first time,
// a package registry.
func TestTheJavaScriptClientCannotTell(t *testing.T) {
	t.Parallel()
	folder, err := npm.InstallFolder(t.Context(), "servicebus-js", filepath.Join("testdata", "js"))
	testworld.Must(t, err)
	certificate, _ := certificate(t)
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	testworld.Must(t, os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}), 0o600))
	tests := map[string]*tls.Config{
		"in plain":  nil,
		"under TLS": {Certificates: []tls.Certificate{certificate}},
	}
	for name, config := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, servicebusfake.Options{
				TLS: config, Queues: []servicebusfake.QueueSpec{{Name: "orders"}, {Name: "sessions", RequiresSession: true}},
				Topics: []servicebusfake.TopicSpec{{Name: "events", Subscriptions: []servicebusfake.SubscriptionSpec{
					{Name: "all"}, {Name: "ruled"}, {Name: "ordered", RequiresSession: true},
				}}},
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
