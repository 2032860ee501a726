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
	b.WriteString(style.wrapLines(fmt.Sprintf("%s in account %s: %s of %s (%.1f RU)\n", found.LeaseContainer, found.Account,
		leaseCount(found.Processors), report.Count(len(found.Processors), "processor"), found.RequestCharge)))
	if len(found.Processors) == 0 {
		return style.print(w, b.String())
	}
	b.WriteString("\n" + leaseTable(found.Processors, style) + "\n# for the processors file\n")
	if slices.ContainsFunc(found.Processors, func(p discover.Processor) bool { return p.Entry != nil }) {
		b.WriteString("processors:\n")
	}
	for _, p := range found.Processors {
		entry, err := entryText(p, style)
		if err != nil {
			return err
		}
		b.WriteString(entry)
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

// leaseTable is a line for each processor, and the leases that cannot be read.
func leaseTable(processors []discover.Processor, style Style) string {
	rows := [][]Cell{Head("PROCESSOR", "HOST", "CONTAINER", "FORMAT", "MODE", ">PARTITIONS", ">LIVE", ">NEWEST", ">OLDEST", "OWNERS")}
	problems := ""
	problem := func(what, why string) {
		problems += style.wrapLines(style.Paint(cut(printable(what), mostName)+": ", Red) + oneLine(why) + "\n")
	}
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
		if p.Error != nil {
			problem(p.Prefix, *p.Error)
		}
		for _, l := range p.Unreadable {
			problem("lease "+l.Lease, l.Error)
		}
	}
	style.Wrap = true
	return style.Table(rows, "MODE", "FORMAT", "OLDEST", "HOST", "NEWEST") + problems
}

// owners counts live owners, and lists the first five with the time since the others were live.
func owners(p discover.Processor) (live int, list string) {
	var names []string
	for _, o := range p.Owners {
		gone := ""
		switch {
		case o.Live:
			live++
		case o.RenewedSeconds == nil:
			gone = " (never seen)"
		default:
			gone = " (gone for " + report.Age(o.RenewedSeconds) + ")"
		}
		names = append(names, o.Name+gone)
	}
	if more := len(names) - 5; more > 0 {
		names = append(names[:5], fmt.Sprintf("%d more", more))
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

// entryText is an entry as YAML. What the user has to decide is a comment, and so is an incomplete
// entry.
func entryText(p discover.Processor, style Style) (note string, err error) {
	if p.Note != nil {
		note = comment(Style{Width: style.Width - len("# ")}.wrapLines(cut(p.Prefix, mostName)+": "+*p.Note), style)
	}
	entry := cmp.Or(p.Entry, p.Draft)
	if entry == nil {
		return note, nil
	}
	text, err := entry.YAML()
	if entry == p.Draft {
		text = comment(text, style)
	}
	return note + text, err
}

func comment(text string, style Style) (commented string) {
	for line := range strings.Lines(text) {
		commented += style.Paint("# "+cut(printable(strings.TrimSuffix(line, "\n")), mostText), Dim) + "\n"
	}
	return commented
}
