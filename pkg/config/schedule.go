package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule is a parsed cron expression that is sure to fire. The zero Schedule
// never does.
type Schedule struct {
	expression string
	spec       cron.SpecSchedule
}

// starBit is cron/v3's mark of a field that was "*". Where either of the two
// day fields carries it, both have to match; where neither does, one is enough.
const starBit = 1 << 63

// Next returns the first time the schedule fires strictly after t, in t's
// location; the zero time for the zero Schedule.
func (s Schedule) Next(t time.Time) time.Time {
	if s == (Schedule{}) {
		return time.Time{}
	}
	// t itself first: AddDate, even by nothing, moves a time in the hour that the
	// end of summer time repeats to the other one of the two.
	if next := s.spec.Next(t); !next.IsZero() {
		return next
	}
	// cron/v3 looks five years ahead. February 29 on a given weekday can be
	// forty away, which is the longest that an expression can be silent.
	for years := 5; years <= 40; years += 5 {
		if next := s.spec.Next(t.AddDate(years, 0, 0)); !next.IsZero() {
			return next
		}
	}
	return time.Time{}
}

// IsZero tells whether there is no schedule.
func (s Schedule) IsZero() bool { return s == Schedule{} }

// String returns the expression as it was written.
func (s Schedule) String() string { return s.expression }

// errNeverFires refuses an expression such as February 30.
var errNeverFires = errors.New("never fires: none of its months has such a day; allowed are days that exist")

// fires tells whether the schedule ever fires, without trying: cron/v3 walks
// through years, second by second at worst, to find out.
func fires(spec cron.SpecSchedule) bool {
	if spec.Second == 0 || spec.Minute == 0 || spec.Hour == 0 || spec.Dow&^starBit == 0 {
		return false
	}
	eitherDay := (spec.Dom|spec.Dow)&starBit == 0
	for month := time.January; month <= time.December; month++ {
		if spec.Month&(1<<month) == 0 {
			continue
		}
		lastDay := time.Date(2000, month+1, 0, 0, 0, 0, 0, time.UTC).Day() // of a leap year
		days := uint64(1)<<(lastDay+1) - 2                                 // bits 1 to lastDay
		if eitherDay || spec.Dom&days != 0 {
			return true
		}
	}
	return false
}

// foreignToCron tells the characters that no cron expression has. cron/v3's own
// errors repeat the expression, so it should at least look like one.
func foreignToCron(r rune) bool {
	return !isAlphanumeric(r) && !strings.ContainsRune("*,-/? \t", r)
}

// parseKEDACron reads a start or end of schedules as KEDA's cron trigger does:
// five fields, no descriptors, in the zone of its own field. The Schedule
// follows the location of the time that Next is given.
func parseKEDACron(expression string) (Schedule, error) {
	const allowed = `allowed are five fields (minute hour day month weekday), such as "0 6 * * 1-5"`
	trimmed := strings.TrimSpace(expression)
	switch {
	case strings.HasPrefix(trimmed, "@"):
		return Schedule{}, fmt.Errorf("%s is a descriptor, which KEDA's cron trigger does not know; %s", shown(expression), allowed)
	case strings.HasPrefix(trimmed, "TZ=") || strings.HasPrefix(trimmed, "CRON_TZ="):
		// cron/v3 would take it, and panic where nothing follows the zone.
		return Schedule{}, fmt.Errorf("the time zone does not belong here; %s, and the zone in timezone", allowed)
	case strings.ContainsFunc(trimmed, foreignToCron):
		return Schedule{}, fmt.Errorf("%s is no cron expression; %s", shown(expression), allowed)
	}
	parsed, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(trimmed)
	if err != nil {
		return Schedule{}, fmt.Errorf("%s is no cron expression (%w); %s", shown(expression), err, allowed)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok || !fires(*spec) {
		return Schedule{}, fmt.Errorf("%s %w", shown(expression), errNeverFires)
	}
	return Schedule{expression: trimmed, spec: *spec}, nil
}
