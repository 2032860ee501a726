// Package crontab reads cron expressions: the six fields of a Functions timer, and the five of
// KEDA's cron trigger. Both are parsed, and fire, by robfig/cron/v3.
//
// It reads no clock. Start with ParseNCRONTAB.
//
// The package is internal to the program: its API may change in any release.
package crontab

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// Schedule is a parsed cron expression that fires at some time. The zero Schedule is none.
type Schedule struct {
	expression string
	spec       cron.SpecSchedule
}

// starBit is the bit by which cron/v3 marks a field that was "*". If one of the two day fields has
// it, both have to match; else one is enough.
const starBit = 1 << 63

// Next returns the first time the schedule fires strictly after t, in t's location; the zero time
// for the zero Schedule.
func (s Schedule) Next(t time.Time) time.Time {
	if s.IsZero() {
		return time.Time{}
	}
	next := s.spec.Next(t)
	// cron/v3 looks five years ahead. The longest gap of an expression is forty years: February 29
	// on a given weekday around a year such as 2100.
	for years := 5; next.IsZero() && years <= 40; years += 5 {
		next = s.spec.Next(t.AddDate(years, 0, 0))
	}
	return next
}

// Same reports whether both fire at the same times.
func (s Schedule) Same(o Schedule) bool { return s.spec == o.spec }

// IsZero reports whether there is no schedule.
func (s Schedule) IsZero() bool { return s == Schedule{} }

// String returns the expression as it was written.
func (s Schedule) String() string { return s.expression }

// scheduled returns the schedule of an expression, or an error if it never fires. Without seconds,
// minutes or hours, cron/v3 would step through years second by second.
func scheduled(expression string, spec cron.SpecSchedule) (Schedule, error) {
	s := Schedule{strings.Join(strings.Fields(expression), " "), spec}
	if spec.Second == 0 || spec.Minute == 0 || spec.Hour == 0 || s.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("%s never fires: none of its months has such a day; allowed are days that exist", yamltree.Quote(expression))
	}
	return s, nil
}

// cronText is what a cron expression may have. Another text may be a secret: it is not quoted.
var cronText = regexp.MustCompile(`^[A-Za-z0-9*,/? \t-]*$`)

// ParseKEDA reads the start or end of a schedule as KEDA's cron trigger does: five fields, no
// descriptors and no time zone. The Schedule is in the location of the time that Next is given.
func ParseKEDA(expression string) (Schedule, error) {
	const allowed = `allowed are five fields (minute hour day month weekday), such as "0 6 * * 1-5"`
	fields := strings.Fields(expression)
	switch {
	case strings.Contains(expression, "TZ="):
		// cron/v3 would accept it, and panic where nothing follows the zone.
		return Schedule{}, fmt.Errorf("the time zone does not belong here; %s, and the zone in timezone", allowed)
	case !cronText.MatchString(expression):
		return Schedule{}, fmt.Errorf("%s is no cron expression; %s", yamltree.Quote(expression), allowed)
	case len(fields) == 6:
		return Schedule{}, fmt.Errorf("%s has six fields; leave the second out, as in %q; %s", yamltree.Quote(expression), strings.Join(fields[1:], " "), allowed)
	}
	spec, err := parseCron(cron.Minute|cron.Hour|cron.Dom|cron.Month|cron.Dow, expression)
	if err != nil {
		return Schedule{}, fmt.Errorf("%s is no cron expression (%w); %s", yamltree.Quote(expression), err, allowed)
	}
	return scheduled(expression, spec)
}

// parseCron parses an expression by cron/v3.
func parseCron(options cron.ParseOption, expression string) (cron.SpecSchedule, error) {
	parsed, err := cron.NewParser(options).Parse(expression)
	if err != nil {
		return cron.SpecSchedule{}, err
	}
	return *parsed.(*cron.SpecSchedule), nil // another type is that of a descriptor, which no option allows
}
