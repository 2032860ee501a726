package testworld

import (
	"bytes"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// Environ returns settings in the form of a process's environment.
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

// Result is the output and status of a program.
type Result struct {
	Status         int
	Stdout, Stderr string
}

// Run runs a program to its end, successful or not.
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

// KillAt starts a process and kills it with SIGKILL at the nth operation, from 0, that a namespace
// sees of it: before the operation is done, or after it and before its answer. It reports whether
// the process was killed; a process that was not must end without an error.
func KillAt(t *testing.T, namespace *servicebusfake.Server, process *exec.Cmd, step int, done bool) (killed bool) {
	t.Helper()
	var seen atomic.Int64
	var hit atomic.Bool
	started, exited := make(chan struct{}), make(chan struct{})
	namespace.Control(func(*servicebusfake.Request) *servicebusfake.Answer {
		if seen.Add(1)-1 != int64(step) {
			return nil
		}
		hit.Store(true)
		<-started
		_ = process.Process.Kill()
		<-exited
		if done {
			return nil
		}
		return &servicebusfake.Answer{Drop: true}
	})
	Must(t, process.Start())
	close(started)
	err := process.Wait()
	close(exited)
	if killed = hit.Load(); !killed && err != nil {
		t.Errorf("the process ended with %v", err)
	}
	return killed
}
