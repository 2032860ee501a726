package crontab_test

import (
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/crontab"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestNCRONTABFiresNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, expression, after, want string }{
		{"every thirty seconds", "*/30 * * * * *", "2026-03-04 10:00:00", "2026-03-04 10:00:30"},
		{"strictly after", "0 0 10 * * *", "2026-03-04 10:00:00", "2026-03-05 10:00:00"},
		{"a list", "5,10,50 * * * * *", "2026-03-04 10:00:10", "2026-03-04 10:00:50"},
		{"a range with a step", "10-30/10 * * * * *", "2026-03-04 10:00:20", "2026-03-04 10:00:30"},
		{"a value with a step reaches to the end", "0 40/10 * * * *", "2026-03-04 10:40:00", "2026-03-04 10:50:00"},
		{"a step beyond the field leaves its start", "*/90 * * * * *", "2026-03-04 10:00:00", "2026-03-04 10:01:00"},
		{"a month written out", "0 0 0 1 January *", "2026-03-04 00:00:00", "2027-01-01 00:00:00"},
		{"a month in short", "0 0 0 1 jan,SEP *", "2026-03-04 00:00:00", "2026-09-01 00:00:00"},
		{"a weekday written out", "0 0 0 * * Monday", "2026-03-04 00:00:00", "2026-03-09 00:00:00"},
		{"a range of weekdays", "0 0 0 * * mon-Fri", "2026-03-06 00:00:00", "2026-03-09 00:00:00"},
		{"Sunday is 0", "0 0 0 * * 0", "2026-03-04 00:00:00", "2026-03-08 00:00:00"},
		{"day AND weekday have to match", "0 0 0 13 * Fri", "2026-03-14 00:00:00", "2026-11-13 00:00:00"},
		{"the last day of February in a leap year", "0 0 0 29 2 *", "2026-03-04 00:00:00", "2028-02-29 00:00:00"},
		{"over a century that is no leap year", "0 0 0 29 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00:00"},
		{"forty years ahead", "0 0 0 29 2 Sun", "1880-03-01 00:00:00", "1920-02-29 00:00:00"},
		{"tabs and spaces between fields", " 0\t0  0 1 1 * ", "2026-03-04 00:00:00", "2027-01-01 00:00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schedule, err := crontab.ParseNCRONTAB(c.expression)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := schedule.Next(at(t, c.after)), at(t, c.want); !got.Equal(want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestNCRONTABIsInUTCWhateverTheClock(t *testing.T) {
	t.Parallel()
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := crontab.ParseNCRONTAB("0 0 6 * * *")
	if err != nil {
		t.Fatal(err)
	}
	got := schedule.Next(time.Date(2026, 3, 4, 0, 0, 0, 0, tokyo))
	if want := time.Date(2026, 3, 4, 15, 0, 0, 0, tokyo); !got.Equal(want) || got.Location() != tokyo {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNCRONTABRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, expression, want string }{
		{"nothing but a space", " ", "is no NCRONTAB expression"},
		{"five fields", "*/5 * * * *", "expected exactly 6 fields, found 5"},
		{"seven fields", "0 0 0 1 1 * 2026", "found 7"},
		{"a TimeSpan", "00:05:00", `"00:05:00" is no NCRONTAB expression`},
		{"a descriptor", "@daily", `a field is *, a number, a name or a range a-b`},
		{"a question mark", "0 0 0 ? * *", "there is no ?"},
		{"Sunday as 7", "0 0 0 * * 7", "end of range (7) above maximum (6): 7"},
		{"a last day", "0 0 0 L * *", "failed to parse int from l"},
		{"a second out of range", "60 * * * * *", "end of range (60) above maximum (59): 60"},
		{"day 0", "0 0 0 0 * *", "beginning of range (0) below minimum (1): 0"},
		{"a name where there are none", "0 0 Mon * * *", "failed to parse int from mon"},
		{"a name of two letters", "0 0 0 * * Mo", "failed to parse int from mo"},
		{"more than a name", "0 0 0 * Januaryy *", "failed to parse int from jany"},
		{"a reversed range", "0 0 22-2 * * *", "beginning of range (22) beyond end of range (2): 22-2"},
		{"a reversed range of weekdays", "0 0 0 * * FRI-MON", "beginning of range (5) beyond end of range (1): fri-mon"},
		{"a part of a name", "0 0 0 1 sept *", "failed to parse int from sept"},
		{"a step of 0", "*/0 * * * * *", "step of range should be a positive number: */0"},
		{"no step", "*/ * * * * *", `a field is *, a number, a name or a range a-b`},
		{"two steps", "*/2/3 * * * * *", `a field is *, a number, a name or a range a-b`},
		{"a negative number", "-5 * * * * *", `a field is *, a number, a name or a range a-b`},
		{"an open range", "5- * * * * *", `a field is *, a number, a name or a range a-b`},
		{"an empty item of a list", "1,,2 * * * * *", `a field is *, a number, a name or a range a-b`},
		{"a comma in front", ",5 * * * * *", `a field is *, a number, a name or a range a-b`},
		{"only a comma", ", * * * * *", `a field is *, a number, a name or a range a-b`},
		{"a star in a range", "*-5 * * * * *", `a field is *, a number, a name or a range a-b`},
		{"a time zone", "TZ=UTC 0 0 0 1 1 *", `a field is *, a number, a name or a range a-b`},
		{"February 30", "0 0 0 30 2 *", "never fires"},
		{"day 31 of short months", "0 0 0 31 2,4,6,9,11 *", "never fires"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := crontab.ParseNCRONTAB(c.expression)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestZeroScheduleNeverFires(t *testing.T) {
	t.Parallel()
	none, err := crontab.ParseNCRONTAB("")
	if got := none.Next(at(t, "2026-03-04 10:00:00")); err != nil || !none.IsZero() || !got.IsZero() {
		t.Errorf("got %v, %v, want the zero time", got, err)
	}
}

// Whatever the expression, it is either refused or fires.
func FuzzParseNCRONTAB(f *testing.F) {
	for _, expression := range []string{"*/30 * * * * *", "0 0 22-2 13 * Fri", "0 0 0 29 2 Sun", "0 0 0 30 2 *", "TZ=UTC", ", * * * * *", "5-1/3,7 * * * january-march mon"} {
		f.Add(expression)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		schedule, err := crontab.ParseNCRONTAB(expression)
		if err != nil || expression == "" {
			return
		}
		after := time.Date(2026, 3, 4, 10, 0, 0, 1, time.UTC)
		next := schedule.Next(after)
		if !next.After(after) {
			t.Errorf("%q fires at %v", expression, next)
		}
	})
}
