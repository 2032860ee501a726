package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// The colors of a terminal, as SGR parameters.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// colored tells whether to write colors: to a terminal only, and not where
// NO_COLOR is set.
func colored(w io.Writer, noColor string) bool {
	f, ok := w.(*os.File)
	return ok && noColor == "" && term.IsTerminal(int(f.Fd()))
}

// cell is one field of the table.
type cell struct {
	text  string
	color string
	right bool // aligned to the right, as numbers are
}

// writeTable prints one line for each processor, below it one for each of its
// partitions where they are asked for, and one for each error.
func writeTable(w io.Writer, polled []state.State, withPartitions, colors bool) error {
	rows := [][]cell{{
		{"PROCESSOR", bold, false}, {"STATUS", bold, false}, {"LAG", bold, true}, {"AGE", bold, true}, {"CATCH-UP", bold, true}, {"REPLICAS", bold, true},
		{"PARTITIONS", bold, true}, {"RU", bold, true}, {"WHY", bold, false},
	}}
	var errors strings.Builder
	for _, s := range polled {
		r := poller.NewReport(s)
		rows = append(rows, []cell{
			{r.Name, plain, false},
			{string(r.Status), statusColor(r.Status), false},
			{number(r.Lag), plain, true},
			{age(r.ChangeAgeSeconds), plain, true},
			{catchUp(s), plain, true},
			{replicas(r), plain, true},
			{partitions(r), plain, true},
			{fmt.Sprintf("%.1f", r.RequestCharge), dim, true},
			{why(r), dim, false},
		})
		if withPartitions {
			for _, p := range r.Partitions {
				rows = append(rows, partitionRow(p))
			}
		}
		if r.Error != nil {
			errors.WriteString(paint(r.Name+": ", red, colors) + oneLine(*r.Error) + "\n")
		}
	}
	var b strings.Builder
	writeRows(&b, rows, colors, 0)
	_, err := io.WriteString(w, b.String()+errors.String())
	return err
}

// partitionRow is a partition in the columns of its processor: what only a
// processor has is empty, and the owner and the error stand where the reasons do.
func partitionRow(p poller.PartitionReport) []cell {
	lag := number(p.Lag)
	if p.Approximate && p.Lag != nil {
		lag = "~" + lag
	}
	owner := "no owner"
	if p.Owner != nil {
		owner = "owner " + *p.Owner
	}
	if p.Error != nil {
		owner += "; " + oneLine(*p.Error)
	}
	none := cell{"", plain, true}
	return []cell{
		{"  " + p.Lease, dim, false},
		{string(p.Status), statusColor(p.Status), false},
		{lag, plain, true},
		{age(p.ChangeAgeSeconds), plain, true},
		none, none, none, none,
		{owner, dim, false},
	}
}

// writeRows aligns the columns. A width above 0 is that of the terminal: what
// does not fit of the last column is cut.
func writeRows(b *strings.Builder, rows [][]cell, colors bool, width int) {
	const gap = "  "
	last := len(rows[0]) - 1
	widths := make([]int, last+1)
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	left := 0
	for _, w := range widths[:last] {
		left += w + len(gap)
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row[:last] {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			text := paint(c.text, c.color, colors)
			if c.right {
				text, pad = pad+text, ""
			}
			line.WriteString(text + pad + gap)
		}
		if width > 0 {
			row[last].text = cut(row[last].text, max(1, width-left))
		}
		line.WriteString(paint(row[last].text, row[last].color, colors))
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// cut shortens a line to a width in characters; 0 is any.
func cut(line string, width int) string {
	runes := []rune(line)
	if width <= 0 || len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}

func paint(text, color string, colors bool) string {
	if !colors || color == plain || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func statusColor(s changefeed.Status) string {
	switch s {
	case changefeed.StatusOK:
		return green
	case changefeed.StatusUnknown, changefeed.StatusStalled:
		return red
	default:
		return yellow
	}
}

// oneLine is a text that neither breaks a line nor tells a terminal what to do.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// unknown is what stands for a value that could not be measured.
const unknown = "?"

func number(n *int64) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

// age prints seconds as people say them; "-" where nothing is pending.
func age(seconds *int64) string {
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

// catchUp prints how long the lag takes to drain with the replicas that were
// decided; "-" where nothing is pending or a rate is not known yet.
func catchUp(s state.State) string {
	if s.Decision == nil {
		return "-"
	}
	seconds, known := s.Memory.CatchUp(s.Lag.Lag(), s.Decision.Replicas)
	switch {
	case !known:
		return "-"
	case math.IsInf(seconds, 1):
		return "never"
	default:
		whole := int64(math.Ceil(min(seconds, math.MaxInt32)))
		return age(&whole)
	}
}

func replicas(r poller.Report) string {
	if r.DesiredReplicas == nil {
		return unknown
	}
	return fmt.Sprintf("%s%d", arrow(*r.Direction), *r.DesiredReplicas)
}

func arrow(d scaling.Direction) string {
	switch d {
	case scaling.Out:
		return "↑"
	case scaling.In:
		return "↓"
	default:
		return ""
	}
}

func partitions(r poller.Report) string {
	switch {
	case r.PartitionCount == nil:
		return unknown
	case r.PartitionsWithLag == nil:
		return fmt.Sprintf("%s/%d", unknown, *r.PartitionCount)
	default:
		return fmt.Sprintf("%d/%d", *r.PartitionsWithLag, *r.PartitionCount)
	}
}

// why is the reason that settled the decision: the last step that had a say.
func why(r poller.Report) string {
	if len(r.Reasons) == 0 {
		return ""
	}
	last := r.Reasons[len(r.Reasons)-1]
	return last.Step + ": " + last.Why
}
