package tablestore_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

func TestTheFirstCommitCreatesTheTableWhereItIsMissing(t *testing.T) {
	t.Parallel()
	const commit, create = "POST /$batch", "POST /Tables"
	missing := func() *http.Response { return batch(http.StatusNotFound, odata("TableNotFound")) }
	cases := map[string]struct {
		committed, created func() *http.Response // the answers, that to the first commit
		asked              []string
		wrong              string // part of the error; "" where there is none
	}{
		"there": {
			committed: accepted, asked: []string{commit},
		},
		"missing": {
			committed: missing,
			created:   func() *http.Response { return response(http.StatusCreated, `{"TableName":"feedscale"}`) },
			asked:     []string{commit, create, commit},
		},
		"missing, and another process is faster": {
			committed: missing,
			created:   func() *http.Response { return refusing(http.StatusConflict, "TableAlreadyExists") },
			asked:     []string{commit, create, commit},
		},
		"missing, and may not be created": {
			committed: missing,
			created:   func() *http.Response { return refusing(http.StatusForbidden, "AuthorizationPermissionMismatch") },
			asked:     []string{commit, create}, wrong: "create the table",
		},
		"being deleted": {
			committed: missing,
			created:   func() *http.Response { return refusing(http.StatusConflict, "TableBeingDeleted") },
			asked:     []string{commit, create}, wrong: "wait a minute",
		},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked recorder
			var commits atomic.Int64
			store := openThrough(t, keyed, asked.record(func(request *http.Request) (*http.Response, error) {
				switch {
				case strings.HasSuffix(request.URL.Path, "/Tables"):
					return tt.created(), nil
				case commits.Add(1) > 1:
					return accepted(), nil
				default:
					return tt.committed(), nil
				}
			}))
			err := store.Commit(t.Context(), "", state.State{Processor: "orders"}, nil)
			if got := asked.asked(); !slices.Equal(got, tt.asked) {
				t.Errorf("asked %q, want %q", got, tt.asked)
			}
			switch {
			case tt.wrong == "" && err != nil:
				t.Error(err)
			case tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)):
				t.Errorf("got %v, want an error with %q", err, tt.wrong)
			}
		})
	}
}

func TestOpeningAndLookingWritesNothing(t *testing.T) {
	t.Parallel()
	var asked recorder
	store := openThrough(t, keyed, asked.record(func(*http.Request) (*http.Response, error) {
		return refusing(http.StatusNotFound, "TableNotFound"), nil
	}))
	if record, err := storetest.Load(t.Context(), store, "orders"); err != nil || record.Version != "" {
		t.Errorf("got %+v, %v; want nothing", record, err)
	}
	if events, err := store.Outbox(t.Context(), nil); err != nil || len(events) != 0 {
		t.Errorf("got %d events, %v; want none", len(events), err)
	}
	if samples, err := store.History(t.Context(), "orders", hour(), hour().Add(time.Hour)); err != nil || samples != nil {
		t.Errorf("got %d samples, %v; want none", len(samples), err)
	}
	if err := store.Prune(t.Context(), "orders", hour()); err != nil {
		t.Errorf("got %v where there is nothing to prune", err)
	}
	for _, request := range asked.asked() {
		if !strings.HasPrefix(request, "GET ") {
			t.Errorf("asked %s", request)
		}
	}
}

func TestTheTableIsCreatedAndOpenedAgain(t *testing.T) {
	t.Parallel()
	commit(t, open(t), "orders", "")
	record, err := storetest.Load(t.Context(), open(t), "orders")
	if err != nil {
		t.Fatal(err)
	}
	if record.Version == "" {
		t.Error("what was stored before is not there")
	}
}
