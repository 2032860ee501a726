package functionshost_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/functionshost"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// noon is on a slot of every schedule of these tests.
func noon() time.Time { return time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC) }

// every is a timer function with a schedule.
func every(schedule string) string {
	return `{"bindings":[{"type":"timerTrigger","direction":"in","name":"timer","schedule":"` + schedule + `"}]}`
}

// scheduled is an app whose timer function fires by itself, from noon on.
func scheduled(schedule string) (app, *functionshost.Clock, *functionshost.Storage) {
	clock, storage := functionshost.NewClock(noon()), &functionshost.Storage{}
	return app{
		functions: map[string]string{"poll": every(schedule)},
		options:   functionshost.Options{Clock: clock, Storage: storage},
	}, clock, storage
}

// tick is one invocation of a timer function.
type tick struct {
	at       time.Time
	pastDue  bool
	last     time.Time
	next     time.Time
	noStatus bool
}

func (r running) ticks(t *testing.T) []tick {
	t.Helper()
	var all []tick
	for _, s := range r.seen(t) {
		p := s.payload(t)
		var sys struct{ UtcNow time.Time }
		var timer struct {
			IsPastDue      bool
			ScheduleStatus *struct{ Last, Next time.Time }
		}
		for part, into := range map[string]any{string(p.Metadata["sys"]): &sys, string(p.Data["timer"]): &timer} {
			if err := json.Unmarshal([]byte(part), into); err != nil {
				t.Fatalf("%v: %s", err, part)
			}
		}
		got := tick{at: sys.UtcNow.UTC(), pastDue: timer.IsPastDue, noStatus: timer.ScheduleStatus == nil}
		if timer.ScheduleStatus != nil {
			got.last, got.next = timer.ScheduleStatus.Last.UTC(), timer.ScheduleStatus.Next.UTC()
		}
		all = append(all, got)
	}
	return all
}

// armed waits until the timer was armed n times, which it is at the start and after every run.
func (r running) armed(t *testing.T, n int) {
	t.Helper()
	testworld.Eventually(t, "an armed timer", func() bool { return r.logged(functionshost.Debug, "Timer for ") >= n })
}

// slots advances the clock slot by slot, and returns the function's invocations.
func (r running) slots(t *testing.T, clock *functionshost.Clock, n int, length time.Duration) []tick {
	t.Helper()
	before := r.logged(functionshost.Debug, "Timer for ")
	for i := range n {
		clock.Advance(length)
		r.armed(t, before+i+1)
	}
	return r.ticks(t)
}

func TestATimerFiresUpToTwoMillisecondsEarlyInATenthOfItsSlots(t *testing.T) {
	t.Parallel()
	const slots = 200
	run := func(seed uint64) (early int) {
		a, clock, _ := scheduled("*/30 * * * * *")
		a.options.Random = rand.New(rand.NewPCG(seed, 0))
		r := a.start(t)
		r.armed(t, 1)
		ticks := r.slots(t, clock, slots, 30*time.Second)
		if len(ticks) != slots {
			t.Fatalf("%d ticks in %d slots", len(ticks), slots)
		}
		for i, got := range ticks {
			slot := noon().Add(time.Duration(i+1) * 30 * time.Second)
			switch before := slot.Sub(got.at); {
			case before > 0 && before < 2*time.Millisecond:
				early++
			case before != 0:
				t.Errorf("the tick of %v came at %v", slot, got.at)
			}
		}
		return early
	}
	first := run(7)
	if first < slots/20 || first > slots/5 {
		t.Errorf("%d of %d slots were early, want about a tenth", first, slots)
	}
	if again := run(7); again != first {
		t.Errorf("with the same seed %d slots were early, and then %d", first, again)
	}
}

func TestAScheduleCountsInLocalTimeWhereASettingNamesAZone(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		settings map[string]string
		want     time.Duration // after noon UTC
		offset   string
	}{
		{"UTC else", nil, 3 * time.Hour, "+00:00"},
		{"TZ", map[string]string{"TZ": "Europe/Berlin"}, time.Hour, "+02:00"},
		{"WEBSITE_TIME_ZONE", map[string]string{"WEBSITE_TIME_ZONE": "America/New_York"}, 7 * time.Hour, "-04:00"},
		{"a zone that is none is UTC", map[string]string{"TZ": "Mars/Phobos"}, 3 * time.Hour, "+00:00"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, clock, _ := scheduled("0 0 15 * * *")
			a.settings = c.settings
			r := a.start(t)
			r.armed(t, 1)
			if ticks := r.slots(t, clock, 1, c.want); len(ticks) != 1 || !ticks[0].next.Equal(noon().Add(c.want)) {
				t.Fatalf("got %+v, want one tick after %s", ticks, c.want)
			}
			var timer struct{ ScheduleStatus struct{ Next string } }
			if err := json.Unmarshal(r.lastSeen(t).payload(t).Data["timer"], &timer); err != nil {
				t.Fatal(err)
			}
			if want := "2026-05-15T15:00:00" + c.offset; timer.ScheduleStatus.Next != want {
				t.Errorf("the status says %s, want %s", timer.ScheduleStatus.Next, want)
			}
		})
	}
}

