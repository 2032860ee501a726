package report

import (
	"fmt"
	"math"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// with returns a lag with only the partitions of a status.
func with(lag changefeed.ProcessorLag, status changefeed.Status) (found changefeed.ProcessorLag) {
	for _, p := range lag.Partitions {
		if p.Status == status {
			found.Partitions = append(found.Partitions, p)
		}
	}
	return found
}

// backlog describes the pending changes; "" if they are unknown.
func backlog(lag changefeed.ProcessorLag) string {
	if lag.Lag() == nil {
		return ""
	}
	return fmt.Sprintf("%s pending, the oldest for %s", Count(int(*lag.Lag()), "transaction"), Age(lag.Age()))
}

const dayAndMinute = "2006-01-02 15:04 UTC"

// clock formats a time in UTC, with the day only if it differs from that of the other time.
func clock(t, day time.Time) string {
	if t = t.UTC(); t.Format(time.DateOnly) == day.UTC().Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format(dayAndMinute)
}

// Age formats seconds for people; "-" if nothing is pending.
func Age(seconds *int64) string {
	switch {
	case seconds == nil:
		return "-"
	case *seconds < 120:
		return fmt.Sprintf("%ds", *seconds)
	case *seconds < 2*3600:
		return fmt.Sprintf("%dm", *seconds/60)
	default:
		return fmt.Sprintf("%dh", *seconds/3600)
	}
}

// Float returns a number; NaN if it is unknown.
func Float[N int | int64 | float64](n *N) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}
