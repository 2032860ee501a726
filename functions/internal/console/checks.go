package console

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

const skippedShown = 20 // checks that were not tried

// checkColors are the colors of a check; any other is yellow.
var checkColors = map[check.Status]string{check.OK: Green, check.Fail: Red}

// WriteChecks prints a line for each check, failures first. Below one that fails or warns, it
// prints who depends on it and how to fix it. If failures is set, it prints only those.
func WriteChecks(w io.Writer, found check.Report, failures bool, style Style) error {
	rows := [][]Cell{Head("STATUS", "TARGET", "CHECK", "DETAIL")}
	below := []string{""} // each row
	counts := make(map[check.Status]int)
	for _, status := range []check.Status{check.Fail, check.Warn, check.OK, check.Skip} {
		for _, l := range found.Checks {
			if l.Status != status {
				continue
			}
			counts[status]++
			wrong := status == check.Fail || status == check.Warn
			if failures && !wrong || status == check.Skip && counts[status] > skippedShown {
				continue
			}
			rows = append(rows, []Cell{{string(status), cmp.Or(checkColors[status], Yellow)}, {Text: l.Target}, {Text: l.Check}, {l.Detail, Dim}})
			remedy := ""
			if wrong && len(l.Processors) > 0 {
				remedy = style.wrapLines("        " + changefeed.List("processor", l.Processors) + "\n")
			}
			if wrong && l.Fix != nil { // not wrapped, for copying
				remedy += "        " + style.Paint("fix: ", Dim) + style.Paint(printable(*l.Fix), Bold) + "\n"
			}
			below = append(below, remedy)
		}
	}
	style.Wrap = true
	var b strings.Builder
	for i, row := range style.Rows(rows) {
		b.WriteString(row + below[i])
	}
	if more := counts[check.Skip] - skippedShown; more > 0 && !failures {
		fmt.Fprintf(&b, "%d more were not tried: --output json lists them\n", more)
	}
	switch {
	case counts[check.Fail] > 0:
		fmt.Fprintf(&b, "\n%d of %d checks failed\n", counts[check.Fail], len(found.Checks))
	case !found.OK:
		b.WriteString("\nnot everything was tried\n")
	case counts[check.Warn] > 0:
		fmt.Fprintf(&b, "\neverything holds, with %s\n", report.Count(counts[check.Warn], "warning"))
	default:
		b.WriteString("\neverything holds\n")
	}
	return style.print(w, b.String())
}
