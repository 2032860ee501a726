package shard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/functions/shard"
	"github.com/feedscale/feedscale/pkg/poller"
)

func TestAnInvocationIsOneShardAndItsAnswerSettlesTheMessage(t *testing.T) {
	t.Parallel()
	const (
		answer  = `{"Outputs":{},"Logs":[],"ReturnValue":null}`
		message = `{\\\"tick\\\":\\\"2026-01-01T00:00:00.001Z\\\",\\\"of\\\":2,\\\"names\\\":[\\\"orders\\\"]}`
		first   = `{"Data":{"shard":"\"` + message + `\""},"Metadata":{"DeliveryCount":"1"}}`
		second  = `{"Data":{"shard":"\"` + message + `\""},"Metadata":{"DeliveryCount":"2"}}`
	)
	for _, c := range []struct {
		rule, payload string
		err           error
		ends          bool // the process, meanwhile
		polls, status int
		logs          string
	}{
		{"polled: completed", first, nil, false, 1, 200, ""},
		{"text that is no JSON within it", `{"Data":{"shard":"{\"tick\":\"2026-01-01T00:00:00.001Z\",\"of\":2,\"names\":[\"orders\"]}"},"Metadata":{"DeliveryCount":1}}`, nil, false, 1, 200, ""},
		{"nothing could be committed: to another process", first, errors.New("no state"), false, 1, 500, "the shard failed"},
		{"nor there: to the next tick", second, errors.New("no state"), false, 1, 200, "the shard failed"},
		{"the process ends: to another one", second, nil, true, 1, 503, ""},
		{"no payload", `{`, nil, false, 0, 500, "cannot be read"},
		{"no message", `{"Data":{"shard":"\"hello\""}}`, nil, false, 0, 500, "cannot be read"},
		{"a message of somebody else", `{"Data":{"shard":"\"{}\""}}`, nil, false, 0, 500, "names no tick"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			base, end := context.WithCancel(t.Context())
			defer end()
			polls := 0
			var log bytes.Buffer
			h := shard.Handler{Base: base, Log: slog.New(slog.NewJSONHandler(&log, nil)), Poll: func(_ context.Context, s poller.Shard) error {
				if polls++; s.Of != 2 || len(s.Names) != 1 || s.Names[0] != "orders" || !s.Tick.Equal(time.Date(2026, 1, 1, 0, 0, 0, 1e6, time.UTC)) {
					t.Errorf("got %+v", s)
				}
				if c.ends {
					end()
				}
				return c.err
			}}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/shard", strings.NewReader(c.payload)))
			if w.Code != c.status || w.Header().Get("Content-Type") != "application/json" || w.Body.String() != answer || polls != c.polls {
				t.Errorf("%d polls, %d %v %s", polls, w.Code, w.Header(), w.Body)
			}
			if c.logs == "" && log.Len() > 0 || !strings.Contains(log.String(), c.logs) {
				t.Errorf("logged %s, want %s", &log, c.logs)
			}
		})
	}
}
