package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// ncrontabForm says in mistakes what an NCRONTAB expression looks like.
const ncrontabForm = `allowed are six fields (second minute hour day month weekday, in UTC), such as "0 */5 * * * *"`

// ParseNCRONTAB reads the cron expression of a Functions timer: six fields (second minute hour day
// month weekday), in UTC (https://github.com/atifaziz/NCrontab,
// https://learn.microsoft.com/azure/azure-functions/functions-bindings-timer#ncrontab-expressions).
//
// The grammar is NCRONTAB's, which differs from that of cron/v3: the ends of a reversed range are
// swapped, days and months may be written out ("Monday", "sept"), day of month and weekday both
// have to match, and there is no "?". Refused are what Functions accepts besides (a TimeSpan, five
// fields), what it reads as something that is hardly meant (a step of 0, names of one or two
// letters), and an expression that never fires.
func ParseNCRONTAB(expression string) (Schedule, error) {
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 1 && strings.Contains(expression, ":"):
		return Schedule{}, fmt.Errorf("%s is a TimeSpan, which is not supported; %s", yamltree.Quote(expression), ncrontabForm)
	case len(fields) == 5:
		return Schedule{}, fmt.Errorf("%s has five fields; put the second in front, as in %q; %s", yamltree.Quote(expression), "0 "+strings.Join(fields, " "), ncrontabForm)
	case len(fields) != 6:
		return Schedule{}, fmt.Errorf("%s has %d fields; %s", yamltree.Quote(expression), len(fields), ncrontabForm)
	}
	spec := cron.SpecSchedule{Location: time.UTC}
	for i, field := range []struct {
		bits *uint64
		kind ncrontabField
	}{
		{&spec.Second, ncrontabField{name: "second", min: 0, max: 59}},
		{&spec.Minute, ncrontabField{name: "minute", min: 0, max: 59}},
		{&spec.Hour, ncrontabField{name: "hour", min: 0, max: 23}},
		{&spec.Dom, ncrontabField{name: "day", min: 1, max: 31}},
		{&spec.Month, ncrontabField{name: "month", min: 1, max: 12, value: monthNamed}},
		{&spec.Dow, ncrontabField{name: "weekday", min: 0, max: 6, value: weekdayNamed}},
	} {
		bits, err := field.kind.parse(fields[i])
		if err != nil {
			return Schedule{}, err
		}
		*field.bits = bits
	}
	spec.Dom |= starBit // both days have to match
	if !fires(spec) {
		return Schedule{}, fmt.Errorf("%s %w", yamltree.Quote(expression), errNeverFires)
	}
	return Schedule{expression: strings.Join(fields, " "), spec: spec}, nil
}

// ncrontabField is one of the six fields of an expression.
type ncrontabField struct {
	name     string
	min, max uint
	value    func(name string) (uint, bool) // of a name; nil where the field has only numbers
}

// parse returns the set of a field's values: bit n is set for value n.
func (f ncrontabField) parse(text string) (uint64, error) {
	var bits uint64
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		step := uint64(1)
		if stepped {
			n, err := strconv.ParseUint(stepText, 10, 32)
			if err != nil || n == 0 {
				return 0, fmt.Errorf("the %s %s has a bad step; allowed is a whole number from 1 after the slash, as in */5", f.name, yamltree.Quote(text))
			}
			step = n
		}
		first, last, err := f.span(span, stepped)
		if err != nil {
			return 0, err
		}
		for value := uint64(first); value <= uint64(last); value += step {
			bits |= 1 << value
		}
	}
	return bits, nil
}

// span returns the bounds of "*", "a-b" or "a". With a step, "a" means from a to the field's
// maximum.
func (f ncrontabField) span(text string, stepped bool) (first, last uint, err error) {
	if text == "*" {
		return f.min, f.max, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	if first, err = f.number(from); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		if last, err = f.number(to); err != nil {
			return 0, 0, err
		}
		return min(first, last), max(first, last), nil
	case stepped:
		return first, f.max, nil
	}
	return first, first, nil
}

// number returns the value of a number or a name.
func (f ncrontabField) number(text string) (uint, error) {
	allowed := fmt.Sprintf("%d to %d", f.min, f.max)
	if f.value != nil {
		if n, ok := f.value(text); ok {
			return n, nil
		}
		allowed += " or an English name of three letters or more"
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n < uint64(f.min) || n > uint64(f.max) {
		return 0, fmt.Errorf("the %s %s is not allowed; allowed are %s, *, ranges (a-b), steps (*/n) and lists (a,b)", f.name, yamltree.Quote(text), allowed)
	}
	return uint(n), nil
}

// monthNamed finds a month by its English name, or by its first three letters or more.
func monthNamed(name string) (uint, bool) {
	for month := time.January; month <= time.December; month++ {
		if begins(month.String(), name) {
			return uint(month), true
		}
	}
	return 0, false
}

// weekdayNamed finds a weekday by its English name, or by its first three letters or more.
func weekdayNamed(name string) (uint, bool) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if begins(day.String(), name) {
			return uint(day), true
		}
	}
	return 0, false
}

// begins reports whether a name begins with a text of at least three letters, in any case.
func begins(name, beginning string) bool {
	return len(beginning) >= 3 && len(beginning) <= len(name) && strings.EqualFold(name[:len(beginning)], beginning)
}