func TestARunThatOverrunsItsSlotIsFollowedAtOnceAndIsNotPastDue(t *testing.T) {
	t.Parallel()
	a, clock, _ := scheduled("")
	a.functions = map[string]string{"slow": every("0 * * * * *")}
	r := a.start(t)
	r.armed(t, 1)
	clock.Advance(time.Minute)
	testworld.Eventually(t, "the first run", func() bool { return len(r.seen(t)) == 1 })
	clock.Advance(150 * time.Second) // two more slots pass
	release(t, r)
	r.armed(t, 2)
	if n := len(r.seen(t)); n != 1 {
		t.Fatalf("%d runs before the pause is over", n)
	}
	clock.Advance(30 * time.Millisecond)
	testworld.Eventually(t, "the second run", func() bool { return len(r.seen(t)) == 2 })
	release(t, r)
	r.armed(t, 3)
	ended := noon().Add(210 * time.Second)
	got := r.ticks(t)[1]
	if got.pastDue || !got.at.Equal(ended.Add(30*time.Millisecond)) || !got.next.Equal(noon().Add(2*time.Minute)) {
		t.Errorf("got %+v, want a run 30 ms after the end of the first, which is not past due", got)
	}
	clock.Advance(30*time.Second - 30*time.Millisecond)
	testworld.Eventually(t, "the next slot", func() bool { return len(r.seen(t)) == 3 })
	release(t, r)
	r.armed(t, 4)
	if got, want := r.ticks(t)[2].at, noon().Add(4*time.Minute); want.Sub(got) >= 2*time.Millisecond || got.After(want) {
		t.Errorf("the next run was at %v, want %v: slots that were missed are made up for once", got, want)
	}
}

func TestAMissedSlotRunsAtOnceWhereTheScheduleHasAStatus(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		schedule string
		want     []tick // after the host was away from 12:01:10 to 12:04:10
	}{
		{"a minute", "0 * * * * *", []tick{{at: noon().Add(250 * time.Second), pastDue: true, last: noon().Add(time.Minute), next: noon().Add(2 * time.Minute)}}},
		{"an interval of a minute", "00:01:00", []tick{{at: noon().Add(250 * time.Second), pastDue: true, last: noon().Add(time.Minute), next: noon().Add(2 * time.Minute)}}},
		{"less than a minute", "*/30 * * * * *", nil},
		{"an interval of less than a minute", "00:00:30", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, clock, _ := scheduled(c.schedule)
			a.options.Random = rand.New(rand.NewPCG(3, 0)) // none of these slots is early
			a.options.DrainTime = time.Second
			first := a.start(t)
			first.armed(t, 1)
			clock.Advance(time.Minute)
			first.armed(t, 2)
			clock.Advance(10 * time.Second)
			if c.want == nil {
				// the slot at 12:01:00 ran late, and must not be running at the stop
				first.armed(t, 3)
			}
			stop(t, first, clock, time.Second)
			clock.Advance(3*time.Minute - time.Second)
			second := a.start(t)
			second.armed(t, 1)
			if c.want != nil {
				second.armed(t, 2)
			}
			if got := second.ticks(t); !slices.Equal(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAShortScheduleHasNoStatus(t *testing.T) {
	t.Parallel()
	cases := []struct {
		schedule string
		noStatus bool
	}{
		{"*/30 * * * * *", true}, {"00:00:59", true}, {"0 * * * * *", false}, {"00:01:00", false},
	}
	for _, c := range cases {
		t.Run(c.schedule, func(t *testing.T) {
			t.Parallel()
			a, clock, _ := scheduled(c.schedule)
			r := a.start(t)
			r.armed(t, 1)
			clock.Advance(time.Minute)
			r.armed(t, 2)
			ticks := r.ticks(t)
			if len(ticks) != 1 || ticks[0].noStatus != c.noStatus || ticks[0].pastDue {
				t.Errorf("got %+v", ticks)
			}
		})
	}
}

func TestATimerRunsOnStartupWhereFunctionJSONSaysSo(t *testing.T) {
	t.Parallel()
	a, _, _ := scheduled("")
	a.functions = map[string]string{"poll": `{"bindings":[{"type":"timerTrigger","name":"timer","schedule":"0 0 * * * *","runOnStartup":true}]}`}
	r := a.start(t)
	r.armed(t, 2)
	if ticks := r.ticks(t); len(ticks) != 1 || !ticks[0].at.Equal(noon()) || ticks[0].pastDue {
		t.Errorf("got %+v, want one tick that is not past due", ticks)
	}
}

func TestAFailedRunIsNotRetriedAndTheNextSlotIsOnTime(t *testing.T) {
	t.Parallel()
	a, clock, _ := scheduled("*/30 * * * * *")
	a.settings = map[string]string{"ANSWER_STATUS": "500"}
	r := a.start(t)
	r.armed(t, 1)
	ticks := r.slots(t, clock, 3, 30*time.Second)
	if len(ticks) != 3 {
		t.Fatalf("%d ticks in 3 slots", len(ticks))
	}
	for i, got := range ticks {
		if slot := noon().Add(time.Duration(i+1) * 30 * time.Second); slot.Sub(got.at) >= 2*time.Millisecond || got.at.After(slot) {
			t.Errorf("the tick of %v came at %v", slot, got.at)
		}
	}
	if n := r.logged(functionshost.Error, "(Failed"); n != 3 {
		t.Errorf("%d failures are logged, want 3", n)
	}
}

func TestWithoutStorageNoTimerFiresByItself(t *testing.T) {
	t.Parallel()
	a, clock, _ := scheduled("*/30 * * * * *")
	a.options.Storage = nil
	r := a.start(t)
	clock.Advance(time.Hour)
	if err := r.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.logged(functionshost.Debug, "Timer for "); got != 0 || len(r.seen(t)) != 0 {
		t.Errorf("the timer was armed %d times and ran %d times", got, len(r.seen(t)))
	}
}
