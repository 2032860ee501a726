package poll_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/poll"
)

// TestAnInvocationIsOneTickAndItsAnswerIsWhatTheHostReads holds the answer by which the host ends an
// invocation: without Outputs, Logs and ReturnValue it would hang.
func TestAnInvocationIsOneTickAndItsAnswerIsWhatTheHostReads(t *testing.T) {
	t.Parallel()
	const answer = `{"Outputs":{},"Logs":[],"ReturnValue":null}`
	for _, c := range []struct {
		rule, payload string
		err           error
		status        int
		logs          string
	}{
		{"a tick", `{"Data":{"timer":{"IsPastDue":false}},"Metadata":{}}`, nil, 200, ""},
		{"a payload that cannot be read", `{`, nil, 200, ""},
		{"a tick that fails", `{"Data":{"timer":{}}}`, errors.New("nothing was committed"), 500, `"invocation":"7","error":"nothing was committed"`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			type key struct{}
			base, ticks := context.WithValue(t.Context(), key{}, true), 0
			var log bytes.Buffer
			h := poll.Handler{Base: base, Log: slog.New(slog.NewJSONHandler(&log, nil)), Tick: func(ctx context.Context) error {
				ticks++
				if ctx.Value(key{}) == nil {
					t.Error("the tick ends with its request, which the host gives up without a word")
				}
				return c.err
			}}
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/poll", strings.NewReader(c.payload))
			request.Header.Set("X-Azure-Functions-InvocationId", "7")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request)
			if w.Code != c.status || w.Header().Get("Content-Type") != "application/json" || w.Body.String() != answer || ticks != 1 {
				t.Errorf("%d ticks, %d %v %s", ticks, w.Code, w.Header(), w.Body)
			}
			if c.logs == "" && log.Len() > 0 || !strings.Contains(log.String(), c.logs) {
				t.Errorf("logged %s, want %s", &log, c.logs)
			}
		})
	}
}
