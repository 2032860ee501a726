package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// load returns how many documents should be written by a time after the start. It never falls.
type load interface {
	total(elapsed time.Duration) int64
}

// steady writes the same number of documents every second.
type steady struct{ perSecond int }

func (s steady) total(elapsed time.Duration) int64 {
	return int64(elapsed.Seconds() * float64(s.perSecond))
}

// bursty writes nothing between its bursts.
type bursty struct {
	size      int           // documents of one burst
	perSecond int           // during a burst
	first     time.Duration // until the first burst begins
	every     time.Duration // from the beginning of a burst to the next; longer than a burst
}

func (b bursty) total(elapsed time.Duration) int64 {
	since := elapsed - b.first
	if since < 0 {
		return 0
	}
	whole, part := since/b.every, since%b.every
	return int64(whole)*int64(b.size) + min(int64(b.size), int64(part.Seconds()*float64(b.perSecond)))
}

// loadStep is the pause between two writes, short enough for an even load.
const loadStep = 50 * time.Millisecond

// writer writes the documents of one service.
type writer struct {
	random  *rand.Rand
	now     func() time.Time
	number  int64 // of the next document, from 0
	written atomic.Int64
	paused  atomic.Bool // for tests: nothing is written
}

// run writes what the load asks for, until ctx ends.
func (w *writer) run(ctx context.Context, account *cosmosfake.Server, s service) error {
	start := w.now()
	ticks := time.NewTicker(loadStep)
	defer ticks.Stop()
	for {
		for due := s.load.total(w.now().Sub(start)); w.number < due && !w.paused.Load() && ctx.Err() == nil; w.number++ {
			if err := account.Upsert(s.in(), s.name, s.document(w)); err != nil {
				return fmt.Errorf("writing load: %w", err)
			}
			w.written.Add(1)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}
