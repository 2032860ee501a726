package scaling_test

import (
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // the same time zones on every machine

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaling"
)

// floor is an entry of schedules in the processors file.
type floor struct {
	timezone, start, end string
	desiredReplicas      int
}

// schedules parses floors as package config does.
func schedules(t *testing.T, floors ...floor) []scaling.Schedule {
	t.Helper()
	document := "processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders, schedules: ["
	for _, f := range floors {
		document += fmt.Sprintf("{timezone: %q, start: %q, end: %q, desiredReplicas: %d},", f.timezone, f.start, f.end, f.desiredReplicas)
	}
	settings := map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com/"}
	read, err := config.Load("processors.yaml", []byte(document+"]}]"), func(name string) (string, bool) {
		value, ok := settings[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return read.Processors[0].Policy.Schedules
}

// TestScheduleOpen: a window is open from each start to the next end, as with KEDA's cron trigger.
func TestScheduleOpen(t *testing.T) {
	t.Parallel()
	// The clocks of 2026: London goes forward on 29 March at 01:00 and back on 25 October at 02:00;
	// New York goes forward on 8 March at 02:00.
	const london, newYork, utc = "Europe/London", "America/New_York", "UTC"
	for _, c := range []struct {
		rule                 string
		timezone, start, end string
		at                   string
		want                 bool
	}{
		{"KEDA example: open from its start", "Asia/Kolkata", "0 6 * * *", "0 20 * * *", "2026-01-05T06:00:00+05:30", true},
		{"KEDA example: not before", "Asia/Kolkata", "0 6 * * *", "0 20 * * *", "2026-01-05T05:59:59+05:30", false},
		{"KEDA example: open until its end", "Asia/Kolkata", "0 6 * * *", "0 20 * * *", "2026-01-05T19:59:59+05:30", true},
		{"KEDA example: not at its end", "Asia/Kolkata", "0 6 * * *", "0 20 * * *", "2026-01-05T20:00:00+05:30", false},
		{"KEDA example: within the hour, from half past", "Asia/Kolkata", "30 * * * *", "45 * * * *", "2026-01-05T13:30:00+05:30", true},
		{"KEDA example: within the hour, to a quarter to", "Asia/Kolkata", "30 * * * *", "45 * * * *", "2026-01-05T13:45:00+05:30", false},
		{"parts of a second count as the second they are in", utc, "0 6 * * *", "0 20 * * *", "2026-01-05T05:59:59.999Z", false},

		{"the zone is the schedule's own, not that of the poll", newYork, "0 6 * * *", "0 20 * * *", "2026-01-05T11:00:00Z", true},
		{"and 06:00 elsewhere is not its 06:00", newYork, "0 6 * * *", "0 20 * * *", "2026-01-05T06:00:00Z", false},
		{"the date is the zone's too: Monday has begun in Auckland", "Pacific/Auckland", "0 0 * * 1", "0 0 * * 2", "2026-01-04T11:00:00Z", true},

		{"over midnight: open in the evening", utc, "0 22 * * *", "0 4 * * *", "2026-01-05T23:00:00Z", true},
		{"over midnight: open in the morning", utc, "0 22 * * *", "0 4 * * *", "2026-01-06T03:59:59Z", true},
		{"over midnight: closed at noon", utc, "0 22 * * *", "0 4 * * *", "2026-01-06T12:00:00Z", false},
		{"over the weekend: open on Sunday", utc, "0 18 * * 5", "0 6 * * 1", "2026-01-04T12:00:00Z", true},
		{"over the weekend: closed on Monday", utc, "0 18 * * 5", "0 6 * * 1", "2026-01-05T06:00:00Z", false},
		{"over the new year: open", utc, "0 0 20 12 *", "0 0 7 1 *", "2026-01-01T00:00:00Z", true},
		{"over the new year: closed", utc, "0 0 20 12 *", "0 0 7 1 *", "2026-01-07T00:00:00Z", false},
		{"on weekdays: open on Friday", utc, "0 8 * * 1-5", "0 18 * * 1-5", "2026-01-02T17:59:59Z", true},
		{"on weekdays: closed on Saturday", utc, "0 8 * * 1-5", "0 18 * * 1-5", "2026-01-03T12:00:00Z", false},
		{"once in four years: open on February 29", utc, "0 0 29 2 *", "0 0 1 3 *", "2028-02-29T12:00:00Z", true},
		{"an end without a start of its own opens the day before it, as in KEDA", utc, "0 8 * * 1", "0 18 * * *", "2026-01-06T12:00:00Z", true},

		{"in summer the wall clock counts", london, "0 6 * * *", "0 20 * * *", "2026-07-01T05:00:00Z", true},
		{"in winter too", london, "0 6 * * *", "0 20 * * *", "2026-01-01T05:00:00Z", false},
		{"a day of 23 hours: open until its wall clock end", london, "0 0 * * *", "0 12 * * *", "2026-03-29T10:59:59Z", true},
		{"a day of 23 hours: closed then", london, "0 0 * * *", "0 12 * * *", "2026-03-29T11:00:00Z", false},
		{"an end in the hour that is left out is missed: closed before it, as in KEDA", london, "0 0 * * *", "30 1 * * *", "2026-03-29T00:30:00Z", false},
		{"and still closed after", london, "0 0 * * *", "30 1 * * *", "2026-03-29T06:00:00Z", false},
		{"a start in the hour that is left out is missed: open before it, as in KEDA", newYork, "30 2 * * *", "0 5 * * *", "2026-03-08T01:00:00-05:00", true},
		{"and after it, until the end", newYork, "30 2 * * *", "0 5 * * *", "2026-03-08T04:59:59-04:00", true},
		{"and closed then", newYork, "30 2 * * *", "0 5 * * *", "2026-03-08T05:00:00-04:00", false},

		{"a day of 25 hours: open until its wall clock end", london, "0 0 * * *", "0 12 * * *", "2026-10-25T11:59:59Z", true},
		{"a day of 25 hours: closed then", london, "0 0 * * *", "0 12 * * *", "2026-10-25T12:00:00Z", false},
		{"a start in the hour that comes twice opens at the second, as in KEDA", london, "30 1 * * *", "0 5 * * *", "2026-10-25T01:30:00Z", true},
		{"and not before", london, "30 1 * * *", "0 5 * * *", "2026-10-25T01:29:59Z", false},
		{"nor at the first: its second is the next start", london, "30 1 * * *", "0 5 * * *", "2026-10-25T00:30:00Z", false},
		{"an end in the hour that comes twice closes at the second", london, "0 0 * * *", "30 1 * * *", "2026-10-25T01:29:59Z", true},
		{"and not later", london, "0 0 * * *", "30 1 * * *", "2026-10-25T01:30:00Z", false},
		{"a window within the hour that comes twice opens twice: first", london, "0 1 * * *", "30 1 * * *", "2026-10-25T00:15:00Z", true},
		{"closes between", london, "0 1 * * *", "30 1 * * *", "2026-10-25T00:45:00Z", false},
		{"second", london, "0 1 * * *", "30 1 * * *", "2026-10-25T01:15:00Z", true},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			at, err := time.Parse(time.RFC3339Nano, c.at)
			if err != nil {
				t.Fatal(err)
			}
			window := schedules(t, floor{c.timezone, c.start, c.end, 1})[0]
			for _, zone := range []*time.Location{at.Location(), time.UTC, window.Location} {
				if got := window.Open(at.In(zone)); got != c.want {
					t.Errorf("open at %s: %t, want %t", at.In(zone), got, c.want)
				}
			}
		})
	}
}

// TestSchedules is step 6. A story starts at 12:00 UTC, on a Thursday.
func TestSchedules(t *testing.T) {
	t.Parallel()
	day := floor{"UTC", "0 6 * * *", "0 20 * * *", 3}
	noon := floor{"UTC", "0 12 * * *", "0 13 * * *", 5}
	night := floor{"UTC", "0 22 * * *", "0 4 * * *", 8}
	with := func(floors []floor, change ...func(*scaling.Policy)) func(*testing.T) *story {
		return func(t *testing.T) *story {
			p := unlimited(change...)
			p.Schedules = schedules(t, floors...)
			return tell(t, p)
		}
	}
	type tick struct {
		after time.Duration
		lags  []int64 // empty = the poll fails
		want  string
	}
	idle, busy, unknown := repeat(0, 8), append(repeat(0, 7), 700), append(repeat(0, 7), -1)
	for _, c := range []struct {
		rule  string
		story func(*testing.T) *story
		ticks []tick
	}{
		{"an open window is a floor, and active without any lag", with([]floor{day}), []tick{{0, idle, "3 active 0 out [activation=0 schedules=3]"}}},
		{"it never lowers what the lag asks for", with([]floor{day}), []tick{{0, busy, "7 active 700 out [threshold=7]"}}},
		{"a window that is not open does nothing", with([]floor{night}), []tick{{0, idle, "0 inactive 0 none [activation=0]"}}},
		{"of windows that overlap the highest counts, in whatever order they stand", with([]floor{day, noon}), []tick{{0, idle, "5 active 0 out [activation=0 schedules=5]"}}},
		{"in the other order too", with([]floor{noon, day}), []tick{{0, idle, "5 active 0 out [activation=0 schedules=5]"}}},
		{"where the higher one closes the lower one holds", with([]floor{noon, day}), []tick{
			{0, idle, "5 active 0 out [activation=0 schedules=5]"},
			{59 * time.Minute, idle, "5 active 0 none [activation=0 schedules=5]"},
			{time.Minute, idle, "3 active 0 in [activation=0 schedules=3]"},
		}},
		{"cooldown runs from the last poll in the window", with([]floor{noon}), []tick{
			{59 * time.Minute, idle, "5 active 0 out [activation=0 schedules=5]"},
			{time.Minute, idle, "1 inactive 0 in [activation=0 cooldown=1]"},
			{239 * time.Second, idle, "1 inactive 0 none [activation=0 cooldown=1]"},
			{time.Second, idle, "0 inactive 0 in [activation=0 cooldown=0]"},
		}},
		{"the number of partitions caps it", with([]floor{day}), []tick{{0, []int64{0, 0}, "2 active 0 out [activation=0 schedules=3 clamp=2]"}}},
		{"maxReplicaCount caps it", with([]floor{day}, maximum(1)), []tick{{0, idle, "1 active 0 out [activation=0 schedules=3 clamp=1]"}}},
		{"it is decided where some partitions are unknown", with([]floor{day}), []tick{{0, unknown, "3 active 0 out [activation=0 schedules=3]"}}},
		{"it raises a decision that holds because a poll failed", with([]floor{day}, func(p *scaling.Policy) { p.Fallback.FailureThreshold = 1 }), []tick{
			{-7 * time.Hour, idle, "0 inactive 0 none [activation=0]"},
			{7 * time.Hour, nil, "3 active 0 out [failure=0 schedules=3]"},
		}},
		{"it raises a fallback", with([]floor{day}, func(p *scaling.Policy) {
			p.Fallback = scaling.Fallback{Behavior: scaling.FallbackStatic, Replicas: 2}
		}), []tick{{0, nil, "3 active 200 out [fallback=2 schedules=3]"}}},
		{"it decides nothing where nothing was ever known", with([]floor{day}), []tick{{0, nil, "undecided"}}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			s := c.story(t)
			for _, tick := range c.ticks {
				if tick.lags == nil {
					s.poll(tick.after, failed)
				} else {
					s.lags(tick.after, tick.lags...)
				}
				s.want(tick.want)
			}
		})
	}
}
