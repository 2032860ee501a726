package functionshost_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestASecondHostFiresNoTimerUntilTheFirstIsGone(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		end  func(t *testing.T, r running, clock *functionshost.Clock) // takes 30 s
		want time.Duration                                             // of the second host's first tick, after noon
	}{
		{"stopped in order: no slot is missed", func(t *testing.T, r running, clock *functionshost.Clock) {
			stopping(t, r)
			testworld.Eventually(t, "an unlocked timer", func() bool { return r.logged(functionshost.Debug, "Timer listener stopped (poll)") == 1 })
			clock.Advance(30 * time.Second)
		}, time.Minute},
		{"killed: the lock is taken over after 50 s", func(t *testing.T, r running, clock *functionshost.Clock) {
			r.Crash()
			testworld.Eventually(t, "an expiring lock", func() bool { return r.logged(functionshost.Debug, "Timer listener stopped (poll)") == 1 })
			clock.Advance(30 * time.Second)
		}, 90 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, clock, _ := scheduled("*/30 * * * * *")
			first := a.start(t)
			first.armed(t, 1)
			second := a.start(t)
			if n := len(first.slots(t, clock, 1, 30*time.Second)); n != 1 {
				t.Fatalf("the first host fired %d times, want once", n)
			}
			if n := second.logged(functionshost.Debug, "Timer for "); n != 0 {
				t.Error("the second host armed its timer beside the first")
			}
			c.end(t, first, clock)
			if c.want > time.Minute {
				if n := len(second.seen(t)); n != 0 {
					t.Errorf("the second host fired %d times while the lock was held", n)
				}
				clock.Advance(20 * time.Second)
				second.armed(t, 1)
				clock.Advance(10 * time.Second)
			}
			testworld.Eventually(t, "a tick of the second host", func() bool { return len(second.seen(t)) == 1 })
			at := second.ticks(t)[0].at
			if slot := noon().Add(c.want); slot.Sub(at) >= 2*time.Millisecond || at.After(slot) {
				t.Errorf("the second host fired at %v, want %v", at, slot)
			}
			if n := len(first.seen(t)); n != 1 {
				t.Errorf("the first host fired %d times, want once", n)
			}
		})
	}
}

func TestAHostStartsWithoutItsStorageButFiresNoTimerUntilItIsBack(t *testing.T) {
	t.Parallel()
	a, clock, storage := scheduled("*/30 * * * * *")
	a.functions["web"] = web(`,"authLevel":"anonymous"`)
	storage.SetAway(true)
	started := make(chan running, 1)
	o := a.stage(t)
	go func() {
		h, err := functionshost.Start(t.Context(), o)
		if err != nil {
			t.Error(err)
			close(started)
			return
		}
		t.Cleanup(h.Close)
		started <- running{h, o.Settings["RECORD"]}
	}()
	testworld.Eventually(t, "a host that waits", func() bool { return clock.Waiting() == 1 })
	clock.Advance(24 * time.Second)
	select {
	case <-started:
		t.Fatal("the host was up before 25 s")
	default:
	}
	clock.Advance(time.Second)
	r := testworld.Came(t, "a host", started)
	if r.Host == nil {
		return
	}
	if got := r.do(t, "GET", "/api/web", "", nil); got.status != 200 {
		t.Errorf("an HTTP function says %d", got.status)
	}
	served := len(r.seen(t))
	clock.Advance(20 * time.Second) // over the slot of 12:00:30
	if n := r.logged(functionshost.Debug, "Timer for "); n != 0 {
		t.Error("the timer is armed while the storage is away")
	}
	storage.SetAway(false)
	r.armed(t, 1)
	clock.Advance(15 * time.Second)
	testworld.Eventually(t, "the slot of 12:01:00", func() bool { return len(r.seen(t)) == served+1 })
}

func TestStorageThatComesBackInTimeDelaysTheStartNoLonger(t *testing.T) {
	t.Parallel()
	a, clock, storage := scheduled("*/30 * * * * *")
	storage.SetAway(true)
	started := make(chan *functionshost.Host, 1)
	o := a.stage(t)
	go func() {
		h, err := functionshost.Start(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		started <- h
	}()
	testworld.Eventually(t, "a host that waits", func() bool { return clock.Waiting() == 1 })
	clock.Advance(10 * time.Second)
	storage.SetAway(false)
	h := testworld.Came(t, "a host", started)
	if h == nil {
		return
	}
	t.Cleanup(h.Close)
	running{h, o.Settings["RECORD"]}.armed(t, 1)
}
