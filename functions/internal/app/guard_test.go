package app_test

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// listen starts an app at an address with a key, "" = none, and returns a port at which it answers.
func listen(t *testing.T, address, key string, behindHost bool) (port string, err error) {
	t.Helper()
	clock := testworld.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	w := testworld.NewShop(t, testworld.Options{Account: cosmosfake.Options{Now: clock.Now}})
	c, o := configured(t, w, clock, filepath.Join(t.TempDir(), "feedscale.db"), "")
	c.Settings.Listen, c.Settings.APIKey, o.BehindHost = address, config.NewSecret(key), behindHost
	h, err := app.Listen(c, o)
	if err != nil {
		return "", err
	}
	serving(t, h)
	_, port, err = net.SplitHostPort(strings.TrimPrefix(h.URL(), "http://"))
	testworld.Must(t, err)
	return port, nil
}

func TestBeyondLoopbackNothingIsServedWithoutAKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, address, key string
		behindHost         bool
		refused            bool
	}{
		{"every interface", ":0", "", false, true},
		{"every interface of IPv4", "0.0.0.0:0", "", false, true},
		{"a name, which may resolve to anything", "feedscale.invalid:0", "", false, true},
		{"every interface, with a key", ":0", "k-1", false, false},
		{"loopback", "127.0.0.1:0", "", false, false},
		{"loopback by its name", "localhost:0", "", false, false},
		{"loopback with a key", "127.0.0.1:0", "k-1", false, false},
		{"under a Functions host, which asks for its own keys", "127.0.0.1:0", "", true, false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			_, err := listen(t, c.address, c.key, c.behindHost)
			if refused := err != nil && strings.Contains(err.Error(), "set FEEDSCALE_API_KEY to the key that they have to send"); refused != c.refused || err != nil && !refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestACallerIsAskedForTheKeyAndOnLoopbackForALocalName(t *testing.T) {
	t.Parallel()
	const everywhere, loopback = ":0", "127.0.0.1:0"
	type header = map[string]string
	for _, c := range []struct {
		rule         string
		address, key string // of the app
		behindHost   bool
		host         string // header; "" = the address that was asked
		path         string
		header       header
		status       int
		says         string
	}{
		{"the key in the header", everywhere, "k-1", false, "", "/api/processors", header{"X-Functions-Key": "k-1"}, 200, `"name":"orders"`},
		{"the key in the query", everywhere, "k-1", false, "", "/api/processors?code=k-1", nil, 200, `"name":"orders"`},
		{"the key as a bearer token, as Prometheus sends it", everywhere, "k-1", false, "", "/api/metrics", header{"Authorization": "Bearer k-1"}, 200, "feedscale_"},
		{"another key as a bearer token", everywhere, "k-1", false, "", "/api/processors", header{"Authorization": "Bearer k-2"}, 401, "send the key"},
		{"no key", everywhere, "k-1", false, "", "/api/processors", nil, 401, "send the key of FEEDSCALE_API_KEY in the header x-functions-key, or as ?code="},
		{"another key", everywhere, "k-1", false, "", "/api/processors?code=k-2", nil, 401, "send the key"},
		{"a beginning of the key", everywhere, "k-1", false, "", "/api/processors", header{"X-Functions-Key": "k-"}, 401, "send the key"},
		{"the header wins", everywhere, "k-1", false, "", "/api/processors?code=k-1", header{"X-Functions-Key": "k-2"}, 401, "send the key"},
		{"no key for the metrics", everywhere, "k-1", false, "", "/api/metrics", nil, 401, "send the key"},
		{"no key for the page", everywhere, "k-1", false, "", "/api/dashboard", nil, 401, "send the key"},
		{"no key for a path in another case", everywhere, "k-1", false, "", "/API/Processors/", nil, 401, "send the key"},
		{"no key for a path that is not there", everywhere, "k-1", false, "", "/healthz/", nil, 401, "send the key"},
		{"a probe needs none, and learns nothing", everywhere, "k-1", false, "", "/healthz", nil, 200, "ok\n"},
		{"any Host header beyond loopback", everywhere, "k-1", false, "feedscale.shop.svc", "/api/processors?code=k-1", nil, 200, `"name":"orders"`},
		{"loopback without a key asks for none", loopback, "", false, "", "/api/processors", nil, 200, `"name":"orders"`},
		{"loopback with a key asks for it", loopback, "k-1", false, "", "/api/processors", nil, 401, "send the key"},
		{"localhost is loopback", loopback, "", false, "localhost:7071", "/api/processors", nil, 200, `"name":"orders"`},
		{"so is its IPv6 address", loopback, "", false, "[::1]:7071", "/api/processors", nil, 200, `"name":"orders"`},
		{"in any case", loopback, "", false, "LOCALHOST:7071", "/api/processors", nil, 200, `"name":"orders"`},
		{"so is the IPv6 form of its IPv4 address", loopback, "", false, "[::ffff:127.0.0.1]:7071", "/api/processors", nil, 200, `"name":"orders"`},
		{"a name below localhost is not", loopback, "", false, "localhost.attacker.example:7071", "/api/processors", nil, 403, "only this machine is answered here"},
		{"nor one that begins with the address", loopback, "", false, "127.0.0.1.attacker.example:7071", "/api/processors", nil, 403, "only this machine is answered here"},
		{"nor every address", loopback, "", false, "0.0.0.0:7071", "/api/processors", nil, 403, "only this machine is answered here"},
		{"a name that a page had resolve to loopback", loopback, "", false, "attacker.example:7071", "/api/processors", nil, 403, "only this machine is answered here"},
		{"whatever key it brings", loopback, "k-1", false, "attacker.example", "/api/processors?code=k-1", nil, 403, "only this machine is answered here"},
		{"and whatever it asks for", loopback, "", false, "attacker.example", "/healthz", nil, 403, "only this machine is answered here"},
		{"a Functions host has asked already", loopback, "k-1", true, "app.azurewebsites.net", "/api/processors", nil, 200, `"name":"orders"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			port, err := listen(t, c.address, c.key, c.behindHost)
			testworld.Must(t, err)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port+c.path, nil)
			testworld.Must(t, err)
			request.Host = c.host
			for name, value := range c.header {
				request.Header.Set(name, value)
			}
			response, err := http.DefaultClient.Do(request)
			testworld.Must(t, err)
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			testworld.Must(t, err)
			if response.StatusCode != c.status || !strings.Contains(string(body), c.says) || strings.Contains(string(body), "k-1") {
				t.Errorf("got %s: %s", response.Status, body)
			}
			if kind := response.Header.Get("Content-Type"); c.status >= 400 && kind != "application/problem+json" {
				t.Errorf("a refusal is %s", kind)
			}
		})
	}
}
