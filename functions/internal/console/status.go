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

// differing is how many processors without a common cause are shown, unless all are asked for.
const differing = 20

// WriteStatus prints the common causes of failures; a line for each processor and group, by default
// the worst first; the findings of each with their remedies; and the throughput. Of more than 20
// processors, it shows the first 20 without a common cause, unless the listing asks for all.
func WriteStatus(w io.Writer, all report.List, l Listing, style Style) error {
	all = arranged(all, l)
	explained := explainedBy(all.Causes)
	var causes, below strings.Builder
	for _, c := range all.Causes {
		if c.Shared {
			fmt.Fprintf(&causes, "%s.\n  %s\n", style.Paint(oneLine(c.Sentence), Bold), style.remedy(oneLine(c.Remedy), "causes"))
		}
	}
	if causes.Len() > 0 {
		causes.WriteString("\n")
	}
	total := len(all.Processors)
	if !l.All && total > differing {
		all.Processors = slices.DeleteFunc(slices.Clone(all.Processors), func(p report.StoredProcessor) bool {
			return explained[p.Name] && !slices.ContainsFunc(p.Findings, func(f report.Finding) bool { return f.Severity == report.Critical && !isCaused(f) })
		})
		all.Processors = all.Processors[:min(differing, len(all.Processors))]
	}
	if hidden := total - len(all.Processors); hidden > 0 {
		fmt.Fprintf(&below, "%d more: --all\n", hidden)
	}
	for _, r := range all.Rows() {
		if explained[r.Name] {
			r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), isCaused)
		}
		if len(r.Findings) > 0 {
			below.WriteString("\n")
		}
		style.findings(&below, "", r.Name, r.Findings)
	}
	var containers []report.Throughput // each once
	for _, p := range all.Processors {
		for _, t := range p.Throughput {
			if !slices.ContainsFunc(containers, func(o report.Throughput) bool { return o.Account == t.Account && o.Container == t.Container }) {
				containers = append(containers, t)
			}
		}
	}
	if len(containers) > 0 {
		below.WriteString("\n")
	}
	style.throughput(&below, "", containers)
	return style.print(w, style.wrapLines(causes.String())+style.Table(statusRows(all), "POLLED", "AGE")+style.wrapLines(below.String()))
}

// explainedBy returns the names that a shared cause explains.
func explainedBy(causes []report.Cause) map[string]bool {
	names := make(map[string]bool)
	for _, c := range causes {
		for _, name := range c.Names {
			names[name] = names[name] || c.Shared && !c.Beside
		}
	}
	return names
}

// isCaused reports whether a common cause may explain a finding.
func isCaused(f report.Finding) bool {
	return f.Code == string(changefeed.StatusUnknown) || f.Code == report.Unpublished
}

// findings writes a sentence for each finding, after a name or, if that is "", after its code. A
// remedy that follows several findings is written once.
func (s Style) findings(b *strings.Builder, indent, name string, findings []report.Finding) {
	for i, f := range findings {
		fmt.Fprintf(b, "%s%s: %s\n", indent, s.Paint(cmp.Or(name, f.Code), Bold), ended(oneLine(f.Sentence)))
		if i == len(findings)-1 || findings[i+1].Remedy != f.Remedy {
			fmt.Fprintf(b, "%s  %s\n", indent, s.remedy(f.Remedy, f.Code))
		}
	}
}

// remedy is what to do, and the word that explains more.
func (s Style) remedy(do, word string) string {
	return s.Paint("Do:", Dim) + " " + do + ". More: feedscale explain " + word
}

// problem is a finding in the JSON of status.
type problem struct {
	Name string `json:"name"` // of the processor or group
	Kind string `json:"kind"`
	Says string `json:"says"`
	Do   string `json:"do"`
	Page string `json:"page"`
}

// WriteStatusJSON prints the answer of the API, with all findings as problems.
func WriteStatusJSON(w io.Writer, all report.List, l Listing) error {
	all = arranged(all, l)
	problems := []problem{}
	for _, r := range all.Rows() {
		for _, f := range r.Findings {
			problems = append(problems, problem{r.Name, f.Code, f.Sentence, f.Remedy, f.Page()})
		}
	}
	return WriteJSON(w, struct {
		report.List
		Problems []problem `json:"problems"`
	}{all, problems})
}

// arranged is the processors and groups of a listing, by default the worst first. An overdue
// processor sorts as unknown.
func arranged(all report.List, l Listing) report.List {
	l.Sort = cmp.Or(l.Sort, "status")
	all.Processors = Arrange(l, all.Processors, func(p report.StoredProcessor) report.Processor {
		if p.Stale {
			p.Status = changefeed.StatusUnknown
		}
		return p.Processor
	})
	if len(l.Statuses) > 0 {
		all.Groups = slices.DeleteFunc(slices.Clone(all.Groups), func(g report.StoredGroup) bool { return !slices.Contains(l.Statuses, g.Status) })
	}
	return all
}

func statusRows(all report.List) [][]Cell {
	rows := [][]Cell{Head("PROCESSOR", "STATUS", ">REPLICAS", ">LAG", ">AGE", "POLLED")}
	for _, r := range all.Rows() {
		name := r.Name
		if r.Group {
			name = "group " + name
		}
		cells := Row(name, string(r.Status), replicas(r.Subject), Number(r.Lag), report.Age(r.ChangeAgeSeconds), "never")
		cells[1].Color, cells[5].Color = statusColor(r.Status), Red
		if r.Paused {
			cells[1].Text += ", paused"
		}
		if r.AttemptedAt != nil {
			seconds := max(0, int64(all.Time.Sub(*r.AttemptedAt).Seconds()))
			cells[5] = Cell{report.Age(&seconds) + " ago", Dim}
		}
		if r.Stale {
			cells[5] = Cell{cells[5].Text + ", overdue", Red}
		}
		rows = append(rows, cells)
	}
	return rows
}
