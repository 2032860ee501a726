package poller_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
)

// signalWorld is a world whose processor has the signal queue replicas, and as many replicas as ask says.
type signalWorld struct {
	*world
	bus    *servicebusfake.Server
	log    *logLines
	opened atomic.Int64 // connections to the bus
}

// logLines is the log of a poller.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns how many lines contain a text.
func (l *logLines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func newSignalWorld(t *testing.T, queues ...string) *signalWorld {
	t.Helper()
	specs := []servicebusfake.QueueSpec{{Name: "events"}}
	for _, name := range queues {
		specs = append(specs, servicebusfake.QueueSpec{Name: name})
	}
	w := &signalWorld{world: newWorld(t), bus: testworld.StartNamespace(t, servicebusfake.Options{Queues: specs}), log: &logLines{}}
	w.bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op == servicebusfake.OpOpen {
			w.opened.Add(1)
		}
		return nil
	})
	w.poller.Log = slog.New(slog.NewTextHandler(w.log, nil))
	w.poller.Signals = w.signals()
	w.poller.Processors[0].SignalQueue = "replicas"
	return w
}

// signals are those of a process of its own.
func (w *signalWorld) signals() *servicebus.Signals {
	w.t.Helper()
	p, err := servicebus.NewPublisher(w.bus.ConnectionString(), "replicas", servicebus.PublisherOptions{})
	testworld.Must(w.t, err)
	s := servicebus.NewSignals(p, servicebus.SignalsOptions{})
	w.t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// restart makes the poller a new process with the same state, which the caller configures. What ended the old
// one left no trace.
func (w *signalWorld) restart() {
	old := w.poller
	w.poller = &poller.Poller{
		Processors: append([]poller.Processor(nil), old.Processors...), Groups: append([]poller.Group(nil), old.Groups...),
		Estimator: old.Estimator, Store: old.Store, Publisher: old.Publisher, Settings: old.Settings,
		Now: old.Now, Log: old.Log, Signals: w.signals(),
	}
}

// ask makes the processor ask for so many replicas.
func (w *signalWorld) ask(replicas int) { w.poller.Processors[0].Policy.MinReplicas = replicas }

func (w *signalWorld) wantSignals(queue string, want int) {
	w.t.Helper()
	n := 0
	for _, m := range w.bus.Messages(queue) {
		if m.State == servicebusfake.Active && m.Subject == servicebus.SignalType {
			n++
		}
	}
	if n != want {
		w.t.Errorf("queue %s holds %d messages, want %d", queue, n, want)
	}
}

// steal takes messages out of a queue, as another consumer would by mistake.
func (w *signalWorld) steal(queue string, n int) {
	w.t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(w.bus.ConnectionString(), nil)
	testworld.Must(w.t, err)
	defer client.Close(w.t.Context())
	receiver, err := client.NewReceiverForQueue(queue, &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	testworld.Must(w.t, err)
	for range n {
		_, err := receiver.ReceiveMessages(w.t.Context(), 1, nil)
		testworld.Must(w.t, err)
	}
}

func TestTheSignalQueueFollowsEveryDecision(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	for _, replicas := range []int{3, 3, 7, 2, 0, 4} {
		w.ask(replicas)
		w.poller.Processors[0].Policy.Cooldown = 0
		w.tick()
		w.wantSignals("replicas", replicas)
	}
	if n := w.opened.Load(); n != 1 {
		t.Errorf("%d connections, want one that stays open", n)
	}
}

func TestTheCountIsMadeRightAtEachTick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule      string
		configure func(*signalWorld) // after the first tick, at which three were decided
	}{
		{"where the decision did not change", func(*signalWorld) {}},
		{"where the processor is not due", func(w *signalWorld) { w.poller.Processors[0].Schedule = yearly{} }},
		{"to what was decided before a pause", func(w *signalWorld) {
			w.poller.Processors[0].Policy.Paused = true
			w.ask(9)
		}},
		{"to what a failure holds", func(w *signalWorld) {
			w.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer {
				return &cosmosfake.Answer{Status: http.StatusForbidden}
			})
		}},
		{"by the next process", func(w *signalWorld) { w.restart() }},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newSignalWorld(t, "replicas")
			w.ask(3)
			w.tick()
			c.configure(w)
			w.steal("replicas", 2)
			w.wantSignals("replicas", 1)
			w.tick()
			w.wantSignals("replicas", 3)
			testworld.Must(t, w.signals().Keep(t.Context(), "replicas", 8))
			w.tick()
			w.wantSignals("replicas", 3)
		})
	}
}

