package main_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state/storetest"
)

// stageFanOut stages the function app with the function shard.
var stageFanOut = sync.OnceValues(func() (folder string, err error) {
	folder = filepath.Join(scratch, "fanout")
	return folder, makeDist(context.Background(), folder, "FANOUT=1")
})

const shardQueue = "shards"

// leases is the number of leases in a tick that four handlers share. `make fanout` uses more.
var leases = flag.Int("leases", 24, "leases in the tick of TestATickIsSpreadOverHostsAndNoProcessorIsPolledTwice")

// fanned is a world whose ticks are shared by several hosts, in four shards. Its first two
// processors are a group.
type fanned struct {
	*world
	hosts      []*functionshost.Host
	names      []string // of the processors
	partitions int      // of each processor
	patience   time.Duration

	mu     sync.Mutex
	reads  map[string]int                                 // reads of the change feed since the last tick, by container
	answer func(r *cosmosfake.Request) *cosmosfake.Answer // to reads of the change feed
}

// newFanned has 8 processors, or one for each hundred leases if there are more. Ten share a lease
// container.
func newFanned(t *testing.T, leases, hosts int, queue servicebusfake.QueueSpec) *fanned {
	t.Helper()
	w := &fanned{world: newWorld(t), reads: map[string]int{}, patience: testworld.Deadline + time.Duration(leases)*5*time.Millisecond}
	count := max(8, leases/100)
	w.partitions = leases / count
	w.setAnswer(func(*cosmosfake.Request) *cosmosfake.Answer { return nil })
	queue.Name, queue.DuplicateDetectionWindow = shardQueue, time.Minute
	testworld.Must(t, w.Namespace.CreateQueue(queue))
	var processors []string
	for i := range count {
		name, container, group := fmt.Sprintf("p%d", i), fmt.Sprintf("leases%d", i/10), ""
		if i%10 == 0 {
			w.Create(cosmosfake.ContainerSpec{ID: container, PartitionKey: []string{"/id"}})
		}
		if i < 2 {
			group = ", group: g"
		}
		w.Container(name, w.partitions)
		of := w.LeasesOf("", testworld.OrdersHost, name)
		for partition := range w.partitions {
			w.Put(container, of.DotNetPKOld(fmt.Sprint(partition), testworld.At(0)))
		}
		w.names = append(w.names, name)
		processors = append(processors, fmt.Sprintf("{name: %s, containerId: %s, leaseContainerId: %s%s}", name, name, container, group))
	}
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind != cosmosfake.ReadChangeFeed {
			return nil
		}
		w.mu.Lock()
		w.reads[r.Container]++
		answer := w.answer
		w.mu.Unlock()
		return answer(r)
	})
	file := filepath.Join(t.TempDir(), "processors.yaml")
	testworld.Must(t, os.WriteFile(file, []byte("defaults: {connection: COSMOS, databaseId: shop, accountHost: "+testworld.OrdersHost+", changeFeedLagThreshold: 1}\n"+
		"groups: [{name: g}]\nprocessors:\n- "+strings.Join(processors, "\n- ")+"\n"), 0o600))
	settings := w.settings()
	delete(settings, "FEEDSCALE_PROCESSORS")
	// once a year, so that no tick overruns
	settings["FEEDSCALE_CONFIG"], settings["FEEDSCALE_TICK_TIMEOUT"], settings["FEEDSCALE_TIMER_SCHEDULE"] = file, "4m", "0 0 0 1 1 *"
	settings["FEEDSCALE_SHARD_QUEUE"], settings["FEEDSCALE_SHARDS"], settings["FEEDSCALE_SHARD_SIZE"] = shardQueue, settings["SERVICEBUS"], fmt.Sprint(leases/4)
	if leases >= 1000 {
		settings["FEEDSCALE_CONCURRENCY"] = "16" // stand-ins, table and handlers share one machine
	}
	for range hosts {
		w.hosts = append(w.hosts, startHost(t, functionshost.Options{Root: made(t, stageFanOut), Settings: settings, Receive: true}))
	}
	return w
}

