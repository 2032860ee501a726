package console

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// unknown is the text of a value that could not be measured.
const unknown = "?"

// text is a value, or what is shown if there is none.
func text[T any](value *T, none string) string {
	if value == nil {
		return none
	}
	return fmt.Sprint(*value)
}

// Number is a count; "?" if it is unknown.
func Number(n *int64) string { return text(n, unknown) }

// catchUp is how long the lag takes to drain with the replicas that were decided; "-" if that is
// not known.
func catchUp(s state.State) string {
	seconds, known := report.CatchUpSeconds(s)
	switch {
	case !known:
		return "-"
	case math.IsInf(seconds, 1):
		return "never"
	}
	return report.Age(new(int64(math.Ceil(seconds))))
}

// replicas is the decision, with an arrow if it is a change; "?" if there is none.
func replicas(of report.Subject) string {
	if of.DesiredReplicas == nil {
		return unknown
	}
	arrow := map[scaling.Direction]string{scaling.Out: "↑", scaling.In: "↓"}[*of.Direction]
	return fmt.Sprintf("%s%d", arrow, *of.DesiredReplicas)
}

// partitions is how many partitions have lag, of all.
func partitions(r report.Processor) string {
	if r.PartitionCount == nil {
		return unknown
	}
	return fmt.Sprintf("%s/%d", text(r.PartitionsWithLag, unknown), *r.PartitionCount)
}

// Brief is a duration to the second, as 1h30m and not 1h30m0s.
func Brief(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.Round(time.Second).String())
}

// compact writes a number with three digits.
func compact(n float64) string {
	for _, unit := range []string{"", "k", "M", "G", "T", "P"} {
		if n < 999.5 {
			return fmt.Sprintf("%.3g%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0e", n*1e18)
}

// WriteJSON writes a value as one line of JSON. It does not escape < and >.
func WriteJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(Lines{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
