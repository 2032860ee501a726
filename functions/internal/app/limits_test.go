package app_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestHeadersAreReadUpToALimit(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	for rule, c := range map[string]struct{ size, status int }{
		"as much as is allowed": {32 << 10, http.StatusOK},
		"more":                  {36<<10 + 1, http.StatusRequestHeaderFieldsTooLarge},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/healthz", nil)
		testworld.Must(t, err)
		request.Header.Set("X-Long", strings.Repeat("x", c.size))
		answer, err := http.DefaultClient.Do(request)
		testworld.Must(t, err)
		answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("%s: %s", rule, answer.Status)
		}
	}
}

// TestOneConnectionTooManyWaits has callers that take every connection there is and say nothing.
func TestOneConnectionTooManyWaits(t *testing.T) {
	t.Parallel()
	s := serve(t, "")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
		testworld.Must(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	const most = 1_000
	var first net.Conn
	for range most {
		first = dial()
	}
	late := dial()
	_, err := io.WriteString(late, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	testworld.Must(t, err)
	testworld.Must(t, late.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	if _, err := late.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("one too many is answered, or cut off: %v", err)
	}
	testworld.Must(t, first.Close())
	testworld.Must(t, late.SetReadDeadline(time.Now().Add(time.Minute)))
	answer, err := http.ReadResponse(bufio.NewReader(late), nil)
	testworld.Must(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("once another left, it gets %s", answer.Status)
	}
}
