package poller_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/state"
)

// witness notes what hosts ran, by their leases and handlers, second by second.
type witness struct {
	*live
	up      []*host
	names   int
	blocked bool // handlers do not return; guarded by the lock of live
	refused bool // the poller cannot read the leases; set between polls only

	reader *azcosmos.Client // of the leases
	seen   time.Time        // when the leases were read last
	writes []time.Time      // when each document was written
	oldest int              // index of the first document that was not handled
	late   bool             // it was written more than a minute ago
	flips  int              // how often late changed

	// sums since the last poll: seconds times owners, and seconds in which late was true
	owners, over float64
}

// RoundTrip is the network of the poller.
func (w *witness) RoundTrip(q *http.Request) (*http.Response, error) {
	if w.refused && strings.Contains(q.URL.Path, "/colls/"+testworld.Leases+"/docs") {
		return nil, errors.New("connection refused")
	}
	return w.Transport.RoundTrip(q)
}

// work handles a batch as soon as handlers are not blocked.
func (w *witness) work(ctx context.Context, b changefeedprocessor.Batch) error {
	for ctx.Err() == nil {
		w.mu.Lock()
		blocked := w.blocked
		w.mu.Unlock()
		if !blocked {
			return w.handle(ctx, b)
		}
		time.Sleep(time.Second)
	}
	return ctx.Err()
}

// turn changes something, or nothing.
func (w *witness) turn(dice int) {
	first := func() *host {
		h := w.up[0]
		w.up = w.up[1:]
		return h
	}
	switch {
	case len(w.up) == 0 || dice < 2 && len(w.up) < 5:
		w.names++
		w.up = append(w.up, w.start(fmt.Sprint("host-", w.names), w.work, nil))
	case dice == 2 && len(w.up) > 1:
		first().stop()
	case dice == 3 && len(w.up) > 1:
		first().kill()
	case dice == 4:
		w.mu.Lock()
		w.blocked = !w.blocked
		w.mu.Unlock()
	case dice == 5:
		w.refused = true
	default:
		w.refused = false
	}
}

// second lets a second pass and adds it to the sums.
func (w *witness) second() {
	w.write(1)
	w.writes = append(w.writes, time.Now())
	time.Sleep(time.Second)
	owners := map[string]bool{}
	for _, l := range testworld.ReadLeases(w.t, w.reader, testworld.Database, testworld.Leases, projection) {
		if l.Owner != nil && time.Since(l.Updated()) < leaseExpires {
			owners[*l.Owner] = true
		}
	}
	passed := time.Since(w.seen).Seconds() // more than a second if a poll came between
	w.seen = time.Now()
	w.owners += passed * float64(len(owners))
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.oldest < len(w.writes) && w.handled[fmt.Sprint("doc-", w.oldest+1)] > 0 {
		w.oldest++
	}
	late := w.oldest < len(w.writes) && time.Since(w.writes[w.oldest]) > time.Minute
	if late {
		w.over += passed
	}
	if late != w.late {
		w.late, w.flips = late, w.flips+1
	}
}

// TestTheReportIsWhatTheHostsRan_Long compares a report of three hours with a record of each second. Hosts
// start, stop and are killed, handlers block, leases cannot be read, and the poller restarts and is
// away for 15 minutes.
func TestTheReportIsWhatTheHostsRan_Long(t *testing.T) {
	inBubble(t, 6, func(t *testing.T, l *live) {
		const polls, leaves, returns = 720, 300, 360
		began, random := time.Now(), rand.New(rand.NewPCG(5, 5))
		w := &witness{live: l, reader: l.SDK(), seen: began}
		l.poller.Ticks = every15s{}
		w.restart()
		ran, known, over := 0.0, 0.0, 0.0
		var last state.State
		for poll := range polls {
			w.owners, w.over = 0, 0
			next := began.Add(time.Duration(poll+1) * interval)
			for turn := random.IntN(10); time.Now().Before(next); turn-- {
				if turn == 0 {
					w.turn(random.IntN(24))
				}
				w.second()
			}
			switch away := poll >= leaves && poll < returns; {
			case away:
				continue
			case random.IntN(40) == 0:
				w.restart()
			}
			if last = l.tick(); poll == 0 {
				continue // there is no poll before it
			}
			if last.Lag.Error == "" {
				ran, known, over = ran+w.owners, known+interval.Seconds(), over+w.over
				if poll == returns { // the poll after the gap counts until it was due, and for 15 s more
					known += interval.Seconds()
				}
			}
		}
		hours, err := l.store.Summaries(t.Context(), "orders", began, time.Now())
		testworld.Must(t, err)
		c := shadow.NewCollector(began, time.Now())
		c.Add("orders", "", append(hours, *last.Hour), nil)
		p := c.Report().Processors[0]
		if p.ReplicaHours == nil {
			t.Fatal("the owners were never known")
		}
		if math.Abs(*p.ReplicaHours*3600/ran-1) > 0.01 || math.Abs(p.OwnersKnown-known) > interval.Seconds() {
			t.Errorf("%.3f replica-hours in %g s of %g, want %.3f in %g s", *p.ReplicaHours, p.OwnersKnown, p.RecordedSeconds, ran/3600, known)
		}
		if w.flips < 10 || math.Abs(p.OverObjective-over) > interval.Seconds()*float64(w.flips) {
			t.Errorf("%g s over the objective, want %g within a poll for each of %d changes", p.OverObjective, over, w.flips)
		}
		const gap = (returns - leaves) * 15.0
		if math.Abs(p.GapSeconds-gap) > 3*interval.Seconds() {
			t.Errorf("a gap of %g s, want %g s", p.GapSeconds, gap)
		}
	})
}

// restart has a new process poll.
func (w *witness) restart() {
	account, err := cosmos.NewAccount(cosmos.Options{
		Endpoint: w.Account.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 16, Transport: &http.Client{Transport: w},
	})
	testworld.Must(w.t, err)
	w.poller = &poller.Poller{
		Processors: []poller.Processor{w.processor(account)}, Estimator: estimator.New(16, time.Now), Store: w.store, Publisher: w.poller.Publisher,
		Settings: w.poller.Settings, Now: time.Now, Log: w.poller.Log,
	}
}
