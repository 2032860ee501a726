package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/lifeline"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

var hostTicks = flag.Int("hostticks", 1500, "seconds of hosts of the change feed processor, over all seeds")

// secondsOfARun is how long the hosts of one seed run, before what is left is settled.
const secondsOfARun = 500

// hosts is a world of hosts of pkg/changefeedprocessor, whose network a seed chooses. The clock is that of a
// bubble. The story is not told twice: the runtime chooses which goroutine is first.
type hosts struct {
	*testworld.World
	t      testing.TB
	random *rand.Rand
	ranges []string
	up     []*goHost
	names  int

	mu      sync.Mutex
	faults  faultsOfHosts
	written map[string]int
	newest  map[string]int   // by customer: the last number that was handled
	at      map[string]int64 // by lease: the greatest LSN of its checkpoints
	taken   map[string]taken // by lease token
	broken  []string
}

// faultsOfHosts are what the network does until the next turn.
type faultsOfHosts struct {
	lost, storm, throttled float64 // chances that an answer is lost, a write is 412, a request for a lease is 429
}

// taken is who took a lease last, and when.
type taken struct {
	by *goHost
	at time.Time
}

// learns is how long a host may work on a lease that another one took. Its next renewal fails; if answers are lost,
// it stops when the lease expires, after 60 s. A handler takes less than a second.
const learns = 61 * time.Second

// sharedSource is a source of chance for the world and its hosts at once.
type sharedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (s *sharedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source.Uint64()
}

// goHost is one host.
type goHost struct {
	w     *hosts
	name  string
	line  *lifeline.Line
	stop  context.CancelFunc
	ended chan error
	skew  time.Duration // of its clock; guarded by the world's lock
	dead  bool          // it was killed; guarded by the world's lock
}

var stamps = regexp.MustCompile(`"timestamp":"([^"]*Z)"`)

// shifted is a document or a list of them, with the times of leases moved.
func shifted(text []byte, by time.Duration) []byte {
	return stamps.ReplaceAllFunc(text, func(found []byte) []byte {
		at, err := time.Parse(time.RFC3339Nano, string(stamps.FindSubmatch(found)[1]))
		if err != nil {
			return found
		}
		return fmt.Appendf(nil, `"timestamp":%q`, at.Add(by).Format("2006-01-02T15:04:05.9999999Z"))
	})
}

// RoundTrip is the network of the host: its clock is off, and what it sends is answered as the world wants.
func (h *goHost) RoundTrip(r *http.Request) (*http.Response, error) {
	w := h.w
	if !strings.Contains(r.URL.Path, "/colls/"+testworld.Leases+"/docs") {
		return w.Transport.RoundTrip(r)
	}
	w.mu.Lock()
	skew, f, dice := h.skew, w.faults, [3]float64{w.random.Float64(), w.random.Float64(), w.random.Float64()}
	w.mu.Unlock()
	write := r.Method == http.MethodPut || r.Method == http.MethodDelete
	refuse := func(status int, header http.Header) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
	}
	switch {
	case dice[0] < f.throttled:
		return refuse(http.StatusTooManyRequests, http.Header{"X-Ms-Retry-After-Ms": {"300"}})
	case write && dice[1] < f.storm:
		return refuse(http.StatusPreconditionFailed, http.Header{})
	}
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = shifted(text, skew)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	response, err := w.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // was read
	if err != nil {
		return nil, err
	}
	if dice[2] < f.lost {
		return nil, fmt.Errorf("the answer was lost: %w", io.ErrUnexpectedEOF)
	}
	text = shifted(text, -skew)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	response.Header.Del("Content-Length")
	return response, nil
}

// fail notes that a promise was broken.
func (w *hosts) fail(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// start starts a host with a clock that is a few seconds off.
func (w *hosts) start() {
	w.names++
	h := &goHost{w: w, name: fmt.Sprint("host-", w.names), ended: make(chan error, 1), skew: time.Duration(w.random.IntN(6000)-3000) * time.Millisecond}
	h.line = lifeline.New(h)
	client := w.ProcessorClient(h.line)
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: testworld.Database, ID: "orders"},
		changefeedprocessor.Container{Client: client, Database: testworld.Database, ID: testworld.Leases},
		changefeedprocessor.Options{
			Name: "simulated", Instance: h.name, FromBeginning: true, MaxItems: 5, Retries: -1, Handle: h.handle,
			Acquired: func(lease string) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.taken[lease] = taken{h, time.Now()}
			},
		})
	testworld.Must(w.t, err)
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.ended <- p.Run(ctx) }()
	w.up = append(w.up, h)
}

