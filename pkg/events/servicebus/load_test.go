package servicebus_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
)

// witness is a handler that sees what no consumer may do.
type witness struct {
	mu     sync.Mutex
	broken []string
	busy   map[string]bool
	most   int // handlers at once
	last   map[string]int64
}

func (w *witness) begin(e events.ScaleEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[e.Processor] {
		w.broken = append(w.broken, "two handlers at once for "+e.Processor)
	}
	if e.Sequence <= w.last[e.Processor] {
		w.broken = append(w.broken, fmt.Sprintf("%s after %d", e.ID(), w.last[e.Processor]))
	}
	w.busy[e.Processor] = true
	w.most = max(w.most, len(w.busy))
	w.last[e.Processor] = e.Sequence
}

func (w *witness) end(e events.ScaleEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, e.Processor)
}

func (w *witness) handle(ctx context.Context, e events.ScaleEvent) error {
	w.begin(e)
	defer w.end(e)
	return ctx.Err()
}

func (w *witness) finalState() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.last)
}

// TestManyEventsInAnyOrderLeaveEachProcessorAtItsLast sends 20 events of each of
// 50 processors, some of them twice, out of order, while they are consumed.
func TestManyEventsInAnyOrderLeaveEachProcessorAtItsLast(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		const processors, each, atOnce = 50, 20, 8
		random := rand.New(rand.NewPCG(1, 2))
		want := map[string]int64{}
		var bodies [][]byte
		for p := range processors {
			name := fmt.Sprintf("p%d", p)
			want[name] = each
			for sequence := range int64(each) {
				bodies = append(bodies, made(t, name, 0, sequence+1, 0))
				if random.IntN(4) == 0 {
					bodies = append(bodies, bodies[random.IntN(len(bodies))])
				}
			}
		}
		random.Shuffle(len(bodies), func(i, k int) { bodies[i], bodies[k] = bodies[k], bodies[i] })
		s := startBroker(t, "", spec)
		w := &witness{busy: map[string]bool{}, last: map[string]int64{}}
		o := options(spec, &journal{})
		o.Concurrency = atOnce
		stop := consume(t, s.ConnectionString(), o, w.handle)
		p := newPublisher(t, s.ConnectionString(), patient())
		for _, body := range bodies {
			publish(t, p, body)
		}
		testworld.Eventually(t, "an empty queue", isEmpty(s))
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := w.finalState(); !maps.Equal(got, want) {
			t.Errorf("got %v, want %d everywhere", got, each)
		}
		for _, what := range w.broken {
			t.Error(what)
		}
		if w.most > atOnce {
			t.Errorf("%d handlers at once, want at most %d", w.most, atOnce)
		}
	})
}

func TestNoMoreProcessorsAreHandledAtOnceThanAllowed(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, spec servicebusfake.QueueSpec) {
		s := startBroker(t, "", spec)
		p := newPublisher(t, s.ConnectionString(), patient())
		for _, processor := range []string{"orders", "invoices", "audit", "returns"} {
			publish(t, p, numbered(t, processor, 1))
		}
		o := options(spec, &journal{})
		o.Concurrency = 2
		h := newGate()
		consume(t, s.ConnectionString(), o, h.handle)
		testworld.Came(t, "the first event", h.begun)
		testworld.Came(t, "the second event", h.begun)
		select {
		case e := <-h.begun:
			t.Errorf("%s is handled beside two others", e.ID())
		case <-time.After(100 * time.Millisecond):
		}
		close(h.open)
		testworld.Came(t, "the third event", h.begun)
		testworld.Came(t, "the fourth event", h.begun)
		testworld.Eventually(t, "an empty queue", isEmpty(s))
	})
}
