package poller_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// small is a queue that takes no event of a sequence.
type small struct {
	events.Publisher
	refuses int64
}

func (s small) Publish(ctx context.Context, body []byte) error {
	if e, err := events.Decode(body); err != nil || e.Sequence == s.refuses {
		return fmt.Errorf("%w: %v", events.ErrTooLarge, err)
	}
	return s.Publisher.Publish(ctx, body)
}

func TestAnEventThatIsTooLargeIsDroppedSaidAndHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var log bytes.Buffer
	w.poller.Publisher, w.poller.Log = small{w.poller.Publisher, 1}, slog.New(slog.NewTextHandler(&log, nil))
	w.write(5)
	if r := w.tick(); r.Unpublished != 0 || r.PublishErrors != 1 || r.Complete() {
		t.Errorf("%d unpublished, want none: it will never be taken; %d failed, complete %v", r.Unpublished, r.PublishErrors, r.Complete())
	}
	w.wantEvents()
	if got := log.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "is too large for the queue and is dropped") || !strings.Contains(got, "processor=orders sequence=1") {
		t.Errorf("the log says %s", got)
	}
	w.checkpoint(5)
	if r := w.tick(); r.Published != 1 || r.PublishErrors != 0 {
		t.Errorf("%d published and %d failed, want 1 and 0", r.Published, r.PublishErrors)
	}
	w.wantEvents("orders/2 1->1 false")
}

func TestANewDestinationGetsEveryDecisionOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(5)
	w.tick()
	w.wantEvents("orders/1 null->1 true")
	w.poller.Destination = "servicebus:shop/scale-events"
	w.tick()
	w.wantEvents("orders/2 1->1 true")
	w.tick()
	w.wantEvents()
}

func TestAStateThatWasLostBeginsANewEpochWhoseEventsAreNewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(5)
	w.tick()
	w.checkpoint(5)
	w.tick()
	fresh, err := boltstore.Open(filepath.Join(t.TempDir(), "fresh.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, fresh.Close()) })
	w.poller.Store = fresh
	w.clock.Advance(time.Minute)
	w.tick()
	var seen []events.ScaleEvent
	for line := range strings.Lines(w.broker.got.String()) {
		e, err := events.Decode([]byte(line))
		testworld.Must(t, err)
		seen = append(seen, e)
	}
	if len(seen) != 3 {
		t.Fatalf("%d events, want 3", len(seen))
	}
	before, after := seen[1], seen[2]
	if after.Sequence != 1 || before.Sequence != 2 || after.ID() <= before.ID() {
		t.Errorf("%s does not come after %s", after.ID(), before.ID())
	}
}
