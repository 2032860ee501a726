package azurite_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/azurite"
)

// The test binary also plays other programs: npm, if it is called by that name, and a program that
// uses this package, if the variable is set.
const roleVariable = "AZURITE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch {
	case strings.HasPrefix(filepath.Base(os.Args[0]), "npm"):
		os.Exit(installSlowly())
	case os.Getenv(roleVariable) == "install":
		os.Exit(installOnce())
	case os.Getenv(roleVariable) == "serve":
		os.Exit(serveUntilKilled())
	}
	os.Exit(m.Run())
}

func serveUntilKilled() int {
	server, err := azurite.Start(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(server.ConnectionString())
	select {}
}

func TestAServerAnswersUntilItIsClosed(t *testing.T) {
	t.Parallel()
	server, err := azurite.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	endpoint := tableEndpoint(t, server.ConnectionString())
	if !answers(t, endpoint) {
		t.Errorf("no answer at %s; the server wrote:\n%s", endpoint, server.Output())
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if listens(t, endpoint) {
		t.Error("still listening after Close")
	}
	if err := server.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestAServerEndsWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), roleVariable+"=serve")
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("read the connection string: %v", err)
	}
	endpoint := tableEndpoint(t, line)
	if !listens(t, endpoint) {
		t.Fatal("nobody listens while the parent lives")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	// No requests from here on: a server without a reader of its log might end because of them.
	deadline := time.After(2 * time.Minute)
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for listens(t, endpoint) {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatal("still listening two minutes after the parent was killed")
		}
	}
}

func TestAStartThatIsGivenUpLeavesAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server, err := azurite.Start(ctx)
	if err == nil {
		_ = server.Close()
		t.Fatal("no error, though the context had ended")
	}
}

func TestWithoutNodeTheErrorSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := azurite.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "install Node.js") {
		t.Errorf("got %v, want an error that says what to install", err)
	}
}

func tableEndpoint(t *testing.T, connectionString string) *url.URL {
	t.Helper()
	for field := range strings.SplitSeq(strings.TrimSpace(connectionString), ";") {
		if endpoint, ok := strings.CutPrefix(field, "TableEndpoint="); ok {
			u, err := url.Parse(endpoint)
			if err != nil {
				t.Fatal(err)
			}
			return u
		}
	}
	t.Fatalf("no TableEndpoint in %q", connectionString)
	return nil
}

// answers tells whether a request is answered, with whatever status.
func answers(t *testing.T, endpoint *url.URL) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // a kept connection would hide that nobody listens any more
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return true
}

func listens(t *testing.T, endpoint *url.URL) bool {
	t.Helper()
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", endpoint.Host)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
