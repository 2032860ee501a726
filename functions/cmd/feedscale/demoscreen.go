package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/state"
)

// demoScreen is what the screen of the demo shows beyond that of feedscale run.
type demoScreen struct {
	started  time.Time
	now      func() time.Time
	url      string
	keys     bool // are read
	world    *demo.World
	happened time.Time // of the last happening that was told
}

// Keys that end the demo. In raw mode the terminal sends no signal for Ctrl-C.
const (
	ctrlC     = 3
	ctrlSlash = 28 // Ctrl-\
	escape    = 27 // begins what an arrow, say, sends
)

// press does what keys are for, until there are no more: a digit switches the fault of that place. What
// begins with an escape is one key that means nothing here.
func (s *demoScreen) press(keys io.Reader, end context.CancelFunc) {
	chunk := make([]byte, 64)
	for {
		n, err := keys.Read(chunk)
		if err != nil {
			return
		}
		pressed, _, _ := strings.Cut(string(chunk[:n]), string(rune(escape)))
		for _, key := range pressed {
			if key == 'q' || key == ctrlC || key == ctrlSlash {
				end()
			}
			faults := s.world.Faults()
			if at := int(key - '1'); at >= 0 && at < len(faults) {
				_ = s.world.Switch(faults[at].Name, !faults[at].On) // it has the name
			}
		}
	}
}

// walk is the line with which another terminal works on this demo.
func (s *demoScreen) walk() string {
	port := ""
	if address := strings.TrimPrefix(s.url, "http://"); address != usualAddress {
		port = " " + strings.TrimPrefix(address, loopback)
	}
	return fmt.Sprintf(`eval "$(%s demo env%s)"`, os.Args[0], port)
}

func (s *demoScreen) head(style console.Style) []string {
	lines := []string{style.Paint(style.Cut(fmt.Sprintf("feedscale demo  %s  %s/api/dashboard", s.now().Sub(s.started).Round(time.Second), s.url)), console.Bold)}
	if s.keys {
		var parts []string
		for i, f := range s.world.Faults() {
			key := fmt.Sprintf("%d %s", i+1, f.Name)
			if f.On {
				key = style.Paint(key+"*", console.Yellow)
			}
			parts = append(parts, key)
		}
		lines = append(lines, strings.Join(append(parts, "q end"), " "))
	}
	return append(lines, "another terminal: "+s.walk(), "")
}

// table is what stands of each processor: what was decided, beside what its workers do; and below it a
// line for each container that follows one.
func (s *demoScreen) table(polled, groups []state.State, style console.Style) string {
	services := s.world.Snapshot()
	rows := console.ProcessorRows(polled, groups, false)
	for i, row := range rows {
		cells := console.Head(">WRITTEN", ">DONE", ">RUNNING")
		if at := slices.IndexFunc(services, func(service demo.Service) bool { return service.Name == row[0].Text }); i > 0 {
			cells = make([]console.Cell, 3)
			if at >= 0 {
				count := func(n any, color string) console.Cell {
					return console.Cell{Text: fmt.Sprint(n), Color: color, Right: true}
				}
				of := services[at]
				cells = []console.Cell{count(of.Written, console.Dim), count(of.Processed, console.Dim), count(of.Replicas, console.Plain)}
			}
		}
		row = slices.Insert(row, len(row)-2, cells[:2]...) // before RU
		rows[i] = slices.Insert(row, 6, cells[2])          // after REPLICAS
	}
	return console.ProcessorTable(rows, style)
}

// foot says what to watch, once something is broken.
func (s *demoScreen) foot(style console.Style) []string {
	lines := []string{style.Paint(style.Cut("LAG pending, ? unknown and never zero; REPLICAS decided; RUNNING now; PARTITIONS with lag, of all"), console.Dim)}
	if watch := s.world.Watch(); watch != "" {
		for line := range strings.Lines(console.Wrap("watch "+watch, "", style.Width)) {
			lines = append(lines, style.Paint(strings.TrimSuffix(line, "\n"), console.Yellow))
		}
	}
	return lines
}

// more tells what happened to the world.
func (s *demoScreen) more() string {
	var b strings.Builder
	for _, h := range s.world.Happenings() {
		if h.Time.After(s.happened) {
			s.happened = h.Time
			fmt.Fprintf(&b, "%s  %s\n", cli.Clock(h.Time), h.Text)
		}
	}
	return b.String()
}
