package connect

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/report"
)

func TestWhatTheAPIStandsByIsTheCountAndAllElseIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule        string
		status      int
		contentType string
		answer      string
		want        int
		says        string // the error; "" = none
	}{
		{"a processor", 200, "application/json", `{"name":"orders","desiredReplicas":5}`, 5, ""},
		{"at zero", 200, "application/json", `{"desiredReplicas":0}`, 0, ""},
		{"without a number", 200, "application/json", `{"desiredReplicas":null}`, 0, "answers something else than a processor or group of feedscale"},
		{"another program", 200, "text/html", `<html>`, 0, "answers something else"},
		{"what cannot be stood by", 503, "application/problem+json", `{"detail":"processor orders was never polled"}`, 0, "503 Service Unavailable: processor orders was never polled"},
		{"another name", 404, "application/problem+json", `{"detail":"no"}`, 0, `no processor or group is named "orders"`},
		{"another address", 404, "text/html", "", 0, "answers 404 Not Found: is it the address of feedscale?"},
		{"another key", 401, "", "", 0, "refuses the key in FEEDSCALE_API_KEY (401 Unauthorized): set it to the key"},
		{"another key, says feedscale", 401, "application/problem+json", `{"detail":"the key is missing"}`, 0, "refuses the key in FEEDSCALE_API_KEY (401 Unauthorized)"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != "/api/processors/orders" || r.Header.Get("x-functions-key") != "key" {
					t.Errorf("it was asked for %s with %q", r.URL, r.Header)
				}
				w.Header().Set("Content-Type", c.contentType)
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.answer)
			}))
			t.Cleanup(server.Close)
			for _, address := range []string{server.URL, server.URL + "/", server.URL + "/api/"} {
				api, err := NewAPI(address, "key")
				testworld.Must(t, err)
				got, err := api.Replicas(t.Context(), "orders")
				if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%d, %v", got, err)
				}
				if errors.Is(err, report.ErrUnknownName) != (c.rule == "another name") {
					t.Errorf("%v is of an unknown name, or is not", err)
				}
			}
		})
	}
}

func TestWhatTheAPIToldLastIsNoAnswerOfWhoIsGone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-functions-key") != "" {
			t.Error("a key that was not given")
		}
		fmt.Fprint(w, `{"desiredReplicas":3}`)
	}))
	t.Cleanup(server.Close)
	api, err := NewAPI(server.URL, "")
	testworld.Must(t, err)
	if got, err := api.Replicas(t.Context(), "orders"); got != 3 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	server.Close()
	if _, err := api.Replicas(t.Context(), "orders"); err == nil {
		t.Error("what was told last is taken for an answer of who is gone")
	}
}

func TestAnAddressOfNoAPIIsRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "APP.azurewebsites.net", "ftp://app.example", "https://app.example?code=x", "https://user:pass@app.example", "https://"} {
		if _, err := NewAPI(address, ""); err == nil {
			t.Errorf("%q is taken", address)
		} else if strings.Contains(err.Error(), "pass") || strings.Contains(err.Error(), "code=") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
}

// TestTheKeyFollowsNoRedirect answers each request with a redirect to another host.
func TestTheKeyFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host is asked for %s with %q", r.URL, r.Header)
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/api/processors/orders", status))
		t.Cleanup(server.Close)
		api, err := NewAPI(server.URL, "key")
		testworld.Must(t, err)
		_, replicasErr := api.Replicas(t.Context(), "orders")
		_, listErr := api.List(t.Context(), nil)
		_, stateErr := api.Load(t.Context(), "orders")
		_, historyErr := api.History(t.Context(), "orders", time.Now(), time.Now().Add(time.Hour))
		for _, err := range []error{replicasErr, listErr, stateErr, historyErr} {
			if err == nil || !strings.Contains(err.Error(), "is it the address of feedscale?") {
				t.Errorf("%d: %v", status, err)
			}
		}
	}
}

// TestWhatCannotBeANameIsAskedForNowhere: who names it to a scaler has no key.
func TestWhatCannotBeANameIsAskedForNowhere(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("it is asked for %s", r.URL)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"detail":"the key of somebody"}`)
	}))
	t.Cleanup(server.Close)
	api, err := NewAPI(server.URL, "key")
	testworld.Must(t, err)
	for _, name := range []string{"", ".", "..", "../../admin/host/keys", "..%2f..%2fadmin", "orders/state", "orders?code=x", "orders#", "//other.example/", "Orders", "orders\r\n", strings.Repeat("a", 64)} {
		_, replicasErr := api.Replicas(t.Context(), name)
		_, stateErr := api.Load(t.Context(), name)
		_, historyErr := api.History(t.Context(), name, time.Now(), time.Now().Add(time.Hour))
		for _, err := range []error{replicasErr, stateErr, historyErr} {
			if !errors.Is(err, report.ErrUnknownName) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestWhatTheAPISaysIsRepeatedUpToALimit(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, `{"detail":%q}`, strings.Repeat("x", 100_000))
	}))
	t.Cleanup(server.Close)
	api, err := NewAPI(server.URL, "")
	testworld.Must(t, err)
	if _, err := api.Replicas(t.Context(), "long"); err == nil || len(err.Error()) > 400 {
		t.Errorf("got %v", err)
	}
}
