package console

import (
	"fmt"
	"io"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/report"
)

// processorsShown is how many processors the table of checks names below what fails.
const processorsShown = 5

// checkOrder is the order in which people read checks.
var checkOrder = []check.Status{check.Fail, check.Warn, check.OK, check.Skip}

// WriteChecks prints one line for each check, what fails first, and below one that fails or warns who depends
// on it and what mends it; on request nothing else.
func WriteChecks(w io.Writer, found check.Report, failures bool, style Style) error {
	rows := [][]Cell{Head("STATUS", "TARGET", "CHECK", "DETAIL")}
	failed, doubtful := 0, 0
	var shown []check.Line
	for _, status := range checkOrder {
		for _, l := range found.Checks {
			if l.Status == status && (!failures || status == check.Fail || status == check.Warn) {
				shown = append(shown, l)
			}
		}
	}
	for _, l := range shown {
		rows = append(rows, []Cell{{string(l.Status), checkColor(l.Status), false}, {l.Target, Plain, false}, {l.Check, Plain, false}, {l.Detail, Dim, false}})
	}
	for _, l := range found.Checks {
		switch l.Status {
		case check.Fail:
			failed++
		case check.Warn:
			doubtful++
		}
	}
	style.Wrap = true
	var b strings.Builder
	for i, row := range style.Rows(rows) {
		b.WriteString(row)
		if i > 0 {
			writeRemedy(&b, shown[i-1], style)
		}
	}
	switch {
	case failed > 0:
		fmt.Fprintf(&b, "\n%d of %d checks failed\n", failed, len(found.Checks))
	case !found.OK:
		b.WriteString("\nnot everything was tried\n")
	case doubtful > 0:
		fmt.Fprintf(&b, "\neverything holds, with %s\n", report.Count(doubtful, "warning"))
	default:
		b.WriteString("\neverything holds\n")
	}
	return style.print(w, b.String())
}

func writeRemedy(b *strings.Builder, l check.Line, style Style) {
	if l.Status != check.Fail && l.Status != check.Warn {
		return
	}
	if names := l.Processors; len(names) > 0 {
		more := ""
		if len(names) > processorsShown {
			names, more = names[:processorsShown], fmt.Sprintf(" and %d more", len(names)-processorsShown)
		}
		b.WriteString(style.wrapLines("        " + style.Paint("processors: ", Dim) + strings.Join(names, ", ") + more + "\n"))
	}
	if l.Fix != nil { // in one line, however long: it is for copying
		b.WriteString("        " + style.Paint("fix: ", Dim) + style.Paint(printable(*l.Fix), Bold) + "\n")
	}
}

func checkColor(s check.Status) string {
	switch s {
	case check.OK:
		return Green
	case check.Fail:
		return Red
	default:
		return Yellow
	}
}
