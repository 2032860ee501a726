package connect

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

func TestTheHistoryInAFileThatIsOpenComesFromWhoHasItOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "feedscale.db")
	store, err := boltstore.Open(path)
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	from := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	for _, c := range []struct {
		rule   string
		status int
		answer string
		says   string // the error; "" = none
	}{
		{"it tells", 200, `{"processor":"orders","samples":[{"time":"2026-03-01T12:00:00Z","lag":7}]}`, ""},
		{"it does not know the processor", 404, `{}`, "answers 404 Not Found"},
		{"it is another program", 200, `<html>`, "answers something else"},
		{"it wants another key", 401, ``, "refuses the key"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			process := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				want := "/api/processors/orders/history?since=2026-03-01T12%3A00%3A00.000000005Z&until=2026-03-01T13%3A00%3A00.000000005Z"
				if got := r.URL.String(); r.Method != http.MethodGet || got != want {
					t.Errorf("it was asked for %s %s, want %s", r.Method, got, want)
				}
				if got := r.Header.Get("x-functions-key"); got != "k-1" {
					t.Errorf("it was sent the key %q", got)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.answer)
			}))
			t.Cleanup(process.Close)
			var asked string
			var samples []state.Sample
			var err error
			quickest := time.Hour // of three: the machine may be busy
			for range 3 {
				connections := New(config.Settings{State: config.State{BoltPath: path}, Listen: strings.TrimPrefix(process.URL, "http://"), APIKey: config.NewSecret("k-1")})
				began := time.Now()
				store, openErr := connections.Store(true)
				testworld.Must(t, openErr)
				asked = store.(*API).Address()
				samples, err = store.History(t.Context(), "orders", from, from.Add(time.Hour))
				quickest = min(quickest, time.Since(began))
			}
			if quickest > 900*time.Millisecond {
				t.Errorf("it waited %s for the lock before it asked", quickest)
			}
			if asked != process.URL {
				t.Errorf("it was said that %q is asked", asked)
			}
			if c.says == "" {
				if err != nil || len(samples) != 1 || *samples[0].Lag != 7 {
					t.Errorf("%+v, %v", samples, err)
				}
				return
			}
			if !errors.Is(err, boltstore.ErrInUse) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "set FEEDSCALE_LISTEN") {
				t.Errorf("%v, want one that says %s", err, c.says)
			}
		})
	}
}
