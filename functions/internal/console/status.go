package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// WriteStatus prints one line for each processor and group, the worst first, then the findings of each with
// their remedies, and what is said of the throughput.
func WriteStatus(w io.Writer, all report.List, style Style) error {
	all = worstFirst(all)
	var b strings.Builder
	b.WriteString(style.Table(statusRows(all), "POLLED", "AGE"))
	each(all, func(name string, findings []report.Finding) {
		if len(findings) > 0 {
			b.WriteString("\n")
		}
		style.findings(&b, "", name, findings)
	})
	writeThroughput(&b, all, style)
	return style.print(w, b.String())
}

// findings writes a sentence for each finding, which begins with a name or, where that is "", with its
// code. Findings of the same remedy have it once.
func (s Style) findings(b *strings.Builder, indent, name string, findings []report.Finding) {
	for i, f := range findings {
		end := "."
		if strings.HasSuffix(f.Sentence, "?") {
			end = "" // it asks whether a name was meant
		}
		s.sentence(b, indent, s.Paint(cmp.Or(name, f.Code), Bold)+": "+oneLine(f.Sentence)+end)
		if i == len(findings)-1 || findings[i+1].Remedy != f.Remedy {
			s.sentence(b, indent+"  ", s.Paint("Do:", Dim)+" "+f.Remedy+". "+f.Page())
		}
	}
}

// problem is a finding as the JSON of status lists it.
type problem struct {
	Name string `json:"name"` // of the processor or group
	Kind string `json:"kind"`
	Says string `json:"says"`
	Do   string `json:"do"`
	Page string `json:"page"`
}

// WriteStatusJSON prints the same as JSON: what the API answers, and the findings of all as problems.
func WriteStatusJSON(w io.Writer, all report.List) error {
	all = worstFirst(all)
	problems := []problem{}
	each(all, func(name string, findings []report.Finding) {
		for _, f := range findings {
			problems = append(problems, problem{name, f.Code, f.Sentence, f.Remedy, f.Page()})
		}
	})
	return WriteJSON(w, struct {
		report.List
		Problems []problem `json:"problems"`
	}{all, problems})
}

// each visits the findings of every processor and group.
func each(all report.List, visit func(name string, findings []report.Finding)) {
	for _, p := range all.Processors {
		visit(p.Name, p.Findings)
	}
	for _, g := range all.Groups {
		visit(g.Name, g.Findings)
	}
}

// worstFirst orders by status and lag: what was not polled for too long is as good as unknown.
func worstFirst(all report.List) report.List {
	all.Processors = Arrange(Listing{Sort: "status"}, all.Processors, func(p report.Stored) report.Processor {
		if p.Stale {
			p.Status = changefeed.StatusUnknown
		}
		return p.Processor
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
			polled = Cell{report.Age(&seconds) + " ago", Dim, false}
		}
		if kept.Stale {
			polled.Text, polled.Color = polled.Text+", overdue", Red
		}
		rows = append(rows, []Cell{{name, Plain, false}, word, {replicas, Plain, true}, {Number(lag), Plain, true}, {report.Age(age), Plain, true}, polled})
	}
	for _, p := range all.Processors {
		row(p.Name, p.Status, replicas(p.DesiredReplicas, p.Direction), p.Lag, p.ChangeAgeSeconds, p.Kept)
	}
	for _, g := range all.Groups {
		row("group "+g.Name, g.Status, replicas(g.DesiredReplicas, g.Direction), g.Lag, g.ChangeAgeSeconds, g.Kept)
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
		style.sentence(b, "", style.Paint("Throughput of "+t.Container, Bold)+": "+throughputHeadline(t)+".")
		if why := t.Why(); why != "" {
			style.sentence(b, "  ", oneLine(why))
		}
		if t.Bill.Hours > 0 {
			style.sentence(b, "  ", throughputBill(t))
		}
	}
}

// sentence writes a text on lines of their own.
func (s Style) sentence(b *strings.Builder, indent, text string) {
	b.WriteString(s.wrapLines(indent + text + "\n"))
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
