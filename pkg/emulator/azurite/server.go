package azurite

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	_ "embed" // for follow.cjs
)

//go:embed npm/follow.cjs
var follow string

// The account that every Azurite has. Its key is public, and the same everywhere.
const (
	accountName = "devstoreaccount1"
	accountKey  = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Server is a running Azurite. It ends at Close, and with the process that
// started it, however that ends.
type Server struct {
	process *exec.Cmd // holds our end of its stdin: the process ends when that is closed
	port    int
	drained chan struct{} // closed when everything the process wrote was read

	mutex  sync.Mutex
	output bytes.Buffer
}

// Start installs Azurite where needed (which takes up to a minute and needs the
// npm registry) and starts it. ctx bounds the start, not the life of the
// server. The server answers when Start returns.
func Start(ctx context.Context) (*Server, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("start Azurite: node was not found: install Node.js 20 or newer, with npm, and put it on the PATH")
	}
	dir, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	// Port 0: the system picks a free one, and follow.cjs tells which.
	process := exec.Command(node, "--eval", follow, "--",
		filepath.Join(dir, "node_modules", "azurite", "dist", "src", "table", "main.js"),
		"--tableHost", "127.0.0.1", "--tablePort", "0", "--inMemoryPersistence", "--disableTelemetry")
	process.Dir = dir
	if _, err := process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start Azurite: %w", err)
	}
	stdout, err := process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start Azurite: %w", err)
	}
	process.Stderr = process.Stdout
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start Azurite: %w", err)
	}

	s := &Server{process: process, drained: make(chan struct{})}
	listening := make(chan int, 1)
	go s.read(stdout, listening)
	select {
	case s.port = <-listening:
		return s, nil
	case <-s.drained:
		err = errors.New("it ended at once")
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = s.Close()
	return nil, fmt.Errorf("start Azurite: %w\n%s", err, strings.TrimSpace(s.Output()))
}

// read keeps what the server writes, and tells the port once.
func (s *Server) read(stdout io.Reader, listening chan<- int) {
	defer close(s.drained)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		s.mutex.Lock()
		s.output.WriteString(line)
		s.mutex.Unlock()
		if err != nil {
			return
		}
		var port int
		if _, err := fmt.Sscanf(line, "listening on port %d", &port); err == nil {
			select {
			case listening <- port:
			default: // only the first listener is the table service
			}
		}
	}
}

// ConnectionString is what a storage client needs to use the server.
func (s *Server) ConnectionString() string {
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;TableEndpoint=http://127.0.0.1:%d/%s;",
		accountName, accountKey, s.port, accountName)
}

// Output is what the server has written so far: its access log and its errors.
func (s *Server) Output() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.output.String()
}

// Close ends the server; what it stored is gone. It returns when the process
// has ended. Closing twice is no error.
func (s *Server) Close() error {
	if err := s.process.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end Azurite: %w", err)
	}
	<-s.drained
	_ = s.process.Wait() // it was killed: its exit status says nothing
	return nil
}
