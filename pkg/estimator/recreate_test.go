package estimator_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// TestAContainerThatWasRecreatedIsAnother holds that the leases of a deleted container are not
// taken for those of its successor, of which the old positions would say that nothing is pending.
func TestAContainerThatWasRecreatedIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Container("orders", 1)
	w.Write("orders", 10)
	p := w.processor("orders")
	w.lease(p, "0", "10", "worker")
	e := estimator.New(16, time.Now)
	estimate := func() string {
		t.Helper()
		return describe(e.EstimateAll(t.Context(), []estimator.Processor{p})[0])
	}
	if got := estimate(); got != "0=0 ok" {
		t.Fatal(got)
	}
	w.deleteContainer("orders")
	w.Container("orders", 1)
	w.Write("orders", 5)
	if got := estimate(); got != "bootstrap" {
		t.Errorf("recreated, without leases: %s", got)
	}
	w.lease(p, "0", "2", "worker")
	for range 2 {
		if got := estimate(); got != "0=3 lagging" {
			t.Errorf("recreated, with leases: %s", got)
		}
	}
}

// TestAnAnswerThatNamesNoContainerIsBelieved holds that a service, or a proxy, that does not send
// the header does no harm.
func TestAnAnswerThatNamesNoContainerIsBelieved(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "somewhere", "q0oIAA=="} {
		w := newWorld(t)
		w.Container("orders", 1)
		p := w.processor("orders")
		w.lease(p, "0", "1", "")
		w.Account.Control(answers("0", cosmosfake.Answer{Status: 304, Header: http.Header{"X-Ms-Content-Path": {path}}}))
		check(t, w.estimate(p)[0], "0=0 ok")
	}
}

// deleteContainer deletes a container as a user does.
func (w *world) deleteContainer(id string) {
	w.t.Helper()
	client := testworld.SDK(w.t, w.Account.ConnectionString())
	container, err := client.NewContainer(database, id)
	testworld.Must(w.t, err)
	_, err = container.Delete(w.t.Context(), nil)
	testworld.Must(w.t, err)
}