// yearly is a schedule that is due at the end of a year.
type yearly struct{}

func (yearly) Next(t time.Time) time.Time { return time.Date(t.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestAPollerThatWasAwayForHoursComesBackToTheRightCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		away func(*signalWorld)
		want int // while it is away
	}{
		{"nothing happened: the last count stays", func(*signalWorld) {}, 5},
		{"messages are missing", func(w *signalWorld) { w.steal("replicas", 4) }, 1},
		{"there are too many", func(w *signalWorld) { testworld.Must(w.t, w.signals().Keep(w.t.Context(), "replicas", 40)) }, 40},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			w := newSignalWorld(t, "replicas")
			w.ask(5)
			w.tick()
			w.clock.Advance(9 * time.Hour)
			c.away(w)
			w.wantSignals("replicas", c.want)
			w.restart()
			w.tick()
			w.wantSignals("replicas", 5)
		})
	}
}

func TestWhereNothingWasDecidedTheQueueIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	testworld.Must(t, w.signals().Keep(t.Context(), "replicas", 4))
	w.Account.Control(func(*cosmosfake.Request) *cosmosfake.Answer {
		return &cosmosfake.Answer{Status: http.StatusForbidden}
	})
	for range 4 {
		w.tick()
		w.wantSignals("replicas", 4)
	}
}

func TestAGroupHasItsSignalQueue(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	w.poller.Processors[0].SignalQueue, w.poller.Processors[0].Group = "", "workers"
	w.poller.Groups = []poller.Group{{Name: "workers", SignalQueue: "replicas"}}
	w.poller.Groups[0].Policy.MinReplicas = 6
	w.tick()
	w.wantSignals("replicas", 6)
	w.poller.Processors[0].Schedule = yearly{}
	w.steal("replicas", 1)
	w.tick()
	w.wantSignals("replicas", 6)
}

func TestAQueueThatNothingNamesAnyMoreIsEmptied(t *testing.T) {
	t.Parallel()
	without := func(w *signalWorld) { w.poller.Processors[0].SignalQueue = "" }
	for _, c := range []struct {
		rule      string
		configure func(*signalWorld)
		want      map[string]int
	}{
		{"the processor lost it", without, map[string]int{"replicas": 0}},
		{"the processor left the file", func(w *signalWorld) { w.poller.Processors = nil }, map[string]int{"replicas": 0}},
		{"the processor names another", func(w *signalWorld) { w.poller.Processors[0].SignalQueue = "others" }, map[string]int{"replicas": 0, "others": 3}},
		{"unless the processor was renamed", func(w *signalWorld) { w.poller.Processors[0].Name = "orders-2" }, map[string]int{"replicas": 3}},
		{"unless its group names it now", func(w *signalWorld) {
			without(w)
			w.poller.Processors[0].Group, w.poller.Groups = "workers", []poller.Group{{Name: "workers", SignalQueue: "Replicas"}}
		}, map[string]int{"replicas": 3}},
		{"unless the events go there now", func(w *signalWorld) {
			without(w)
			w.poller.Destination = w.poller.Signals.Namespace() + "/replicas"
		}, map[string]int{"replicas": 3}},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed before that %v", c.rule, crash), func(t *testing.T) {
				t.Parallel()
				w := newSignalWorld(t, "replicas", "others")
				w.ask(3)
				w.tick()
				w.restart()
				if crash {
					// A process ends that has remembered, and not sent: the queue cannot be reached meanwhile.
					w.poller.Signals = noSignals{w.poller.Signals}
					c.configure(w)
					w.tick()
					w.wantSignals("replicas", 3)
					w.clock.Advance(time.Hour)
					w.restart()
				}
				c.configure(w)
				w.tick()
				for queue, want := range c.want {
					w.wantSignals(queue, want)
				}
				w.clock.Advance(time.Hour)
				w.tick()
				documents, err := w.store.Documents(t.Context(), state.SignalQueuesName)
				testworld.Must(t, err)
				var list state.SignalQueues
				testworld.Must(t, documents[0].Decode(&list))
				for _, q := range list.Queues {
					if c.want[q.Queue] == 0 {
						t.Errorf("%s is remembered for ever", q.Queue)
					}
				}
			})
		}
	}
}

