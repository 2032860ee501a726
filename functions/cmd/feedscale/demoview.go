package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// view is the screen of the demo as values.
type view struct {
	since    time.Duration // the start
	url      string
	walk     string // what another terminal runs
	keys     bool   // are read
	polled   []state.State
	services []demo.Service
	faults   []demo.Fault
	watch    string
	history  []told
	trouble  string // that was logged last; "" = none of late
}

// On lines with fewer characters a happening is told in its short form, and on screens with fewer lines
// nothing is left empty.
const (
	longWidth  = 100
	roomHeight = 22
)

// lines are the screen, as many as fit at most, none of which is wider than the terminal. Of the lines,
// those about what happened give way.
func (v view) lines(style console.Style, height int) []string {
	var lines []string
	add := func(color string, texts ...string) {
		for _, text := range texts {
			lines = append(lines, style.Paint(text, color))
		}
	}
	empty := func() {
		if height >= roomHeight {
			lines = append(lines, "")
		}
	}
	add(console.Bold, style.Cut(fmt.Sprintf("feedscale demo  %s  %s/api/dashboard", v.since, v.url)))
	if v.keys {
		lines = append(lines, v.legend(style))
	}
	add(console.Plain, style.Cut("another terminal: "+v.walk))
	empty()
	table := v.table(style)
	lines = append(lines, table...)
	if height >= roomHeight {
		columns := slices.DeleteFunc([]string{"LAG pending, ? unknown and never zero", "REPLICAS decided", "RUNNING now", "PARTITIONS with lag, of all"}, func(says string) bool {
			column, _, _ := strings.Cut(says, " ")
			return !strings.Contains(table[0], column)
		})
		add(console.Dim, style.Cut(strings.Join(columns, "; ")))
	}
	if v.watch != "" {
		empty()
		for i, line := range strings.Split(console.Wrap("watch "+v.watch, "", style.Width), "\n") {
			if i < watchLines {
				add(console.Yellow, line)
			}
		}
	}
	empty()
	if height >= roomHeight {
		add(console.Bold, "what happened")
	}
	if v.trouble != "" {
		add(console.Red, style.Cut(v.trouble))
	}
	room := max(0, height-len(lines))
	for _, line := range v.history[max(0, len(v.history)-room):] {
		text := line.long
		if style.Width < longWidth {
			text = line.short
		}
		add(console.Plain, style.Cut(text))
	}
	return lines[:min(height, len(lines))]
}

// watchLines is how many lines what to watch has at most.
const watchLines = 3

// legend is the line of the keys. A star is at what is on.
func (v view) legend(style console.Style) string {
	var parts []string
	for i, f := range v.faults {
		key := fmt.Sprintf("%d %s", i+1, f.Name)
		if f.On {
			key = style.Paint(key+"*", console.Yellow)
		}
		parts = append(parts, key)
	}
	return strings.Join(append(parts, "q end"), " ")
}

// table is what stands of each processor: what was decided, beside what its workers do; and below it a
// line for each container that follows one.
func (v view) table(style console.Style) []string {
	rows := [][]console.Cell{console.Head("PROCESSOR", "STATUS", ">LAG", ">AGE", ">CATCH-UP", ">REPLICAS", ">RUNNING", ">PARTITIONS", ">WRITTEN", ">DONE", ">RU", "WHY")}
	for _, p := range v.polled {
		var service demo.Service
		if at := slices.IndexFunc(v.services, func(s demo.Service) bool { return s.Name == p.Processor }); at >= 0 {
			service = v.services[at]
		}
		count := func(n any, color string) console.Cell {
			return console.Cell{Text: fmt.Sprint(n), Color: color, Right: true}
		}
		row := console.ProcessorRow(p)
		written, done := count(service.Written, console.Dim), count(service.Processed, console.Dim)
		row = slices.Insert(row, len(row)-2, written, done)                                // before RU
		rows = append(rows, slices.Insert(row, 6, count(service.Replicas, console.Plain))) // after REPLICAS
	}
	table := style.Table(rows, "RU", "WRITTEN", "DONE", "CATCH-UP", "PARTITIONS", "AGE", "RUNNING")
	lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
	for _, p := range v.polled {
		for _, t := range report.New(p).Throughput {
			lines = append(lines, style.Cut(fmt.Sprintf("%s follows %s: %s RU/s  %s", t.Container, p.Processor, t.RUPerSecond(), t.Why())))
		}
	}
	return lines
}
