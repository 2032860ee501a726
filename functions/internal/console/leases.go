package console

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
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

// entryText is an entry as YAML, after what the user has to decide or write as a comment.
func entryText(p discover.Processor, style Style) (text string, err error) {
	if p.Note != nil {
		note := "# " + cut(oneLine(cut(p.Prefix, mostName)+": "+*p.Note), mostText)
		text = style.Paint(Wrap(note, "#   ", style.Width), Dim) + "\n"
	}
	if p.Entry == nil {
		return text, nil
	}
	entry, err := p.Entry.YAML()
	return text + entry, err
}

// WriteFound prints a line for each processor that was found in an account, and what was skipped.
func WriteFound(w io.Writer, found discover.Discovery, style Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "account %s: %s, %s: leases in %d of the %d that can hold them by the partition key (%.1f RU)\n",
		found.Account, report.Count(len(found.Databases), "database"), report.Count(found.Containers, "container"), len(found.Leases), found.Candidates, found.RequestCharge)
	for _, r := range found.Leases {
		fmt.Fprintf(&b, "\n%s: %s\n%s", style.Paint(printable(r.LeaseContainer), Bold), leaseCount(r.Processors), leaseTable(r.Processors, style))
	}
	if len(found.Skipped) > 0 {
		b.WriteString("\n")
	}
	for _, s := range found.Skipped {
		b.WriteString(style.wrapLines(fmt.Sprintf("%s %s: %s\n", style.Paint("skipped", Yellow), printable(s.What), oneLine(s.Why))))
	}
	return style.print(w, b.String())
}

// ProcessorsFile is the processors file for what was found. What a person has to decide is a
// comment.
func ProcessorsFile(found discover.Discovery, now time.Time) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# yaml-language-server: $schema=%s\n", config.SchemaURL)
	fmt.Fprintf(&b, `# Made by feedscale init at %s, from account %s. Every field:
# https://github.com/feedscale/feedscale/blob/main/docs/configure.md; the other pages are beside it.
#
# Decide for each processor:
# - who acts on its decisions, and its target, if that needs one: act.md
# - minReplicaCount, maxReplicaCount, changeFeedLagThreshold and sizing: tune.md
# - startFrom: beginning, if the application starts there, which no lease tells: lag.md
# - group, if several run in one deployment: configure.md
processors:
`, now.UTC().Format(time.RFC3339), found.Account)
	for _, r := range found.Leases {
		for _, p := range r.Processors {
			live, _ := owners(p)
			head := fmt.Sprintf("%s of %s in %s, %d of %s live", report.Count(p.Partitions, "lease"), p.Monitored, r.LeaseContainer, live, report.Count(len(p.Owners), "owner"))
			entry, err := entryText(p, Style{})
			if err != nil {
				return "", err
			}
			b.WriteString("\n# " + cut(oneLine(head), mostText) + "\n" + entry)
		}
	}
	return b.String(), nil
}