// handle holds that no change of a key comes before one that was written earlier, and that the host may
// work on the lease.
func (h *goHost) handle(ctx context.Context, b changefeedprocessor.Batch) error {
	w := h.w
	w.mu.Lock()
	takes, fails := time.Duration(w.random.IntN(400))*time.Millisecond, w.random.IntN(60) == 0
	w.mu.Unlock()
	time.Sleep(takes)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch t := w.taken[b.Lease]; {
	case h.dead || fails:
		return fmt.Errorf("lease %s: as it was told to", b.Lease)
	case t.by != h && time.Since(t.at) > learns:
		w.fail("one owner: %s works on lease %s, which %s took %s ago", h.name, b.Lease, t.by.name, time.Since(t.at))
	}
	for _, item := range b.Items {
		var order struct {
			Customer string
			Number   int
		}
		if err := json.Unmarshal(item, &order); err != nil {
			return err
		}
		switch next := w.newest[order.Customer] + 1; {
		case order.Number == next:
			w.newest[order.Customer]++
		case order.Number > next:
			w.fail("in order: %s: %d came before %d", order.Customer, order.Number, next)
		}
	}
	return nil
}

// turn does something to the world, or nothing.
func (w *hosts) turn() {
	w.mu.Lock()
	dice, at := w.random.IntN(40), w.random.IntN(len(w.ranges))
	w.mu.Unlock()
	first := func() *goHost {
		h := w.up[0]
		w.up = w.up[1:]
		return h
	}
	switch {
	case dice == 0 && len(w.ranges) < 6:
		children, err := w.Account.Split(testworld.Database, "orders", w.ranges[at])
		testworld.Must(w.t, err)
		w.ranges = slices.Replace(w.ranges, at, at+1, children...)
	case dice == 1 && len(w.ranges) > 2:
		at = min(at, len(w.ranges)-2)
		child, err := w.Account.Merge(testworld.Database, "orders", w.ranges[at], w.ranges[at+1])
		testworld.Must(w.t, err)
		w.ranges = slices.Replace(w.ranges, at, at+2, child)
	case dice == 2 && len(w.up) > 1:
		h := first()
		w.mu.Lock()
		h.dead = true
		w.mu.Unlock()
		h.line.Cut()
		h.stop()
	case dice == 3 && len(w.up) > 1:
		first().stop()
	case dice < 6 && len(w.up) < 3:
		w.start()
	case dice == 6:
		w.mu.Lock()
		w.faults = faultsOfHosts{lost: w.random.Float64() / 4}
		w.mu.Unlock()
	case dice == 7:
		w.mu.Lock()
		w.faults = faultsOfHosts{storm: w.random.Float64() / 2, throttled: w.random.Float64() / 2}
		w.mu.Unlock()
	case dice == 8 && len(w.up) > 0:
		w.mu.Lock()
		w.up[0].skew = time.Duration(w.random.IntN(6000)-3000) * time.Millisecond
		w.mu.Unlock()
	case dice < 13:
		w.mu.Lock()
		w.faults = faultsOfHosts{}
		w.mu.Unlock()
	}
}

// write writes some orders, each the next of its customer.
func (w *hosts) write(n int) {
	for range n {
		w.mu.Lock()
		customer := fmt.Sprint("customer-", w.random.IntN(20))
		w.written[customer]++
		number := w.written[customer]
		w.mu.Unlock()
		w.Put("orders", map[string]any{"id": fmt.Sprintf("%s-%d", customer, number), "customer": customer, "number": number})
	}
}

// look holds that no checkpoint goes back while its lease is there.
func (w *hosts) look(leases []leasefake.DotNetLease) {
	seen := map[string]int64{}
	for _, l := range leases {
		if l.Continuation == nil {
			continue
		}
		lsn, _ := changefeed.ContinuationLSN(*l.Continuation)
		seen[l.ID] = lsn
		w.mu.Lock()
		if before, ok := w.at[l.ID]; ok && lsn < before {
			w.fail("checkpoints: that of lease %s went back from %d to %d", l.Token, before, lsn)
		}
		w.mu.Unlock()
	}
	w.at = seen
}

// run runs the world, lets it settle, and returns what was broken.
func (w *hosts) run() []string {
	w.start()
	reader := w.SDK()
	leases := func() []leasefake.DotNetLease {
		return testworld.ReadLeases(w.t, reader, testworld.Database, testworld.Leases, "simulated")
	}
	for range secondsOfARun {
		w.turn()
		w.write(1)
		time.Sleep(time.Second)
		w.look(leases())
		if len(w.broken) > 0 {
			return w.broken
		}
	}
	w.mu.Lock()
	w.faults = faultsOfHosts{}
	w.mu.Unlock()
	w.start()
	time.Sleep(5 * time.Minute) // killed hosts' leases expire, and what failed is tried again
	w.mu.Lock()
	for customer, n := range w.written {
		if w.newest[customer] != n {
			w.fail("at least once: %s: %d of %d were handled", customer, w.newest[customer], n)
		}
	}
	w.mu.Unlock()
	for _, h := range w.up {
		h.stop()
		if err := <-h.ended; err != nil {
			w.fail("an end in order: %s: %v", h.name, err)
		}
	}
	for _, l := range leases() {
		if l.Owner != nil && slices.ContainsFunc(w.up, func(h *goHost) bool { return h.name == *l.Owner }) {
			w.fail("an end in order: lease %s was not handed back by %s", l.Token, *l.Owner)
		}
	}
	return w.broken
}