func (w *fanned) setAnswer(answer func(r *cosmosfake.Request) *cosmosfake.Answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// begin fires the timer of the first host, which hands out the shards of a tick.
func (w *fanned) begin() (at time.Time) {
	w.t.Helper()
	w.mu.Lock()
	clear(w.reads)
	w.mu.Unlock()
	at = time.Now().Truncate(time.Millisecond)
	tick(w.t, w.hosts[0])
	return at
}

// awaitPolled waits until every processor and the group were polled since a time, and the queue is
// empty.
func (w *fanned) awaitPolled(since time.Time) {
	w.t.Helper()
	store, late := w.store(), time.After(w.patience)
	for _, name := range append([]string{"g"}, w.names...) {
		for {
			record, err := storetest.Load(w.t.Context(), store, name)
			if err == nil && !record.State.AttemptedAt.Before(since) && len(record.Outbox) == 0 {
				break
			}
			select {
			case <-late:
				for _, h := range w.hosts {
					for _, line := range h.Logs() {
						if line.Level == functionshost.Error || line.Level == functionshost.Warning || strings.Contains(line.Text, "Functions.shard") || strings.Contains(line.Text, `"msg":"tick"`) {
							w.t.Log(line.Level, line.Text)
						}
					}
				}
				w.t.Fatalf("%s is not polled: %v", name, err)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	testworld.Eventually(w.t, "the end of every shard", func() bool { return len(w.Namespace.Messages(shardQueue)) == 0 })
}

// wantReads checks how often the feeds of each processor were read: once for each partition.
func (w *fanned) wantReads(twice ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range w.names {
		want := w.partitions
		if slices.Contains(twice, name) {
			want *= 2
		}
		if got := w.reads[name]; got != want {
			w.t.Errorf("%d reads of %s, want %d", got, name, want)
		}
	}
}

// wantEventsInOrder checks that the queue has so many events of each subject, once each and in
// order.
func (w *fanned) wantEventsInOrder(each int) {
	w.t.Helper()
	last, ids := map[string]events.ScaleEvent{}, map[string]bool{}
	count := map[string]int{}
	for _, m := range w.Namespace.Messages(testworld.Queue) {
		e, err := events.Decode(m.Body)
		testworld.Must(w.t, err)
		before, ok := last[e.Subject()]
		if ids[m.ID] || ok && e.ID() <= before.ID() {
			w.t.Errorf("%s comes behind %s", e.ID(), before.ID())
		}
		last[e.Subject()], ids[m.ID] = e, true
		count[e.Subject()]++
	}
	for _, name := range append(slices.Clone(w.names[2:]), "g") {
		if count[name] != each {
			w.t.Errorf("%d events of %s, want %d", count[name], name, each)
		}
	}
	if count["p0"]+count["p1"] > 0 {
		w.t.Error("members of the group have events of their own")
	}
}

// usage returns the memory and the CPU time of each handler.
func (w *fanned) usage() (all []string) {
	for _, h := range w.hosts {
		_, _, body := ask(w.t, h, "/api/metrics", h.MasterKey())
		values := map[string]float64{}
		for line := range strings.Lines(string(body)) {
			var name string
			var value float64
			if n, _ := fmt.Sscanf(line, "%s %g", &name, &value); n == 2 {
				values[name] = value
			}
		}
		all = append(all, fmt.Sprintf("%.0f MiB, %.1f s", values["process_resident_memory_bytes"]/(1<<20), values["process_cpu_seconds_total"]))
	}
	return all
}

// shardsRun returns how many invocations of the function shard a host has begun, and how many have
// ended.
func shardsRun(h *functionshost.Host) (begun, ended int) {
	return logged(h, "Executing 'Functions.shard'"), logged(h, "Executed 'Functions.shard'")
}

// TestATickIsSpreadOverHostsAndNoProcessorIsPolledTwice has four handlers on one state table.
func TestATickIsSpreadOverHostsAndNoProcessorIsPolledTwice(t *testing.T) {
	t.Parallel()
	w := newFanned(t, *leases, 4, servicebusfake.QueueSpec{})
	if *leases < 1000 {
		w.setAnswer(func(*cosmosfake.Request) *cosmosfake.Answer {
			// too slow for a single handler
			return &cosmosfake.Answer{Delay: 100 * time.Millisecond}
		})
	}
	for round := range 3 {
		for _, name := range w.names {
			w.Write(name, 1) // each asks for one more replica
		}
		since := w.begin()
		handedOver := time.Since(since)
		w.awaitPolled(since)
		t.Logf("tick %d: %d leases of %d processors, handed over after %s, polled after %s", round, *leases, len(w.names), handedOver.Round(time.Millisecond), time.Since(since).Round(time.Millisecond))
		w.wantReads()
		w.wantEventsInOrder(round + 1)
	}
	took := 0
	for _, h := range w.hosts {
		if begun, _ := shardsRun(h); begun > 0 {
			took++
		}
		for _, line := range h.Logs() {
			if line.Level == functionshost.Error || line.Level == functionshost.Warning {
				t.Errorf("the host logged %+v", line)
			}
		}
	}
	if took < 3 {
		t.Errorf("%d of 4 hosts polled shards", took)
	}
	// at the end, since a read of the metrics loads all States
	t.Logf("handlers at the end: %q", w.usage())
}

// TestAShardThatIsLostComesBack: another handler gets the shard, and polls what the first has not
// committed.
func TestAShardThatIsLostComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		end  func(*functionshost.Host)
	}{
		{"at once, where the handler is killed: its host abandons it", (*functionshost.Host).Kill},
		{"when its lock ends, where the host is gone, too", func(h *functionshost.Host) {
			h.Crash()
			_ = h.Orphan().Kill()
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newFanned(t, 24, 3, servicebusfake.QueueSpec{LockDuration: 2 * time.Second, MaxDeliveryCount: 1000})
			w.awaitPolled(w.begin()) // after this the number of leases is known
			for _, name := range w.names {
				w.Write(name, 1)
			}
			released := make(chan struct{})
			var holding sync.Once
			held := make(chan struct{})
			w.setAnswer(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Container == "p5" {
					holding.Do(func() { close(held) })
					<-released
				}
				return nil
			})
			since := w.begin()
			<-held
			store := w.store()
			testworld.Eventually(t, "the poll of all but one", func() bool {
				record, err := storetest.Load(t.Context(), store, "p4") // in the same shard as p5
				return err == nil && !record.State.AttemptedAt.Before(since)
			})
			var lost *functionshost.Host
			testworld.Eventually(t, "one host alone at work", func() bool {
				busy := 0
				for _, h := range w.hosts {
					if begun, ended := shardsRun(h); begun > ended {
						lost, busy = h, busy+1
					}
				}
				return busy == 1
			})
			c.end(lost)
			close(released)
			w.awaitPolled(since)
			w.wantReads("p5")
			w.wantEventsInOrder(2)
		})
	}
}

func TestWithoutTheShardQueueATickPollsWhatItCan(t *testing.T) {
	t.Parallel()
	w := newFanned(t, 24, 1, servicebusfake.QueueSpec{})
	w.awaitPolled(w.begin())
	w.Namespace.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op == servicebusfake.OpSend && r.Entity == shardQueue {
			return &servicebusfake.Answer{Condition: "com.microsoft:entity-disabled", Keep: true}
		}
		return nil
	})
	polled := map[string]bool{}
	for range 4 { // shards
		w.begin()
		w.mu.Lock()
		for name := range w.reads {
			polled[name] = true
		}
		w.mu.Unlock()
	}
	if len(polled) != len(w.names) {
		t.Errorf("polled %v in turn", polled)
	}
	await(t, w.hosts[0], "shards cannot be handed over: this process polls the one that has waited the longest, and the others wait for the next tick")
}

func TestAQueueOfShardsThatNobodyTakesFromIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	settings["FEEDSCALE_SHARD_QUEUE"], settings["FEEDSCALE_SHARDS"] = shardQueue, settings["SERVICEBUS"]
	settings["FUNCTIONS_APP_ROOT_PATH"] = made(t, stage)
	for _, name := range []string{"serve", "check"} {
		handler := exec.CommandContext(t.Context(), filepath.Join(made(t, stage), "handler"), name)
		handler.Env = append(testworld.Environ(settings), "HOME="+t.TempDir(), "FUNCTIONS_CUSTOMHANDLER_PORT=0")
		if r := testworld.Run(t, handler); r.Status != 2 || !strings.Contains(r.Stdout+r.Stderr, "make dist FANOUT=1") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
