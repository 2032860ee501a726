package estimator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/estimator"
)

// TestTheBudgetIsKeptAndWhatItLeavesOutIsCarriedInTurn has many partitions whose oldest change costs as
// much as the budget allows in a second, and whose positions and LSNs move.
func TestTheBudgetIsKeptAndWhatItLeavesOutIsCarriedInTurn(t *testing.T) {
	t.Parallel()
	const (
		partitions = 64
		budget     = 50 // RU a second
		document   = 48 << 10
		perTick    = 12 // reads at 50 RU: the budget of the 12 of 15 s for which a read may wait
	)
	inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
		w.Container("orders", partitions)
		p := w.processor("orders")
		for i := range partitions {
			w.lease(p, fmt.Sprint(i), "0", "worker")
		}
		text := strings.Repeat("x", document)
		for i := range 6 * partitions { // so many that each partition has some
			w.Put("orders", map[string]any{"id": fmt.Sprint("large-", i), "text": text})
		}
		w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			return &cosmosfake.Answer{Delay: 20 * time.Millisecond} // time enough for many to be sent at once
		})
		e := estimator.New(64, time.Now)
		p.Account = w.accountWith(cosmos.Options{Concurrency: 64, Budget: budget})
		p.LeaseAccount = p.Account
		processors := []estimator.Processor{p}
		began, before := time.Now(), w.Account.Requests().Charge
		spent := func() float64 { return w.Account.Requests().Charge - before }
		first := time.AfterFunc(time.Second, func() {
			if got := spent(); got > 2*budget {
				t.Errorf("%.0f RU in the first second, at %d RU a second", got, budget)
			}
		})
		defer first.Stop()
		measured := make(map[string]time.Time) // when each lease was last read
		unread := partitions
		for tick := range 16 {
			w.Write("orders", 6*partitions) // so that each newest LSN moves
			l := w.poll(e, processors...)[0]
			if l.Error != "" {
				t.Fatalf("tick %d: the leases were starved: %s", tick, l.Error)
			}
			read := 0
			for _, partition := range l.Partitions {
				before, known := measured[partition.Lease]
				switch {
				case partition.Carried() && !partition.Measured.Equal(before):
					t.Errorf("tick %d: lease %s is carried from %s, and was read at %s", tick, partition.Lease, partition.Measured, before)
				case partition.Carried() && !partition.Known():
					t.Errorf("tick %d: lease %s is carried and unknown: %s", tick, partition.Lease, partition.Error)
				case partition.Carried():
				case partition.Known():
					read++
					measured[partition.Lease] = l.Time
				case known:
					t.Errorf("tick %d: lease %s is unknown and was read before: %s", tick, partition.Lease, partition.Error)
				case !strings.Contains(partition.Error, "FEEDSCALE_RU_BUDGET"):
					t.Errorf("tick %d: lease %s: %q does not say what to do", tick, partition.Lease, partition.Error)
				}
				if at, known := measured[partition.Lease]; known && l.Time.Sub(at) > (partitions/perTick+3)*15*time.Second {
					t.Errorf("tick %d: lease %s starves: last read %s ago", tick, partition.Lease, l.Time.Sub(at))
				}
			}
			unread -= read
			if most := max(0, partitions-(tick+1)*(perTick-2)); len(measured) < partitions-most {
				t.Errorf("tick %d: %d leases were never read, %d in this one", tick, partitions-len(measured), read)
			}
			if spent, most := spent(), budget*(time.Since(began).Seconds()+1); spent > most {
				t.Errorf("tick %d: %.0f RU, more than %.0f", tick, spent, most)
			}
			if t.Failed() {
				return
			}
		}
	})
}

// TestALeaseThatTheBudgetLeavesOutIsNeverZeroByItself has a lease that was read with a lag, and another
// whose changes take all of the budget.
func TestALeaseThatTheBudgetLeavesOutIsNeverZeroByItself(t *testing.T) {
	t.Parallel()
	inBubble(t, cosmosfake.Options{}, func(t *testing.T, w *world) {
		w.Container("orders", 1)
		w.Write("orders", 5)
		p := w.processor("orders")
		w.lease(p, "0", "1", "worker")
		processors := []estimator.Processor{p}
		e := estimator.New(16, time.Now)
		before := w.poll(e, processors...)[0]
		check(t, before, "0=4 lagging")
		processors[0].Account = w.accountWith(cosmos.Options{Budget: 0.001})
		processors[0].LeaseAccount = processors[0].Account
		_, _, _ = processors[0].Account.Describe(t.Context(), processors[0].Container) // spends the budget of an hour
		for i := range 3 {
			l := w.poll(e, processors...)[0]
			check(t, l, "0=~4 lagging")
			got := l.Partitions[0]
			if !got.Measured.Equal(before.Time) || !got.Known() {
				t.Errorf("carried from %s, want %s", got.Measured, before.Time)
			}
			if got.Age == nil || *got.Age < int64(15*(i+1)) {
				t.Errorf("poll %d: an age of %v, though time goes on", i, *got.Age)
			}
		}
		w.lease(p, "0", "5", "worker") // its owner is through meanwhile: nobody knows yet
		if l := w.poll(e, processors...)[0]; *l.Lag() != 4 {
			t.Errorf("%s: nothing was read that says so", describe(l))
		}
	})
}
