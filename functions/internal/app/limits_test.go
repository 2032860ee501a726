package app_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
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

// probe asks for /healthz on a connection of its own, and fails where that takes longer than a second.
func probe(t *testing.T, address string) {
	t.Helper()
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + address + "/healthz")
	if err != nil {
		t.Errorf("a probe of %s: %v", address, err)
		return
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a probe of %s gets %s", address, answer.Status)
	}
}

// TestAFloodOfStrangersSilencesNoProbe has six probes, each while 1,000 connections that bring no key, or
// nothing at all, are open on both ports.
func TestAFloodOfStrangersSilencesNoProbe(t *testing.T) {
	t.Parallel()
	const key = "a-key-of-sixteen"
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), "")
	c.Settings.Listen, c.Settings.APIKey, c.Settings.Health = ":0", config.NewSecret(key), testworld.FreeAddress(t)
	h, err := app.Listen(c, o)
	testworld.Must(t, err)
	serving(t, h)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(h.URL(), "http://"))
	testworld.Must(t, err)
	ports := []string{"127.0.0.1:" + port, c.Settings.Health}

	trusted, err := net.Dial("tcp", ports[0])
	testworld.Must(t, err)
	defer trusted.Close()
	keyed := bufio.NewReader(trusted)
	ask := func() {
		t.Helper()
		_, err := io.WriteString(trusted, "GET /api/processors HTTP/1.1\r\nHost: localhost\r\nx-functions-key: "+key+"\r\n\r\n")
		testworld.Must(t, err)
		testworld.Must(t, trusted.SetReadDeadline(time.Now().Add(10*time.Second)))
		answer, err := http.ReadResponse(keyed, nil)
		if err != nil {
			t.Fatalf("a connection that brought the key: %v", err)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		testworld.Must(t, err)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("the key gets %s", answer.Status)
		}
	}
	ask()
	for i := range 6 {
		var strangers []net.Conn
		for n := range 1_000 {
			for _, address := range ports {
				stranger, err := net.Dial("tcp", address)
				testworld.Must(t, err)
				strangers = append(strangers, stranger)
				_, _ = io.WriteString(stranger, []string{"", "G", "GET /api/processors HTTP/1.1\r\nHost: localhost\r\n\r\n"}[(i+n)%3])
			}
		}
		for _, address := range ports {
			probe(t, address)
		}
		for _, stranger := range strangers {
			stranger.Close()
		}
	}
	ask()
}

// TestAProbesListenerAnswersNothingElse: it asks for no key.
func TestAProbesListenerAnswersNothingElse(t *testing.T) {
	t.Parallel()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testworld.Must(t, err)
	c.Settings.Health = taken.Addr().String()
	if _, err := app.Listen(c, o); err == nil || !strings.Contains(err.Error(), "set FEEDSCALE_HEALTH_LISTEN to another address") {
		t.Errorf("an address that is taken: %v", err)
	}
	testworld.Must(t, taken.Close())
	h, err := app.Listen(c, o)
	testworld.Must(t, err)
	serving(t, h)
	for path, status := range map[string]int{"/healthz": 200, "/": 404, "/api/processors": 404, "/api/metrics": 404, "/api/dashboard": 404} {
		answer, err := http.Get("http://" + c.Settings.Health + path)
		testworld.Must(t, err)
		answer.Body.Close()
		if answer.StatusCode != status {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
}

// TestWhoBringsNoKeyIsAnsweredOnceOnAConnection looks at what the answer says of the connection.
func TestWhoBringsNoKeyIsAnsweredOnceOnAConnection(t *testing.T) {
	t.Parallel()
	const key = "a-key-of-sixteen"
	keyed, err := listen(t, ":0", key, false)
	testworld.Must(t, err)
	local, err := listen(t, "127.0.0.1:0", "", false)
	testworld.Must(t, err)
	for _, c := range []struct {
		rule, port, path, host string
		status                 int
		closed                 bool
	}{
		{"no key", keyed, "/api/processors", "", 401, true},
		{"a wrong key", keyed, "/api/processors?code=another-key", "", 401, true},
		{"a probe", keyed, "/healthz", "", 200, true},
		{"a probe tells nothing of a key", keyed, "/healthz?code=" + key, "", 200, true},
		{"the key", keyed, "/api/processors?code=" + key, "", 200, false},
		{"another name", local, "/api/processors", "attacker.example", 403, true},
		{"this machine", local, "/api/processors", "", 200, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+c.port+c.path, nil)
			testworld.Must(t, err)
			request.Host = c.host
			answer, err := http.DefaultClient.Do(request)
			testworld.Must(t, err)
			answer.Body.Close()
			if answer.StatusCode != c.status || answer.Close != c.closed {
				t.Errorf("%s, closed: %v", answer.Status, answer.Close)
			}
		})
	}
}

// TestAWrongKeyIsAnsweredSlowlyAndTheRightOneAtOnce asks with both from one address at once.
func TestAWrongKeyIsAnsweredSlowlyAndTheRightOneAtOnce(t *testing.T) {
	t.Parallel()
	const key = "a-key-of-sixteen"
	port, err := listen(t, ":0", key, false)
	testworld.Must(t, err)
	ask := func(key string) (status int, took time.Duration) {
		started := time.Now()
		answer, err := http.Get("http://127.0.0.1:" + port + "/api/processors?fields=summary&code=" + key)
		testworld.Must(t, err)
		answer.Body.Close()
		return answer.StatusCode, time.Since(started)
	}
	var wrong sync.WaitGroup
	for range 20 {
		wrong.Go(func() {
			if status, took := ask("a-key-of-another"); status != http.StatusUnauthorized || took < time.Second {
				t.Errorf("a wrong key gets %d after %s", status, took)
			}
		})
	}
	quickest := time.Hour // of five: the machine may be busy
	for range 5 {
		status, took := ask(key)
		if status != http.StatusOK {
			t.Errorf("the key gets %d", status)
		}
		quickest = min(quickest, took)
	}
	if quickest >= time.Second {
		t.Errorf("the key waits as a wrong one does: %s", quickest)
	}
	wrong.Wait()
}
