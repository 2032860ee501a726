package main_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// takeover is the time until the second host has the lock of a killed one.
const takeover = 50 * time.Second

// TestTheSecondOfTwoHostsPollsOnWhereTheFirstIsGone checks which slots nobody polls meanwhile.
func TestTheSecondOfTwoHostsPollsOnWhereTheFirstIsGone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, timer string
		into        time.Duration // when the first host ends, after a slot
		killed      bool
		pastDue     bool          // the takeover makes up for a missed slot
		next        time.Duration // when the second polls, after the end of the first
	}{
		{"one that is stopped costs no slot", "*/2 * * * * *", time.Second, false, false, time.Second},
		{"one that is killed costs those before the takeover", "*/2 * * * * *", time.Second, true, false, takeover + time.Second},
		{"a slot that was missed is made up for where the schedule has a status", "0 * * * * *", 30 * time.Second, true, true, takeover},
		{"a slot after the takeover is on time", "0 * * * * *", 5 * time.Second, true, false, 55 * time.Second},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			app := newSlotted(t, c.timer, c.timer)
			app.options.Settings["AzureWebJobsStorage"] = made(t, startTables).ConnectionString()
			app.options.Settings["FEEDSCALE_STATE"] = "table:AzureWebJobsStorage/" + newTable()
			first := app.start(t)
			first.interval(t) // the first host has the lock
			second := app.start(t)
			for range 3 {
				first.poll(t)
			}
			app.advance(t, c.into)
			end, stopped := app.options.Clock.Now(), make(chan struct{})
			go func() {
				defer close(stopped)
				if c.killed {
					first.Crash()
				} else {
					first.Stop()
				}
			}()
			testworld.Eventually(t, "the end of the first timer", func() bool { return logged(first.Host, "Timer listener stopped") > 0 })
			if n := logged(second.Host, "Executing 'Functions.poll'"); n > 0 {
				t.Errorf("beside the first host, the second polled %d times", n)
			}
			if c.killed {
				app.advance(t, takeover)
			}
			polled := app.options.Clock.Now()
			if c.pastDue {
				second.ticks++
				second.interval(t)
				second.wantPolled(t, polled)
			} else {
				polled = second.poll(t)
			}
			if after := polled.Sub(end).Round(time.Second); after != c.next {
				t.Errorf("the second polled %s after the end of the first, want %s", after, c.next)
			}
			for range 6 {
				second.poll(t)
			}
			<-stopped
		})
	}
}

// poll ticks until the only processor is polled.
func (s *slottedHost) poll(t *testing.T) (fired time.Time) {
	t.Helper()
	fired, begun := s.tick(t, 0)
	s.wantPolled(t, begun)
	return fired
}

func (s *slottedHost) wantPolled(t *testing.T, at time.Time) {
	t.Helper()
	if got := s.polled(t, at); !slices.Equal(got, []string{"orders0"}) {
		t.Errorf("at %s it polled %q", at, got)
	}
}

func TestAHandlerAnswersAndPollsLaterWhereTheHostsStorageIsAway(t *testing.T) {
	t.Parallel()
	app := newSlotted(t, "*/2 * * * * *", "*/2 * * * * *")
	app.options.Storage.SetAway(true)
	started, waited := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(waited)
		// the host waits for its storage at first
		for each := time.Tick(time.Millisecond); ; <-each {
			select {
			case <-started:
				return
			default:
				app.options.Clock.Advance(time.Second)
			}
		}
	}()
	h := app.start(t)
	close(started)
	<-waited
	for range 3 {
		app.advance(t, 2*time.Second)
		if status, _, problem := get(t, h.Host, "/api/processors/orders0", h.MasterKey()); status != http.StatusServiceUnavailable || !strings.Contains(problem["detail"].(string), "was never polled") {
			t.Errorf("%d %v", status, problem)
		}
	}
	if n := logged(h.Host, "Executing 'Functions.poll'"); n > 0 {
		t.Errorf("the timer fired %d times without a lock", n)
	}
	app.options.Storage.SetAway(false)
	for range 3 {
		h.poll(t)
	}
}

func TestAStateThatIsAwayForAWhileFailsTicksAndIsSaidAndTheNextTickPollsOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := w.settings()
	tables := newFront(t)
	settings["AzureWebJobsStorage"] = tables.connection
	settings["FEEDSCALE_TICK_TIMEOUT"] = "20s" // a row has a sixth of it
	h := w.host(settings)
	tick(t, h)
	tables.control(func(*http.Request) { panic(http.ErrAbortHandler) })
	if _, err := h.Timer(t.Context(), "poll", functionshost.Tick{}); err == nil {
		t.Error("a tick without the state succeeded")
	}
	if status, _, problem := get(t, h, "/api/processors/orders", h.MasterKey()); status != http.StatusServiceUnavailable || !strings.Contains(problem["detail"].(string), "the state cannot be read") {
		t.Errorf("%d %v", status, problem)
	}
	if status, _, body := ask(t, h, "/api/metrics", h.MasterKey()); status != http.StatusOK || !strings.Contains(string(body), `feedscale_ticks_total{result="failed"} 1`) {
		t.Errorf("%d %s", status, body)
	}
	tables.control(func(*http.Request) {})
	tick(t, h)
	if status, _, orders := get(t, h, "/api/processors/orders", h.MasterKey()); status != http.StatusOK {
		t.Errorf("%d %v", status, orders)
	}
	if n := logged(h, "exited with code"); n > 0 {
		t.Errorf("the handler crashed %d times", n)
	}
}