// TestNoFaultBreaksAPromiseOfAHost runs hosts of the change feed processor in virtual time, through lost
// answers, 412 storms, 429 on leases alone, clocks that are off and jump, kills, splits and merges.
func TestNoFaultBreaksAPromiseOfAHost(t *testing.T) {
	for ran, s := 0, *seed; ran < *hostTicks; ran, s = ran+secondsOfARun, s+1 {
		synctest.Test(t, func(t *testing.T) {
			w := &hosts{
				World: testworld.New(t, testworld.Options{InMemory: true}), t: t, random: rand.New(&sharedSource{source: rand.NewPCG(s, 31)}),
				ranges: []string{"0", "1", "2"}, written: map[string]int{}, newest: map[string]int{}, at: map[string]int64{}, taken: map[string]taken{},
			}
			w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/customer"}, Partitions: 3})
			broken := w.run()
			for _, h := range w.up {
				h.line.Cut()
				h.stop()
			}
			if len(broken) > 0 {
				t.Fatalf("seed %d: %s", s, strings.Join(broken, "\n"))
			}
		})
	}
}

// hostMutants are defects of a host.
var hostMutants = []mutant{
	{"a lease is written over whatever revision is there", "changefeedprocessor/store.go", "\tl.ETag, err = s.write(ctx, l.Key(), l.ID, document, l.ETag)\n", "\tif l.ETag != \"\" {\n\t\tif now, e := s.again(ctx, l); e == nil {\n\t\t\tl.ETag = now.ETag\n\t\t}\n\t}\n\tl.ETag, err = s.write(ctx, l.Key(), l.ID, document, l.ETag)\n"},
	{"children of a split begin where the newest page ends", "changefeedprocessor/partition.go", "gone.Lease, gone.Continuation,", "gone.Lease, `\"999999\"`,"},
	{"a page whose handler fails is checkpointed", "changefeedprocessor/handle.go", "\tif err := p.deliver(b, true); err != nil {\n", "\tif err := p.deliver(b, true); false {\n"},
	{"a page is checkpointed before it is handled", "changefeedprocessor/handle.go", "\tif err := p.deliver(b, true); err != nil {\n", "\t_ = p.checkpoint(p.owning, b.number, b.continuation)\n\tif err := p.deliver(b, true); err != nil {\n"},
	{"an EPK lease is read in all of its range", "changefeed/position.go", "if p.Part != (Range{}) {", "if p.Part != p.Part {"},
	{"a parent is deleted without its children", "changefeedprocessor/partition.go", "\tfor _, next := range wanted {\n", "\tfor _, next := range wanted[1:] {\n"},
	{"a host that stops keeps its leases", "changefeedprocessor/partition.go", "released := p.change(p.owning, func(l *changefeed.Record) { p.leases.Own(l, \"\") })", "released := error(nil)"},
}

// TestEveryHostMutantCanBePlanted fails where a source has changed so that a defect no longer fits into it.
func TestEveryHostMutantCanBePlanted(t *testing.T) {
	for _, m := range hostMutants {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Errorf("%s: %v", m.defect, err)
		}
	}
}

// TestEveryHostMutantIsFound is a part of `make mutants`.
func TestEveryHostMutantIsFound(t *testing.T) {
	if !*mutate {
		t.Skip("make mutants plants them: each is a build of its own")
	}
	for _, m := range hostMutants {
		if !strings.Contains(m.defect, *only) {
			continue
		}
		folder := t.TempDir()
		list, err := m.overlay(folder)
		testworld.Must(t, err)
		program := filepath.Join(folder, "simulation.test")
		if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", program, ".").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", m.defect, err, out)
		}
		out, err := exec.CommandContext(t.Context(), program, "-test.run", "^TestNoFaultBreaksAPromiseOfAHost$", "-seed", fmt.Sprint(*seed), "-hostticks", "5000").CombinedOutput()
		if err == nil {
			t.Errorf("%s: not found", m.defect)
			continue
		}
		fmt.Printf("%s: %s\n", m.defect, regexp.MustCompile(`seed \d+: .*`).Find(out))
	}
}
