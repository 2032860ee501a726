package problem_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/problem"
)

// TestADocumentHasWhatRFC9457Names has one case for each way to ask for one.
func TestADocumentHasWhatRFC9457Names(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		handler http.HandlerFunc
		status  int
		title   string
		detail  string
		allow   string
	}{
		{"another method", problem.OnlyGET, 405, "Method Not Allowed", "only GET is allowed here", "GET, HEAD"},
		{"what a function says", func(w http.ResponseWriter, r *http.Request) {
			problem.Write(w, r, http.StatusServiceUnavailable, `processor "orders" was never polled`)
		}, 503, "Service Unavailable", `processor "orders" was never polled`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			c.handler(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/processors/orders?code=secret", nil))
			if w.Code != c.status || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Allow") != c.allow {
				t.Errorf("%d %v", w.Code, w.Header())
			}
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"type": "about:blank", "title": c.title, "status": float64(c.status), "detail": c.detail, "instance": "/api/processors/orders"}
			if !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}
