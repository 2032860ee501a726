package app

import (
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/crontab"
)

func TestATickHasUntilTheNextSlotWheneverItStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, schedule, start string
		want                  time.Duration
	}{
		{"on time", "*/15 * * * * *", "12:00:15", 15 * time.Second},
		{"some milliseconds early, as a host fires", "0,10 * * * * *", "12:00:09.998", 50 * time.Second},
		{"late", "*/15 * * * * *", "12:00:29", 15 * time.Second},
		{"of slots that are not even, the longer", "0,10 * * * * *", "12:00:00", 50 * time.Second},
		{"a slot of the day before", "0 0 20 * * *", "12:00:00", 24 * time.Hour},
		{"years", "0 0 0 29 2 *", "12:00:00", (4*365 + 1) * 24 * time.Hour},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			schedule, err := crontab.ParseNCRONTAB(c.schedule)
			if err != nil {
				t.Fatal(err)
			}
			start, err := time.Parse(time.DateTime, "2026-11-23 "+c.start)
			if err != nil {
				t.Fatal(err)
			}
			if got := slotLength(schedule, start); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
