// Package crontab reads cron expressions: the six fields of a Functions timer, and the five of
// KEDA's cron trigger. Both are parsed, and fire, by robfig/cron/v3.
//
// It reads no clock. Start with ParseNCRONTAB.
//
// The package is internal to the program: its API may change in any release.
package crontab

import (
	"errors"
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

// IsZero reports whether there is no schedule.
func (s Schedule) IsZero() bool { return s == Schedule{} }

// String returns the expression as it was written.
func (s Schedule) String() string { return s.expression }

// scheduled returns the schedule of an expression, or an error if it never fires.
func scheduled(expression string, spec cron.SpecSchedule) (Schedule, error) {
	s := Schedule{strings.Join(strings.Fields(expression), " "), spec}
	if s.Next(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Schedule{}, fmt.Errorf("%s never fires: none of its months has such a day; allowed are days that exist", yamltree.Quote(expression))
	}
	return s, nil
}

// ParseKEDA reads the start or end of a schedule as KEDA's cron trigger does: five fields, no
// descriptors and no time zone. The Schedule is in the location of the time that Next is given.
func ParseKEDA(expression string) (Schedule, error) {
	spec, err := parse(expression, cron.Minute|cron.Hour|cron.Dom|cron.Month|cron.Dow)
	if err != nil {
		return Schedule{}, fmt.Errorf(`%s is no cron expression (%w); allowed are five fields (minute hour day month weekday), such as "0 6 * * 1-5"`, yamltree.Quote(expression), err)
	}
	return scheduled(expression, spec)
}

// ParseNCRONTAB reads the cron expression of a Functions timer: six fields (second minute hour day
// month weekday), in UTC (https://github.com/atifaziz/NCrontab,
// https://learn.microsoft.com/azure/azure-functions/functions-bindings-timer#ncrontab-expressions).
//
// The parser is that of cron/v3. NCRONTAB differs from it: days and months may be written out
// ("Monday"), day of month and weekday both have to match, and there is no "?". It refuses what
// Functions also accepts (a TimeSpan, five fields) or reads in an unexpected way (a reversed range, a
// step of 0, parts of names), and an expression that never fires. An empty one is the zero Schedule.
func ParseNCRONTAB(expression string) (Schedule, error) {
	if expression == "" {
		return Schedule{}, nil
	}
	spec, err := parse(longNames.Replace(strings.ToLower(expression)), cron.Second|cron.Minute|cron.Hour|cron.Dom|cron.Month|cron.Dow)
	if err == nil && strings.Contains(expression, "?") {
		err = errors.New("there is no ?")
	}
	if err != nil {
		return Schedule{}, fmt.Errorf(`%s is no NCRONTAB expression (%w); allowed are six fields (second minute hour day month weekday, in UTC), such as "0 */5 * * * *"`, yamltree.Quote(expression), err)
	}
	spec.Location = time.UTC
	spec.Dom |= starBit // both days have to match
	return scheduled(expression, spec)
}

// parse parses an expression by cron/v3, which would panic at a time zone alone, and takes "," for a
// field that never matches. Its error repeats words of a form alone: any other text may be a secret.
func parse(expression string, fields cron.ParseOption) (cron.SpecSchedule, error) {
	if !form.MatchString(expression) {
		return cron.SpecSchedule{}, errors.New("a field is *, a number, a name or a range a-b, with or without a step /n, or a list of these")
	}
	parsed, err := cron.NewParser(fields).Parse(expression)
	if err != nil {
		return cron.SpecSchedule{}, err
	}
	return *parsed.(*cron.SpecSchedule), nil // another type is that of a descriptor, which no option allows
}

const item = `([*?]|\w{1,9}(-\w{1,9})?)(/\d{1,9})?`

// form is the form of an expression, with any number of fields.
var form = regexp.MustCompile(`^\s*(` + item + `(,` + item + `)*(\s+|$))+$`)

// longNames shortens the names of days and months to those of cron/v3.
var longNames = strings.NewReplacer(
	"january", "jan", "february", "feb", "march", "mar", "april", "apr", "june", "jun", "july", "jul", "august", "aug",
	"september", "sep", "october", "oct", "november", "nov", "december", "dec",
	"sunday", "sun", "monday", "mon", "tuesday", "tue", "wednesday", "wed", "thursday", "thu", "friday", "fri", "saturday", "sat")
