package poller_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/poller"
)

// every3s is a timer.
type every3s struct{}

func (every3s) Next(after time.Time) time.Time {
	return after.Truncate(3 * time.Second).Add(3 * time.Second)
}

// TestAPartitionThatHangsCostsAnotherAccountFewPolls has one partition of one account hang. The other
// account's processor misses the slots of the first full look alone, and nothing runs after a tick.
func TestAPartitionThatHangsCostsAnotherAccountFewPolls(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		const slots = 16
		other := testworld.New(t, testworld.Options{InMemory: true})
		other.Container("orders", 4)
		other.Transport.ResponseHeaderTimeout = 10 * time.Second // as of an account that makes its own
		hanging := l.processor(other.Client())
		hanging.Name = "hanging"
		for partition := range 4 {
			other.Put(testworld.Leases, other.LeasesOf(projection, workerHost, "orders").DotNetPKOld(fmt.Sprint(partition), testworld.At(1)))
		}
		other.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReadChangeFeed && r.RangeID == "2" {
				return &cosmosfake.Answer{Delay: time.Hour}
			}
			return nil
		})
		l.poller.Processors = []poller.Processor{l.named("good", l.Client(), 1), hanging}
		l.poller.Ticks, l.poller.Timeout = every3s{}, time.Minute
		polls, took := 0, time.Duration(0)
		time.Sleep(time.Until(every3s{}.Next(time.Now())))
		for end := time.Now().Add(slots * 3 * time.Second); time.Now().Before(end); time.Sleep(time.Until(every3s{}.Next(time.Now()))) {
			began := time.Now()
			r, err := l.poller.Tick(t.Context(), poller.Mode{})
			testworld.Must(t, err)
			took = max(took, time.Since(began))
			for _, s := range r.Polled {
				if s.Processor == "good" && s.Lag.Complete() {
					polls++
				}
			}
		}
		if polls < slots-3 {
			t.Errorf("%d polls in %d slots", polls, slots)
		}
		if took > 11*time.Second {
			t.Errorf("a tick took %s", took)
		}
	})
}

// TestAPartitionThatHangsBlindsNoOtherWhateverTheClockSays has a clock that is corrected by an hour. The
// tick after one that hung has time to read all the same.
func TestAPartitionThatHangsBlindsNoOtherWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	inBubble(t, 1, func(t *testing.T, l *live) {
		l.Transport.ResponseHeaderTimeout = 10 * time.Second // as of an account that makes its own
		l.Container("stock", 1)
		l.Put(testworld.Leases, l.LeasesOf(projection, workerHost, "stock").DotNetPKOld("0", testworld.At(1)))
		l.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReadChangeFeed && r.Container == "stock" {
				return &cosmosfake.Answer{Delay: time.Hour}
			}
			return nil
		})
		client := l.Client()
		hanging := l.processor(client)
		hanging.Name, hanging.Container.ID = "hanging", "stock"
		l.poller.Processors = []poller.Processor{l.named("good", client, 1), hanging}
		l.poller.Ticks, l.poller.Timeout = every3s{}, time.Minute
		l.poller.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		for tick := range 4 {
			time.Sleep(time.Until(every3s{}.Next(time.Now())))
			r, err := l.poller.Tick(t.Context(), poller.Mode{})
			testworld.Must(t, err)
			measured := false
			for _, s := range r.Polled {
				measured = measured || s.Processor == "good" && s.Lag.Complete()
			}
			if !measured {
				t.Errorf("tick %d: its neighbour is unknown", tick)
			}
		}
	})
}