// noSignals reaches no queue.
type noSignals struct{ poller.Signals }

func (noSignals) Keep(context.Context, string, int) error { return fmt.Errorf("the bus is down") }
func (noSignals) Empty(context.Context, string) error     { return fmt.Errorf("the bus is down") }

func TestAQueueThatAnOlderProcessFillsAgainIsEmptiedAgain(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas", "others")
	w.ask(3)
	w.tick()
	older := w.poller
	w.restart()
	w.poller.Processors[0].SignalQueue = "others"
	newer := w.poller
	for range 3 {
		w.poller = newer
		w.tick()
		w.wantSignals("replicas", 0)
		w.wantSignals("others", 3)
		w.poller = older // which empties the other's queue in its turn
		w.tick()
		w.wantSignals("replicas", 3)
	}
	w.poller = newer // once the older one is gone
	w.tick()
	w.wantSignals("replicas", 0)
	w.wantSignals("others", 3)
}

func TestAQueueInAnotherNamespaceIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	w.ask(3)
	w.tick()
	for range 3 {
		w.restart()
		w.poller.Signals, w.poller.Processors[0].SignalQueue = nil, ""
		w.tick()
	}
	if n := w.log.count("a signal queue was left behind in another namespace"); n != 1 {
		t.Errorf("said %d times: %s", n, &w.log.text)
	}
}

func TestATroubleWithASignalQueueIsItsProcessorsAlone(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "others")
	w.Container("payments", 1)
	payments := w.poller.Processors[0]
	payments.Name, payments.SignalQueue = "payments", "others"
	payments.Container.ID = "payments"
	w.Put(testworld.Leases, w.LeasesOf("", "acct", "payments").DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(0)}))
	w.poller.Processors = append(w.poller.Processors, payments)
	w.poller.Processors[1].Policy.MinReplicas = 2
	w.ask(3)
	for range 3 {
		if r := w.tick(); r.Unpublished > 0 || r.Uncommitted > 0 {
			t.Errorf("%+v", r)
		}
	}
	// Each in its own pipeline: nothing orders the events of different processors.
	events := w.broker.take(t)
	slices.Sort(events)
	if want := []string{"orders/1 null->3 false", "payments/1 null->2 false"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	w.wantSignals("others", 2)
	if n := w.log.count(`queue \"replicas\" does not exist in Service Bus namespace`); n != 1 {
		t.Errorf("said %d times: %s", n, &w.log.text)
	}
	testworld.Must(t, w.bus.CreateQueue(servicebusfake.QueueSpec{Name: "replicas"}))
	w.tick()
	w.wantSignals("replicas", 3)
	if n := w.log.count("a signal queue holds the right count again"); n != 1 {
		t.Errorf("said %d times that it works again: %s", n, &w.log.text)
	}
}

