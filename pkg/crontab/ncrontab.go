package crontab

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// ParseNCRONTAB reads the cron expression of a Functions timer: six fields (second minute hour day
// month weekday), in UTC (https://github.com/atifaziz/NCrontab,
// https://learn.microsoft.com/azure/azure-functions/functions-bindings-timer#ncrontab-expressions).
//
// The parser is that of cron/v3. NCRONTAB differs from it: the ends of a reversed range are
// swapped, days and months may be written out ("Monday", "sept"), day of month and weekday both
// have to match, and there is no "?". It refuses what Functions also accepts (a TimeSpan, five
// fields) or reads in an unexpected way (a step of 0, names of one or two letters), and an
// expression that never fires.
func ParseNCRONTAB(expression string) (Schedule, error) {
	const allowed = `allowed are six fields (second minute hour day month weekday, in UTC), such as "0 */5 * * * *"`
	fields := strings.Fields(expression)
	switch {
	case len(fields) == 1 && strings.Contains(expression, ":"):
		return Schedule{}, fmt.Errorf("%s is a TimeSpan, which is not supported; %s", yamltree.Quote(expression), allowed)
	case len(fields) == 5:
		return Schedule{}, fmt.Errorf("%s has five fields; put the second in front, as in %q; %s", yamltree.Quote(expression), "0 "+strings.Join(fields, " "), allowed)
	case len(fields) != 6:
		return Schedule{}, fmt.Errorf("%s has %d fields; %s", yamltree.Quote(expression), len(fields), allowed)
	}
	rewritten := make([]string, len(fields))
	for i, kind := range ncrontabFields {
		rewritten[i] = asCron(fields[i], kind.names)
		if _, err := parseCron(kind.option, rewritten[i]); err != nil || !ncrontabForms.MatchString(fields[i]) {
			return Schedule{}, fmt.Errorf("the %s %s is not allowed; allowed are %s, *, ranges (a-b), steps (*/n) and lists (a,b)", kind.name, yamltree.Quote(fields[i]), kind.values)
		}
	}
	spec, err := parseCron(cron.Second|cron.Minute|cron.Hour|cron.Dom|cron.Month|cron.Dow, strings.Join(rewritten, " "))
	if err != nil {
		return Schedule{}, fmt.Errorf("%s is no NCRONTAB expression; %s", yamltree.Quote(expression), allowed)
	}
	spec.Location = time.UTC
	spec.Dom |= starBit // both days have to match
	return scheduled(expression, spec)
}

const ncrontabPart = `(\*|\w+(-\w+)?)(/[1-9]\d*)?`

var (
	ncrontabForms = regexp.MustCompile("^" + ncrontabPart + "(," + ncrontabPart + ")*$") // of a field
	cronWord      = regexp.MustCompile(`[A-Za-z]{3,}`)
	cronRange     = regexp.MustCompile(`(\d+)-(\d+)`)
)

// ncrontabFields are the fields of an expression, with the names of their values in order.
var ncrontabFields = []struct {
	name   string
	option cron.ParseOption
	values string
	names  string
}{
	{"second", cron.Second, "0 to 59", ""},
	{"minute", cron.Minute, "0 to 59", ""},
	{"hour", cron.Hour, "0 to 23", ""},
	{"day", cron.Dom, "1 to 31", ""},
	{"month", cron.Month, "1 to 12 or an English name of three letters or more",
		"0 january february march april may june july august september october november december"},
	{"weekday", cron.Dow, "0 to 6 or an English name of three letters or more", "sunday monday tuesday wednesday thursday friday saturday"},
}

// asCron rewrites a field for cron/v3: names, by their first three letters or more, become numbers,
// and the ends of a reversed range are swapped.
func asCron(field, names string) string {
	field = cronWord.ReplaceAllStringFunc(field, func(word string) string {
		if i := slices.IndexFunc(strings.Fields(names), func(name string) bool { return strings.HasPrefix(name, strings.ToLower(word)) }); i >= 0 {
			return strconv.Itoa(i)
		}
		return word
	})
	return cronRange.ReplaceAllStringFunc(field, func(span string) string {
		from, to, _ := strings.Cut(span, "-")
		first, _ := strconv.Atoi(from)
		if last, _ := strconv.Atoi(to); first > last {
			return to + "-" + from
		}
		return span
	})
}
