package changefeedprocessor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/lifeline"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// shop is an account with a monitored container, and what hosts made of its changes.
type shop struct {
	*testworld.World
	t       *testing.T
	sdk     *azcosmos.Client
	timing  func(*changefeedprocessor.Options)
	written int

	mu      sync.Mutex
	handled map[string][]change // by lease token, in the order they came
	order   []change            // as they came, over all partitions
}

type change struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	LSN      int64  `json:"_lsn"`
}

// newShop is a shop behind a real listener, whose hosts act every few milliseconds.
func newShop(t *testing.T, partitions int) *shop {
	t.Helper()
	s := openShop(t, partitions, testworld.Options{})
	s.timing = func(o *changefeedprocessor.Options) {
		o.AcquireInterval, o.RenewInterval, o.ExpirationInterval = 30*time.Millisecond, 50*time.Millisecond, time.Minute
		o.PollInterval, o.RetryDelay, o.Drain = 10*time.Millisecond, 10*time.Millisecond, testworld.Busy
	}
	return s
}

// inBubble runs a test on a shop in memory, whose hosts keep .NET's default times, of which none
// really passes.
func inBubble(t *testing.T, partitions int, test func(t *testing.T, s *shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, openShop(t, partitions, testworld.Options{InMemory: true}))
	})
}

// pass lets time pass in a bubble, until the hosts wait again: what they wrote is then seen.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func openShop(t *testing.T, partitions int, o testworld.Options) *shop {
	t.Helper()
	w := testworld.New(t, o)
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/customer"}, Partitions: partitions})
	return &shop{World: w, t: t, sdk: w.SDK(), handled: map[string][]change{}}
}

// write writes n orders, each in a transaction of its own.
func (s *shop) write(n int) {
	s.t.Helper()
	for range n {
		s.written++
		s.Put("orders", map[string]any{"id": fmt.Sprint("order-", s.written), "customer": fmt.Sprint("customer-", s.written%100)})
	}
}

// running is a host under way.
type running struct {
	*changefeedprocessor.Processor
	stop  context.CancelFunc
	line  *lifeline.Line
	ended chan error
}

// kill ends it as a process that is killed.
func (r *running) kill() {
	r.line.Cut()
	r.stop()
}

// options are those of a host, by a client of its own.
func (s *shop) options(name string, line *lifeline.Line) (monitored, leases changefeedprocessor.Container, o changefeedprocessor.Options) {
	s.t.Helper()
	client := s.ProcessorClient(line)
	o = changefeedprocessor.Options{Name: "projection", Instance: name, Handle: s.handle, FromBeginning: true, MaxItems: 7, Retries: -1}
	if s.timing != nil {
		s.timing(&o)
	}
	return changefeedprocessor.Container{Client: client, Database: testworld.Database, ID: "orders"},
		changefeedprocessor.Container{Client: client, Database: testworld.Database, ID: testworld.Leases}, o
}

// host starts a host, which the test's end kills. change adapts its options.
func (s *shop) host(name string, change func(*changefeedprocessor.Options)) *running {
	s.t.Helper()
	line := s.Line()
	monitored, leases, o := s.options(name, line)
	if change != nil {
		change(&o)
	}
	return s.run(monitored, leases, o, line)
}

func (s *shop) run(monitored, leases changefeedprocessor.Container, o changefeedprocessor.Options, line *lifeline.Line) *running {
	s.t.Helper()
	p, err := changefeedprocessor.New(monitored, leases, o)
	testworld.Must(s.t, err)
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Processor: p, stop: stop, line: line, ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- p.Run(ctx)
	}()
	s.t.Cleanup(func() {
		r.kill()
		<-done
	})
	return r
}

// end waits until the host has ended.
func (s *shop) end(r *running) {
	s.t.Helper()
	testworld.Must(s.t, testworld.Came(s.t, "the end of the host", r.ended))
}

// create has a host create the leases, and end.
func (s *shop) create() {
	s.t.Helper()
	h := s.host("creates the leases", nil)
	testworld.Eventually(s.t, "there are leases", func() bool { return len(s.owners()) > 0 && s.owners()[""] == 0 })
	s.stopAll(h)
}

func (s *shop) handle(_ context.Context, b changefeedprocessor.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, document := range b.Items {
		var c change
		if err := json.Unmarshal(document, &c); err != nil {
			return err
		}
		s.order = append(s.order, c)
		s.handled[b.Lease] = append(s.handled[b.Lease], c)
	}
	return nil
}

// of is what was handled of a partition.
func (s *shop) of(partition string) []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.handled[partition])
}

// count is how many changes were handled.
func (s *shop) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, changes := range s.handled {
		n += len(changes)
	}
	return n
}

// handledAll says whether every order was handled at least once. A wait for a count would end early
// where a host that takes a lease over handles an order again.
func (s *shop) handledAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for _, c := range s.order {
		seen[c.ID] = true
	}
	return len(seen) == s.written
}

// checkOnce fails the test unless every order was handled once, and in the order of the LSNs:
// within its partition and, however partitions were split and merged meanwhile, within its
// customer. A merged partition has some LSNs twice, of either parent.
func (s *shop) checkOnce() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for partition, changes := range s.handled {
		for i, c := range changes {
			if seen[c.ID] {
				s.t.Errorf("%s was handled twice", c.ID)
			}
			seen[c.ID] = true
			if i > 0 && c.LSN < changes[i-1].LSN {
				s.t.Errorf("partition %s: LSN %d came after %d", partition, c.LSN, changes[i-1].LSN)
			}
		}
	}
	latest := map[string]int64{}
	for _, c := range s.order {
		if c.LSN <= latest[c.Customer] {
			s.t.Errorf("%s: LSN %d came after %d", c.Customer, c.LSN, latest[c.Customer])
		}
		latest[c.Customer] = c.LSN
	}
	if len(seen) != s.written {
		s.t.Errorf("%d orders were handled, want %d", len(seen), s.written)
	}
}

// documents reads the lease container: every document by its id, with the fields that the service
// adds left out.
func (s *shop) documents() map[string]map[string]any {
	s.t.Helper()
	all := map[string]map[string]any{}
	for _, document := range testworld.Documents[map[string]any](s.t, s.sdk, testworld.Database, testworld.Leases) {
		maps.DeleteFunc(document, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
		all[document["id"].(string)] = document
	}
	return all
}

// leases are the leases by their tokens.
func (s *shop) leases() map[string]leasefake.DotNetLease {
	s.t.Helper()
	found := map[string]leasefake.DotNetLease{}
	for _, l := range testworld.ReadLeases(s.t, s.sdk, testworld.Database, testworld.Leases, "") {
		found[l.Token] = l
	}
	return found
}

// owners counts the leases of each owner; "" is nobody.
func (s *shop) owners() map[string]int {
	s.t.Helper()
	counts := map[string]int{}
	for _, l := range s.leases() {
		owner := ""
		if l.Owner != nil {
			owner = *l.Owner
		}
		counts[owner]++
	}
	return counts
}

func (s *shop) tokens() []string {
	s.t.Helper()
	return slices.Sorted(maps.Keys(s.leases()))
}
