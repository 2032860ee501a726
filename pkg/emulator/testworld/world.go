package testworld

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
)

// What every world has.
const (
	Database = "shop"
	Leases   = "leases" // id of the lease container, in Database
)

// Options of a world. The zero value works.
type Options struct {
	Account cosmosfake.Options
	// of the namespace, of which there is one where there are any
	Queues []servicebusfake.QueueSpec
	// InMemory has the account reached without sockets, by World.Transport alone: for tests under
	// testing/synctest, whose clock stands still while anybody waits for a socket.
	InMemory bool
}

// World is an account with a database and a lease container, and perhaps a namespace. It ends with
// its test.
type World struct {
	Account   *cosmosfake.Server
	Namespace *servicebusfake.Server // nil if no queues were asked for
	Transport *http.Transport        // by which the account is reached

	t       testing.TB
	now     func() time.Time // of the account
	written map[string]int   // documents by container
}

// New starts a world.
func New(t testing.TB, o Options) *World {
	t.Helper()
	if o.Account.Now == nil {
		o.Account.Now = time.Now
	}
	w := &World{Transport: &http.Transport{MaxIdleConnsPerHost: requestsAtOnce}, t: t, now: o.Account.Now, written: map[string]int{}}
	if o.InMemory {
		// azcosmos looks the account up in the background. In a bubble that has to end before the
		// test does.
		t.Cleanup(func() { time.Sleep(time.Minute) })
		pipes := newPipes()
		o.Account.Listen, w.Transport.DialContext = pipes.listen, pipes.dial
	}
	w.Account = StartAccount(t, o.Account)
	t.Cleanup(w.Transport.CloseIdleConnections)
	Must(t, w.Account.CreateDatabase(Database))
	// Time to live is switched on for the lock that a host holds while it creates leases.
	w.Create(cosmosfake.ContainerSpec{ID: Leases, PartitionKey: []string{"/id"}, DefaultTTL: -1})
	if len(o.Queues) > 0 {
		w.Namespace = StartNamespace(t, servicebusfake.Options{Queues: o.Queues})
	}
	return w
}

// StartAccount starts an account that ends with its test.
func StartAccount(t testing.TB, o cosmosfake.Options) *cosmosfake.Server {
	t.Helper()
	account, err := cosmosfake.Start(o)
	Must(t, err)
	t.Cleanup(func() { Must(t, account.Close()) })
	return account
}

// StartNamespace starts a namespace that ends with its test.
func StartNamespace(t testing.TB, o servicebusfake.Options) *servicebusfake.Server {
	t.Helper()
	namespace, err := servicebusfake.Start(o)
	Must(t, err)
	t.Cleanup(func() { Must(t, namespace.Close()) })
	return namespace
}

// Create creates a container.
func (w *World) Create(spec cosmosfake.ContainerSpec) {
	w.t.Helper()
	Must(w.t, w.Account.CreateContainer(Database, spec))
}

// Container creates a container that is partitioned by /id.
func (w *World) Container(id string, partitions int) {
	w.t.Helper()
	w.Create(cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}, Partitions: partitions})
}

// Write writes n documents to a container that is partitioned by /id, spread over its partitions,
// each in a transaction of its own. Their ids are doc-1, doc-2 and so on.
func (w *World) Write(container string, n int) {
	w.t.Helper()
	for range n {
		w.written[container]++
		w.Put(container, map[string]any{"id": fmt.Sprintf("doc-%d", w.written[container])})
	}
}

// Put writes documents, whatever has a JSON form, to a container.
func (w *World) Put(container string, documents ...any) {
	w.t.Helper()
	for _, d := range documents {
		Must(w.t, w.Account.Upsert(Database, container, d))
	}
}

// LeasesOf writes the leases of a processor of a container, in every format.
func (w *World) LeasesOf(name, host, container string) leasefake.Processor {
	w.t.Helper()
	of, err := leasefake.Processor{Name: name, Host: host, Database: Database, Container: container}.Resolve(w.t.Context(), w.SDK())
	Must(w.t, err)
	return of
}

// At is what a lease holds that stands at an LSN, and whose owner has just renewed it.
func At(lsn int64) leasefake.Fields {
	return leasefake.Fields{Owner: "worker", Continuation: leasefake.At(lsn), Updated: time.Now()}
}

// SDK is a connection to the account as an application has it.
func (w *World) SDK() *azcosmos.Client {
	w.t.Helper()
	return newSDK(w.t, w.Account.ConnectionString(), &http.Client{Transport: bounded.Bodies(w.Transport)})
}

// Client is feedscale's own connection to the account.
func (w *World) Client() *cosmos.Account {
	w.t.Helper()
	return newClient(w.t, w.Account.Endpoint(), cosmosfake.WellKnownKey, &http.Client{Transport: w.Transport})
}

// Client is feedscale's own connection to an account. It comes from a setting of the name COSMOS.
func Client(t testing.TB, endpoint, key string) *cosmos.Account {
	t.Helper()
	return newClient(t, endpoint, key, nil)
}

// requestsAtOnce is more than any test's account has partitions.
const requestsAtOnce = 16

func newClient(t testing.TB, endpoint, key string, transport policy.Transporter) *cosmos.Account {
	t.Helper()
	account, err := cosmos.NewAccount(cosmos.Options{Endpoint: endpoint, Setting: "COSMOS", Key: key, Concurrency: requestsAtOnce, Transport: transport})
	Must(t, err)
	return account
}

// LoseDeletes has the account refuse to delete documents of a container, until end is called.
func (w *World) LoseDeletes(container string) (end func()) {
	return w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.DeleteDocument || r.Container != container {
			return nil
		}
		return &cosmosfake.Answer{Status: http.StatusForbidden}
	})
}
