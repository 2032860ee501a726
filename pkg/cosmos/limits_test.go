package cosmos_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// TestMoreThanAnAccountMaySendIsAnError_Long has an account that sends more than any: over the network, by the
// transport that is used where none is given.
func TestMoreThanAnAccountMaySendIsAnError_Long(t *testing.T) {
	t.Parallel()
	leases := func(t *testing.T, a *cosmos.Account) error {
		documents, _, err := a.Leases(t.Context(), orders, []string{"p.."})
		if len(documents) > 0 {
			t.Errorf("%d leases", len(documents))
		}
		return err
	}
	ranges := func(t *testing.T, a *cosmos.Account) error {
		_, _, err := a.Ranges(t.Context(), orders)
		return err
	}
	page := func(n int, item string) string {
		return `{"Documents":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	small := page(1000, `{"id":"p..0","LeaseToken":"0"}`)
	large := page(3, `{"id":"`+strings.Repeat("x", 10<<20)+`"}`)
	for _, c := range []struct {
		rule   string
		answer func(w http.ResponseWriter, n int64) // the nth
		call   func(*testing.T, *cosmos.Account) error
		says   string
		asked  int64 // at most
	}{
		{"a body", func(w http.ResponseWriter, _ int64) { io.WriteString(w, strings.Repeat(" ", 32<<20+1)) }, leases, "with more than any of the service's", 1},
		{"headers", func(w http.ResponseWriter, _ int64) { w.Header().Set("etag", strings.Repeat("x", 257<<10)) }, ranges, "cannot be reached", 20},
		{"leases", func(w http.ResponseWriter, _ int64) {
			w.Header().Set("x-ms-continuation", "more")
			io.WriteString(w, small)
		}, leases, "are more than 250000", 251},
		{"bytes of leases", func(w http.ResponseWriter, _ int64) {
			w.Header().Set("x-ms-continuation", "more")
			io.WriteString(w, large)
		}, leases, "more than 256 MiB", 9},
		{"pages of ranges", func(w http.ResponseWriter, n int64) {
			w.Header().Set("etag", fmt.Sprint(n))
			io.WriteString(w, `{"PartitionKeyRanges":[{"id":"0","minInclusive":"","maxExclusive":"FF"}]}`)
		}, ranges, "has no end", 1000},
		{"ranges", func(w http.ResponseWriter, n int64) {
			w.Header().Set("etag", fmt.Sprint(n))
			io.WriteString(w, `{"PartitionKeyRanges":[`+strings.Repeat(`{"id":"0"},`, 9_999)+`{"id":"0"}]}`)
		}, ranges, "has no end", 26},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					io.WriteString(w, "{}")
					return
				}
				c.answer(w, asked.Add(1))
			}))
			t.Cleanup(server.Close)
			a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.URL, Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.call(t, a); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if n := asked.Load(); n > c.asked {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// TestAChargeThatIsNoneCountsNothing has an answer say what it costs.
func TestAChargeThatIsNoneCountsNothing(t *testing.T) {
	t.Parallel()
	for charge, want := range map[string]float64{
		"2.83": 2.83, "0": 0, "1000000": 1e6, "1000000.1": 0, "1e300": 0, "1e999": 0,
		"Inf": 0, "-Inf": 0, "NaN": 0, "-1": 0, "": 0, "many": 0,
	} {
		t.Run(charge, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					io.WriteString(w, "{}")
					return
				}
				w.Header().Set("x-ms-request-charge", charge)
				io.WriteString(w, `{"Documents":[]}`)
			}))
			t.Cleanup(server.Close)
			a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.URL, Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, usage, err := a.Leases(t.Context(), orders, []string{"p.."}); err != nil || usage.Charge != want {
				t.Errorf("%v RU, %v; want %v", usage.Charge, err, want)
			}
		})
	}
}
