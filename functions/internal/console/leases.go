package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/report"
)

// WriteLeases prints one line for each processor of a lease container, what
// cannot be read of it, and the lines to paste into the processors file.
func WriteLeases(w io.Writer, found discover.Report, style Style) error {
	var b strings.Builder
	b.WriteString(style.wrapLines(fmt.Sprintf("%s in account %s: %s of %s (%.1f RU)\n", found.LeaseContainer, found.Account, leaseCount(found.Processors), report.Count(len(found.Processors), "processor"), found.RequestCharge)))
	if len(found.Processors) > 0 {
		rows := style
		rows.Wrap = true
		b.WriteString("\n" + rows.Table(leaseRows(found.Processors), "MODE", "FORMAT", "OLDEST", "HOST", "NEWEST"))
		writeUnread(&b, found.Processors, style)
		b.WriteString("\n# for the processors file\n")
		if slices.ContainsFunc(found.Processors, func(p discover.Processor) bool { return p.Entry != nil }) {
			b.WriteString("processors:\n")
		}
		for _, p := range found.Processors {
			if err := writeEntry(&b, p, style); err != nil {
				return err
			}
		}
	}
	return style.print(w, b.String())
}

func leaseCount(processors []discover.Processor) string {
	leases := 0
	for _, p := range processors {
		leases += p.Partitions
	}
	return report.Count(leases, "lease")
}

func leaseRows(processors []discover.Processor) [][]Cell {
	rows := [][]Cell{Head("PROCESSOR", "HOST", "CONTAINER", "FORMAT", "MODE", ">PARTITIONS", ">LIVE", ">NEWEST", ">OLDEST", "OWNERS")}
	for _, p := range processors {
		name, host := unknown, p.Head
		if p.ProcessorName != nil {
			name, host = cmp.Or(*p.ProcessorName, "-"), *p.AccountHost
		}
		live, list := owners(p)
		color := Plain
		if p.ContainerID == nil { // it could not be found
			color = Red
		}
		rows = append(rows, []Cell{
			{name, Plain, false},
			{cmp.Or(host, "-"), Plain, false},
			{p.Monitored, color, false},
			{cmp.Or(join(p.Formats), "-"), Plain, false},
			{cmp.Or(join(p.Modes), "-"), Plain, false},
			{fmt.Sprint(p.Partitions), Plain, true},
			{fmt.Sprintf("%d/%d", live, len(p.Owners)), Plain, true},
			{report.Age(p.NewestSeconds), Plain, true},
			{report.Age(p.OldestSeconds), Plain, true},
			{list, Dim, false},
		})
	}
	return rows
}

// ownersShown is how many owners a line names.
const ownersShown = 5

// owners counts those that are live, and lists the first; of one that is not
// live, since when.
func owners(p discover.Processor) (live int, list string) {
	var names []string
	for _, o := range p.Owners {
		name := o.Name
		switch {
		case o.Live:
			live++
		case o.RenewedSeconds == nil:
			name += " (never seen)"
		default:
			name += " (gone for " + report.Age(o.RenewedSeconds) + ")"
		}
		names = append(names, name)
	}
	if more := len(names) - ownersShown; more > 0 {
		names = append(names[:ownersShown], fmt.Sprintf("%d more", more))
	}
	return live, strings.Join(names, ", ")
}

func join[T changefeed.Format | string](values []T) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

func writeUnread(b *strings.Builder, processors []discover.Processor, style Style) {
	for _, p := range processors {
		if p.Error != nil {
			b.WriteString(style.wrapLines(style.Paint(cut(printable(p.Prefix), mostName)+": ", Red) + oneLine(*p.Error) + "\n"))
		}
		for _, l := range p.Unreadable {
			b.WriteString(style.wrapLines(style.Paint("lease "+cut(printable(l.Lease), mostName)+": ", Red) + oneLine(l.Error) + "\n"))
		}
	}
}

// writeEntry prints an entry as YAML, with what is left to the user as comments. What cannot stand in the
// file as it is, is a comment too.
func writeEntry(b *strings.Builder, p discover.Processor, style Style) error {
	if p.Note != nil {
		comment(b, Style{Width: style.Width - len("# ")}.wrapLines(cut(p.Prefix, mostName)+": "+*p.Note), style)
	}
	switch {
	case p.Entry != nil:
		text, err := p.Entry.YAML()
		if err != nil {
			return err
		}
		b.WriteString(text)
	case p.Draft != nil:
		text, err := p.Draft.YAML()
		if err != nil {
			return err
		}
		comment(b, text, style)
	}
	return nil
}

func comment(b *strings.Builder, text string, style Style) {
	for line := range strings.Lines(text) {
		b.WriteString(style.Paint("# "+cut(printable(strings.TrimSuffix(line, "\n")), mostText), Dim) + "\n")
	}
}
