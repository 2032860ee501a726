package app_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
)

// TestNoAnswerHasWhatDoesNotShow plants instructions for a terminal, a browser and Prometheus where others
// write, and looks at every route.
func TestNoAnswerHasWhatDoesNotShow(t *testing.T) {
	t.Parallel()
	const hostile = "<img src=x onerror=alert(1)>\"}\x1b[31m\r\nfeedscale_up 1\n\u009b2J\u202efed\u200b\u2028"
	for rule, plant := range map[string]func(*testworld.Shop){
		"in the owner of a lease": func(w *testworld.Shop) {
			w.Put(testworld.Leases, map[string]any{"id": w.Processor.DotNetPrefix() + "..0", "LeaseToken": "0", "Owner": hostile, "ContinuationToken": `"1"`})
		},
		"in the token of a lease": func(w *testworld.Shop) {
			w.Put(testworld.Leases, map[string]any{"id": w.Processor.DotNetPrefix() + "..1", "LeaseToken": "0" + hostile, "Owner": hostile})
		},
		"in the service's own words": func(w *testworld.Shop) {
			w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind != cosmosfake.ReadChangeFeed {
					return nil
				}
				return &cosmosfake.Answer{Status: 403, Body: `{"message":"<b>\u001b[31m\r\nfeedscale_up 1\n\u009b2J\u202efed"}`}
			})
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "")
			s.Write(testworld.Orders, 5)
			plant(s.Shop)
			for range 2 {
				_, err := s.Tick(t.Context(), poller.Mode{})
				testworld.Must(t, err)
				s.clock.Advance(time.Minute)
			}
			said := false
			for _, path := range []string{
				"/", "/healthz", "/api/processors", "/api/processors?fields=summary", "/api/processors/orders", "/api/processors/orders/history", "/api/metrics", "/api/dashboard",
				"/api/processors/%1b%5B31m%E2%80%AE%3Cb%3E", "/api/processors/%1b%E2%80%AE/history", "/api/%1b%E2%80%AE%3Cb%3E", "/api/processors/orders/history?since=%1b%E2%80%AE",
			} {
				a := s.get(t, path)
				for i, r := range a.body {
					if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
						t.Errorf("%s has %q: %q", path, r, a.body[max(0, i-40):min(len(a.body), i+40)])
						break
					}
				}
				if strings.Contains(a.contentType, "html") && strings.Contains(a.body, "fed") || strings.Contains(a.body, "\nfeedscale_up") || strings.Contains(a.body, "<b>") || strings.Contains(a.body, "<img") {
					t.Errorf("%s, %s, has what was planted: %s", path, a.contentType, a.body)
				}
				said = said || strings.Contains(a.body, "fed")
			}
			if !said {
				t.Error("nothing that was planted is anywhere")
			}
		})
	}
}
