package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// writeLeases prints one line for each processor of a lease container, what
// cannot be read of it, and the lines to paste into the processors file.
func writeLeases(w io.Writer, report leaseReport, colors bool) error {
	var b strings.Builder
	leases := 0
	for _, p := range report.Processors {
		leases += p.Partitions
	}
	fmt.Fprintf(&b, "%s in account %s: %d leases with %d prefixes (%.1f RU)\n", report.LeaseContainer, report.Account, leases, len(report.Processors), report.RequestCharge)
	if len(report.Processors) > 0 {
		b.WriteString("\n")
		writeRows(&b, leaseRows(report.Processors), colors, 0)
		writeUnread(&b, report.Processors, colors)
		if err := writeEntries(&b, report.Processors, colors); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func leaseRows(processors []foundProcessorReport) [][]cell {
	rows := [][]cell{{
		{"PROCESSOR", bold, false}, {"HOST", bold, false}, {"CONTAINER", bold, false}, {"FORMAT", bold, false}, {"MODE", bold, false},
		{"PARTITIONS", bold, true}, {"LIVE", bold, true}, {"NEWEST", bold, true}, {"OLDEST", bold, true}, {"OWNERS", bold, false},
	}}
	for _, p := range processors {
		name, host := unknown, p.Head
		if p.ProcessorName != nil {
			name, host = orDash(*p.ProcessorName), *p.AccountHost
		}
		live, list := owners(p)
		rows = append(rows, []cell{
			{name, plain, false},
			{orDash(host), plain, false},
			{p.Monitored, containerColor(p), false},
			{orDash(join(p.Formats)), plain, false},
			{orDash(join(p.Modes)), plain, false},
			{fmt.Sprint(p.Partitions), plain, true},
			{fmt.Sprintf("%d/%d", live, len(p.Owners)), plain, true},
			{age(p.NewestSeconds), plain, true},
			{age(p.OldestSeconds), plain, true},
			{list, dim, false},
		})
	}
	return rows
}

// containerColor is red where the container could not be found.
func containerColor(p foundProcessorReport) string {
	if p.ContainerID == nil {
		return red
	}
	return plain
}

// ownersShown is how many owners a line names.
const ownersShown = 5

// owners counts those that are live, and lists the first; of one that is not
// live, since when.
func owners(p foundProcessorReport) (live int, list string) {
	var names []string
	for _, o := range p.Owners {
		name := o.Name
		switch {
		case o.Live:
			live++
		case o.RenewedSeconds == nil:
			name += " (never seen)"
		default:
			name += " (gone for " + age(o.RenewedSeconds) + ")"
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

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func writeUnread(b *strings.Builder, processors []foundProcessorReport, colors bool) {
	for _, p := range processors {
		if p.Error != nil {
			b.WriteString(paint(p.Prefix+": ", red, colors) + *p.Error + "\n")
		}
		for _, l := range p.Unreadable {
			b.WriteString(paint("lease "+l.Lease+": ", red, colors) + l.Error + "\n")
		}
	}
}

// writeEntries prints the entries as YAML, with what is left to the user as
// comments. What cannot stand in the file as it is, is a comment too.
func writeEntries(b *strings.Builder, processors []foundProcessorReport, colors bool) error {
	b.WriteString("\n# for the processors file\n")
	for _, p := range processors {
		if p.Entry != nil {
			b.WriteString("processors:\n")
			break
		}
	}
	for _, p := range processors {
		if p.Note != nil {
			comment(b, p.Prefix+": "+*p.Note, colors)
		}
		switch {
		case p.Entry != nil:
			text, err := p.Entry.yaml()
			if err != nil {
				return err
			}
			b.WriteString(text)
		case p.draft != nil:
			text, err := p.draft.yaml()
			if err != nil {
				return err
			}
			comment(b, text, colors)
		}
	}
	return nil
}

func comment(b *strings.Builder, text string, colors bool) {
	for line := range strings.Lines(text) {
		b.WriteString(paint("# "+strings.TrimSuffix(line, "\n"), dim, colors) + "\n")
	}
}
