package connect

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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
		{"another key", 401, "", "", 0, "refuses the key (401 Unauthorized): set FEEDSCALE_API_KEY"},
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

func TestWhatTheAPIToldAlreadyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("x-functions-key") != "" {
			t.Error("a key that was not given")
		}
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent.Add(1)
		w.Header().Set("ETag", `"1"`)
		fmt.Fprint(w, `{"desiredReplicas":3}`)
	}))
	t.Cleanup(server.Close)
	api, err := NewAPI(server.URL, "")
	testworld.Must(t, err)
	for range 3 {
		if got, err := api.Replicas(t.Context(), "orders"); got != 3 || err != nil {
			t.Errorf("%d, %v", got, err)
		}
	}
	if sent.Load() != 1 {
		t.Errorf("it was sent %d times", sent.Load())
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
