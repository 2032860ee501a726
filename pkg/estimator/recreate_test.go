package estimator_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// TestAContainerThatWasRecreatedIsAnother holds that the leases of a deleted container are not
// taken for those of its successor, of which the old positions would say that nothing is pending.
func TestAContainerThatWasRecreatedIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.container("orders", 1)
	w.write("orders", 10)
	p := w.processor("orders")
	w.lease(p, "0", "10", "worker")
	e := estimator.New(16, time.Now)
	estimate := func() string {
		t.Helper()
		return describe(e.Estimate(t.Context(), []estimator.Processor{p})[0])
	}
	if got := estimate(); got != "0=0 ok" {
		t.Fatal(got)
	}
	w.deleteContainer("orders")
	w.container("orders", 1)
	w.write("orders", 5)
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
		w.container("orders", 1)
		p := w.processor("orders")
		w.lease(p, "0", "1", "")
		w.server.Control(answers("0", cosmosfake.Answer{Status: 304, Header: http.Header{"X-Ms-Content-Path": {path}}}))
		check(t, w.estimate(p)[0], "0=0 ok")
	}
}

// deleteContainer deletes a container as a user does.
func (w *world) deleteContainer(id string) {
	w.t.Helper()
	key, err := azcosmos.NewKeyCredential(cosmosfake.WellKnownKey)
	w.must(err)
	client, err := azcosmos.NewClientWithKey(w.server.Endpoint(), key, nil)
	w.must(err)
	defer client.Close()
	container, err := client.NewContainer(database, id)
	w.must(err)
	_, err = container.Delete(w.t.Context(), nil)
	w.must(err)
}
