package testworld

import (
	"bytes"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
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

// Result is what a program left.
type Result struct {
	Status         int
	Stdout, Stderr string
}

// Run runs a program to its end, however that is.
func Run(t testing.TB, c *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			t.Fatal(err)
		}
	}
	return Result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}
