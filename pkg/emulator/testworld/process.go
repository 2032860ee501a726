package testworld

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// Environ writes settings as a process has its environment.
func Environ(settings map[string]string) []string {
	environ := make([]string, 0, len(settings))
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// CertificateOf writes the certificate of a server to a file, for a process that is to trust it.
func CertificateOf(t testing.TB, server *httptest.Server) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ca.pem")
	Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	return file
}
