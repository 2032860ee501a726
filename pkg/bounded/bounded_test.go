package bounded_test

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/feedscale/feedscale/pkg/bounded"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAnAnswerIsReadUpToItsLimitAndNoFurther(t *testing.T) {
	t.Parallel()
	const body, header = 32 << 20, 256 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := func(name string) int64 {
			n, _ := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
			return n
		}
		w.Header().Set("X-Long", strings.Repeat("x", int(number("header"))))
		io.CopyN(w, zeros{}, number("body"))
	}))
	t.Cleanup(server.Close)
	client := bounded.NewClient()
	t.Cleanup(client.CloseIdleConnections)
	for _, c := range []struct {
		rule, query string
		fails       bool
	}{
		{"a body of as much as is allowed", "?body=" + strconv.Itoa(body), false},
		{"of one byte more", "?body=" + strconv.Itoa(body+1), true},
		{"of very much", "?body=" + strconv.Itoa(1<<40), true},
		{"headers of nearly as much as is allowed", "?header=" + strconv.Itoa(header-1<<10), false},
		{"and of more", "?header=" + strconv.Itoa(header+1), true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			answer, err := client.Get(server.URL + c.query)
			if err == nil {
				defer answer.Body.Close()
				var n int64
				n, err = io.Copy(io.Discard, answer.Body)
				if long, ok := errors.AsType[bounded.TooLongError](err); ok != c.fails || ok && long.Error() != "it is longer than 32 MiB" {
					t.Errorf("got %v", err)
				}
				if n > body {
					t.Errorf("%d bytes are read", n)
				}
			}
			if (err != nil) != c.fails {
				t.Errorf("got %v", err)
			}
		})
	}
}

// lingering is a transport that reads on in the body of its first request while it sends the second.
type lingering struct {
	first    io.Reader
	got      []string // the bodies, as they were sent
	lateRead int
}

func (l *lingering) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r, Header: http.Header{"Retry-After-Ms": {"1"}}}
	if l.first != nil {
		l.lateRead, _ = l.first.Read(make([]byte, 2))
		answer.StatusCode = http.StatusOK
	}
	text, err := io.ReadAll(r.Body)
	l.first, l.got = cmp.Or[io.Reader](l.first, r.Body), append(l.got, string(text))
	return answer, err
}

func TestATryHasABodyOfItsOwn(t *testing.T) {
	t.Parallel()
	var transport lingering
	pipeline := runtime.NewPipeline("", "", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: bounded.Client(bounded.Bodies(&transport))})
	request, err := runtime.NewRequest(t.Context(), http.MethodPost, "http://localhost")
	if err == nil {
		err = request.SetBody(streaming.NopCloser(strings.NewReader("text")), "text/plain")
	}
	if err == nil {
		_, err = pipeline.Do(request)
	}
	if err != nil || !slices.Equal(transport.got, []string{"text", "text"}) || transport.lateRead != 0 {
		t.Errorf("%v: sent %q, and the first took %d bytes of the second", err, transport.got, transport.lateRead)
	}
}

func TestAFileIsReadUpToItsLimitAndNoFurther(t *testing.T) {
	t.Parallel()
	const most = 64 << 20
	for size, fails := range map[int64]bool{0: false, most: false, most + 1: true} {
		name := filepath.Join(t.TempDir(), "file")
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
			t.Fatal(err)
		}
		text, err := bounded.ReadFile(name)
		if _, ok := errors.AsType[bounded.TooLongError](err); ok != fails || !fails && int64(len(text)) != size {
			t.Errorf("of %d bytes %d are read: %v", size, len(text), err)
		}
	}
	if _, err := bounded.ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestAClientFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("http://other.invalid/", http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	answer, err := bounded.NewClient().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("got %s", answer.Status)
	}
}
