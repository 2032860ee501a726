package config_test

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
)

// floor reads a document with one schedule.
func floor(zone, start, end string) error {
	text := minimal + "  schedules: [{timezone: '" + zone + "', start: '" + start + "', end: '" + end + "', desiredReplicas: 1}]\n"
	_, err := config.Load("processors.yaml", []byte(text), testLookup())
	return err
}

func TestKEDASchedulesFireInTheirZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, zone, start, after, want string }{
		{"day OR weekday is enough, as in cron", "UTC", "0 0 13 * 5", "2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"},
		{"weekday before the day", "UTC", "0 0 14 * 5", "2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z"},
		{"winter time in London", "Europe/London", "0 6 * * *", "2026-01-10T00:00:00Z", "2026-01-10T06:00:00Z"},
		{"summer time in London", "Europe/London", "0 6 * * *", "2026-07-10T00:00:00Z", "2026-07-10T05:00:00Z"},
		{"a question mark, which KEDA takes", "UTC", "0 6 ? * *", "2026-07-10T00:00:00Z", "2026-07-10T06:00:00Z"},
		{"eight years between leap days", "UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := load(t, minimal+"  schedules: [{timezone: '"+c.zone+"', start: '"+c.start+"', end: 59 23 * * *, desiredReplicas: 1}]\n")
			s := p[0].Policy.Schedules[0]
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Start.Next(after.In(s.Location)).UTC().Format(time.RFC3339); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestKEDAScheduleRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, zone, start, end, want string }{
		{"an empty expression", "UTC", "", "0 7 * * *", "start: "},
		{"a zone without an expression, at which cron/v3 panics", "UTC", "TZ=UTC", "0 7 * * *", "is no cron expression (a field is"},
		{"a zone in front", "UTC", "CRON_TZ=UTC 0 6 * * *", "0 7 * * *", "is no cron expression (a field is"},
		{"six fields", "UTC", "0 0 6 * * *", "0 7 * * *", `found 6: [0 0 6 * * *]); allowed are five fields (minute hour day month weekday)`},
		{"only commas, at which cron/v3 would look for a time second by second", "UTC", ", 6 * * *", "0 7 * * *", "is no cron expression (a field is"},
		{"April 31", "UTC", "0 6 31 4 *", "0 7 * * *", "never fires"},
		{"one expression twice", "UTC", "0 6 * * MON", "0 6 * * MON", "start and end are the same"},
		{"no zone", "", "0 6 * * *", "0 7 * * *", "is no time zone"},
		{"a connection string is not repeated", "UTC", "AccountKey=" + testKey, "0 7 * * *", "is no cron expression"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			contains(t, floor(c.zone, c.start, c.end), c.want)
		})
	}
}