func TestAQueueThatHangsDelaysNoOtherOne(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas", "others")
	w.Container("payments", 1)
	payments := w.poller.Processors[0]
	payments.Name, payments.SignalQueue, payments.Container.ID = "payments", "others", "payments"
	w.Put(testworld.Leases, w.LeasesOf("", "acct", "payments").DotNetPKOld("0", leasefake.Fields{Continuation: leasefake.At(0)}))
	w.poller.Processors = append(w.poller.Processors, payments)
	w.poller.Processors[1].Policy.MinReplicas = 2
	w.ask(3)
	w.bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op != servicebusfake.OpManage || r.Entity != "replicas" {
			return nil
		}
		return &servicebusfake.Answer{LoseReply: true, Keep: true}
	})
	ended := make(chan time.Duration)
	go func() {
		began := time.Now()
		w.tick()
		ended <- time.Since(began)
	}()
	testworld.Eventually(t, "the other queue's count", func() bool { return len(w.bus.Messages("others")) == 2 })
	if took := <-ended; took > 20*time.Second {
		t.Errorf("the tick took %s", took)
	}
	w.wantSignals("replicas", 0)
}

func TestWithoutASignalQueueTheBusIsNotAsked(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t)
	w.poller.Processors[0].SignalQueue = ""
	counted := &countingLoads{Store: w.poller.Store}
	w.poller.Store = counted
	for range 3 {
		w.tick()
	}
	if w.opened.Load() > 0 || counted.signals.Load() != 1 {
		t.Errorf("%d connections, and %d reads of the list of queues, want none and one", w.opened.Load(), counted.signals.Load())
	}
}

// countingLoads counts reads of the list of signal queues.
type countingLoads struct {
	state.Store
	signals atomic.Int64
}

func (s *countingLoads) Documents(ctx context.Context, name string) ([]state.Document, error) {
	if name == state.SignalQueuesName {
		s.signals.Add(1)
	}
	return s.Store.Documents(ctx, name)
}

func TestADryRunTouchesNoSignalQueue(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	w.ask(3)
	_, err := w.poller.Tick(t.Context(), poller.Mode{All: true, DryRun: true})
	testworld.Must(t, err)
	w.wantSignals("replicas", 0)
	if w.opened.Load() > 0 {
		t.Error("it connected")
	}
}

func TestTwoPollersAtOnceConvergeOnOneCount(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	w.ask(3)
	first := w.poller
	w.restart()
	second := w.poller
	for _, replicas := range []int{3, 9, 1, 6} {
		first.Processors[0].Policy.MinReplicas, second.Processors[0].Policy.MinReplicas = replicas, replicas
		for range 2 {
			var both sync.WaitGroup
			for _, p := range []*poller.Poller{first, second} {
				both.Go(func() {
					if _, err := p.Tick(t.Context(), poller.Mode{}); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			w.clock.Advance(30 * time.Second)
		}
		w.wantSignals("replicas", replicas)
	}
}

// TestASignalQueueThatWasRemovedBeforeAnUpgradeIsEmptied begins with the row that the releases up to 0.1 wrote.
func TestASignalQueueThatWasRemovedBeforeAnUpgradeIsEmptied(t *testing.T) {
	t.Parallel()
	w := newSignalWorld(t, "replicas")
	w.ask(3)
	w.tick()
	w.wantSignals("replicas", 3)
	documents, err := w.store.Documents(t.Context(), state.SignalQueuesName)
	testworld.Must(t, err)
	documents[0].Text = []byte(`{"format":2,"lines":0,"complete":false,"processor":"signal.queues","attemptedAt":"0001-01-01T00:00:00Z",` +
		`"lag":{"time":"0001-01-01T00:00:00Z","partitions":null,"requestCharge":0,"requests":0},"memory":{},"sequence":0,` +
		`"signalQueues":[{"namespace":"` + w.poller.Signals.Namespace() + `","queue":"replicas","left":"` + w.clock.Now().Format(time.RFC3339) + `"}]}` + "\n")
	_, err = w.store.Put(t.Context(), documents[0])
	testworld.Must(t, err)
	w.restart()
	w.poller.Processors[0].SignalQueue = ""
	for range 2 {
		w.tick()
		w.wantSignals("replicas", 0)
		w.clock.Advance(time.Hour)
	}
	documents, err = w.store.Documents(t.Context(), state.SignalQueuesName)
	if err != nil || strings.Contains(string(documents[0].Text), "replicas") {
		t.Errorf("it is remembered for ever: %s, %v", documents[0].Text, err)
	}
}
