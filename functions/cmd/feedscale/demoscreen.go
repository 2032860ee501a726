package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/state"
)

// demoScreen draws the demo in a terminal.
type demoScreen struct {
	started  time.Time
	now      func() time.Time
	url      string
	keys     bool // the terminal sends keys
	world    *demo.World
	happened time.Time // of the last happening that was printed
}

// endKeys end the demo: q, Ctrl-C and Ctrl-\, for which a terminal in raw mode sends no signal.
const endKeys = "q\x03\x1c"

// press reads keys until the input ends. A digit switches the fault of that number; q and Ctrl-C
// end the demo. Escape sequences, such as arrow keys, do nothing.
func (s *demoScreen) press(keys io.Reader, end context.CancelFunc) {
	chunk := make([]byte, 64)
	for {
		n, err := keys.Read(chunk)
		if err != nil {
			return
		}
		pressed, _, _ := strings.Cut(string(chunk[:n]), "\x1b")
		for _, key := range pressed {
			if strings.ContainsRune(endKeys, key) {
				end()
			}
			faults := s.world.Faults()
			if at := int(key - '1'); at >= 0 && at < len(faults) {
				_ = s.world.Switch(faults[at].Name, !faults[at].On) // the fault exists
			}
		}
	}
}

// walk is the command with which another terminal uses this demo.
func (s *demoScreen) walk() string {
	port := ""
	if address := strings.TrimPrefix(s.url, "http://"); address != usualAddress {
		port = " " + strings.TrimPrefix(address, loopback)
	}
	return fmt.Sprintf(`eval "$(%s demo env%s)"`, os.Args[0], port)
}

// view is the table of feedscale run, with the running workers, the keys, and what to watch while a
// fault is on.
func (s *demoScreen) view(polled, groups []state.State, style console.Style) (lines, foot []string) {
	lines = []string{style.Paint(style.Cut(fmt.Sprintf("feedscale demo  %s  %s/api/dashboard", s.now().Sub(s.started).Round(time.Second), s.url)), console.Bold)}
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
	lines = append(lines, "another terminal: "+s.walk(), "")
	lines = append(lines, program.Table(s.rows(polled, groups), style)...)
	foot = []string{style.Paint(style.Cut("LAG pending, ? unknown and never zero; REPLICAS decided; RUNNING now; PARTITIONS with lag, of all"), console.Dim)}
	if watch := s.world.Watch(); watch != "" {
		for line := range strings.SplitSeq(console.Wrap("watch "+watch, "", style.Width), "\n") {
			foot = append(foot, style.Paint(line, console.Yellow))
		}
	}
	return lines, foot
}

// rows adds the replicas of each service that are running.
func (s *demoScreen) rows(polled, groups []state.State) [][]console.Cell {
	running := make(map[string]string)
	for _, service := range s.world.Snapshot() {
		running[service.Name] = fmt.Sprint(service.Replicas)
	}
	rows := console.ProcessorRows(polled, groups, false)
	for i, row := range rows {
		cell := console.Cell{Text: running[row[0].Text]}
		if i == 0 {
			cell = console.Head(">RUNNING")[0]
		}
		rows[i] = slices.Insert(row, 6, cell) // after the column REPLICAS
	}
	return rows
}

// tell writes a line for each new happening in the world.
func (s *demoScreen) tell(w io.Writer) {
	for _, h := range s.world.Happenings() {
		if h.Time.After(s.happened) {
			s.happened = h.Time
			fmt.Fprintf(w, "%s  %s\n", program.Clock(h.Time), h.Text)
		}
	}
}
