package console

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// WriteStatus prints one line for each processor and group, the worst first, then a sentence for each
// problem, with what to do, and what is said of the throughput.
func WriteStatus(w io.Writer, all report.List, style Style) error {
	all = worstFirst(all)
	var b strings.Builder
	b.WriteString(style.Table(statusRows(all), "POLLED", "AGE"))
	problems := Problems(all)
	for i, p := range problems {
		if i == 0 || problems[i-1].Name != p.Name {
			b.WriteString("\n")
		}
		end := "."
		if strings.HasSuffix(p.Says, "?") {
			end = "" // a nearest name is asked for
		}
		style.sentence(&b, p.Name, Bold, ": "+p.Says+end)
		if last := i == len(problems)-1; last || problems[i+1].Name != p.Name || problems[i+1].Do != p.Do {
			style.sentence(&b, "  Do:", Dim, " "+p.Do+". "+p.Page)
		}
	}
	writeThroughput(&b, all, style)
	return style.print(w, b.String())
}

// WriteStatusJSON prints the same as JSON: what the API answers, and the problems.
func WriteStatusJSON(w io.Writer, all report.List) error {
	all = worstFirst(all)
	return WriteJSON(w, struct {
		report.List
		Problems []Problem `json:"problems"`
	}{all, Problems(all)})
}

// worstFirst orders by status, then by lag: what is unknown may be the most, and what was not polled for
// too long is as good as unknown.
func worstFirst(all report.List) report.List {
	statuses := changefeed.Statuses()
	rank := func(p report.Stored) int {
		if p.Stale {
			return 0
		}
		return slices.Index(statuses[:], p.Status)
	}
	lag := func(n *int64) int64 {
		if n == nil {
			return math.MaxInt64
		}
		return *n
	}
	slices.SortStableFunc(all.Processors, func(a, b report.Stored) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(lag(b.Lag), lag(a.Lag)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func statusRows(all report.List) [][]Cell {
	rows := [][]Cell{Head("PROCESSOR", "STATUS", ">REPLICAS", ">LAG", ">AGE", "POLLED")}
	row := func(name string, status changefeed.Status, replicas string, lag, age *int64, kept report.Kept) {
		word := Cell{string(status), statusColor(status), false}
		if kept.Paused {
			word.Text += ", paused"
		}
		polled := Cell{"never", Red, false}
		if kept.AttemptedAt != nil {
			seconds := max(0, int64(all.Time.Sub(*kept.AttemptedAt).Seconds()))
			polled = Cell{Age(&seconds) + " ago", Dim, false}
		}
		if kept.Stale {
			polled.Text, polled.Color = polled.Text+", overdue", Red
		}
		rows = append(rows, []Cell{{name, Plain, false}, word, {replicas, Plain, true}, {Number(lag), Plain, true}, {Age(age), Plain, true}, polled})
	}
	for _, p := range all.Processors {
		row(p.Name, p.Status, Replicas(p.DesiredReplicas, p.Direction), p.Lag, p.ChangeAgeSeconds, p.Kept)
	}
	for _, g := range all.Groups {
		row("group "+g.Name, g.Status, Replicas(g.DesiredReplicas, g.Direction), g.Lag, g.ChangeAgeSeconds, g.Kept)
	}
	return rows
}

// writeThroughput says of each container, once, what it has, what it needs and what that costs.
func writeThroughput(b *strings.Builder, all report.List, style Style) {
	var containers []report.Throughput
	for _, p := range all.Processors {
		for _, t := range p.Throughput {
			if !slices.ContainsFunc(containers, func(c report.Throughput) bool { return c.Account == t.Account && c.Container == t.Container }) {
				containers = append(containers, t)
			}
		}
	}
	if len(containers) > 0 {
		b.WriteString("\n")
	}
	for _, t := range containers {
		style.sentence(b, "Throughput of "+t.Container, Bold, ": "+throughputHeadline(t)+".")
		if why := t.Why(); why != "" {
			style.sentence(b, "  ", Plain, oneLine(why))
		}
		if t.Bill.Hours > 0 {
			style.sentence(b, "  ", Plain, throughputBill(t))
		}
	}
}

// sentence writes a text of which the beginning is in a color.
func (s Style) sentence(b *strings.Builder, beginning, color, rest string) {
	b.WriteString(s.wrapLines(s.Paint(beginning, color) + rest + "\n"))
}

// WriteScreen prints a text in place of what a terminal of so many lines shows; 0 = it does not say. What
// does not fit is counted.
func WriteScreen(w io.Writer, text string, height int) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := height - 2; height > 2 && len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("… %d more lines", len(lines)-most))
	}
	const toTheTop, restOfLine, restOfScreen = "\x1b[H", "\x1b[K", "\x1b[J"
	_, err := io.WriteString(w, toTheTop+strings.Join(lines, restOfLine+"\n")+restOfLine+"\n"+restOfScreen)
	return err
}
