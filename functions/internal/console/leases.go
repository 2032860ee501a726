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

// WriteLeases prints a line for each processor of a lease container, the leases that cannot be
// read, and the entries for the processors file.
func WriteLeases(w io.Writer, found discover.Report, style Style) error {
	var b strings.Builder
	b.WriteString(style.wrapLines(fmt.Sprintf("%s in account %s: %s of %s (%.1f RU)\n", found.LeaseContainer, found.Account, leaseCount(found.Processors), report.Count(len(found.Processors), "processor"), found.RequestCharge)))
	if len(found.Processors) > 0 {
		b.WriteString("\n")
		writeLeaseTable(&b, found.Processors, style)
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

// writeLeaseTable writes a line for each processor, and the leases that cannot be read.
func writeLeaseTable(b *strings.Builder, processors []discover.Processor, style Style) {
	rows := [][]Cell{Head("PROCESSOR", "HOST", "CONTAINER", "FORMAT", "MODE", ">PARTITIONS", ">LIVE", ">NEWEST", ">OLDEST", "OWNERS")}
	for _, p := range processors {
		name, host := unknown, p.Head
		if p.ProcessorName != nil {
			name, host = cmp.Or(*p.ProcessorName, "-"), *p.AccountHost
		}
		live, list := owners(p)
		row := Row(name, cmp.Or(host, "-"), p.Monitored, cmp.Or(join(p.Formats), "-"), cmp.Or(join(p.Modes), "-"), fmt.Sprint(p.Partitions),
			fmt.Sprintf("%d/%d", live, len(p.Owners)), report.Age(p.NewestSeconds), report.Age(p.OldestSeconds), list)
		if p.ContainerID == nil { // not found
			row[2].Color = Red
		}
		row[9].Color = Dim
		rows = append(rows, row)
	}
	table := style
	table.Wrap = true
	b.WriteString(table.Table(rows, "MODE", "FORMAT", "OLDEST", "HOST", "NEWEST"))
	for _, p := range processors {
		if p.Error != nil {
			b.WriteString(style.wrapLines(style.Paint(cut(printable(p.Prefix), mostName)+": ", Red) + oneLine(*p.Error) + "\n"))
		}
		for _, l := range p.Unreadable {
			b.WriteString(style.wrapLines(style.Paint("lease "+cut(printable(l.Lease), mostName)+": ", Red) + oneLine(l.Error) + "\n"))
		}
	}
}

// ownersShown is how many owners a line names.
const ownersShown = 5

// owners counts live owners, and lists the first owners with the time since the others were live.
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

// writeEntry writes an entry as YAML. What the user has to decide is a comment, and so is an
// incomplete entry.
func writeEntry(b *strings.Builder, p discover.Processor, style Style) error {
	if p.Note != nil {
		comment(b, Style{Width: style.Width - len("# ")}.wrapLines(cut(p.Prefix, mostName)+": "+*p.Note), style)
	}
	entry := cmp.Or(p.Entry, p.Draft)
	if entry == nil {
		return nil
	}
	text, err := entry.YAML()
	if err != nil {
		return err
	}
	if entry == p.Entry {
		b.WriteString(text)
	} else {
		comment(b, text, style)
	}
	return nil
}

func comment(b *strings.Builder, text string, style Style) {
	for line := range strings.Lines(text) {
		b.WriteString(style.Paint("# "+cut(printable(strings.TrimSuffix(line, "\n")), mostText), Dim) + "\n")
	}
}
