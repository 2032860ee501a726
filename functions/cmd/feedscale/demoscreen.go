package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// screen shows the world: a picture that stands still in a terminal, and lines elsewhere.
type screen struct {
	env      cli.Env
	live     bool // it is a terminal, on which the picture stands still
	world    *demo.World
	host     *app.Host
	end      context.CancelFunc // of the demo
	keys     <-chan byte        // nil where none are read
	restore  func()             // gives the terminal back as it was; nil where it was not changed
	log      *slog.Logger
	trouble  lastTrouble // of the log, where there is a terminal
	started  time.Time
	said     map[string]int64 // last sequence that was told, by processor
	happened time.Time        // of the last happening that was told

	provisioned map[string]int // what was told last of a container's throughput
	history     []told         // what was told last
}

// told is a line about something that happened, and a short form of it.
type told struct{ long, short string }

const (
	drawEvery    = 500 * time.Millisecond
	summaryEvery = 10 // polls between two tables without a terminal
	historyKept  = 50
)

// run polls every second, as the timer of the demo says, and shows what comes of it, until ctx ends.
func (s *screen) run(ctx context.Context) error {
	if s.live {
		fmt.Fprint(s.env.Stdout, "\x1b[?25l\x1b[?7l\x1b[2J") // no cursor, lines do not wrap, an empty screen
		defer func() {
			fmt.Fprint(s.env.Stdout, "\x1b[?25h\x1b[?7h\r\n")
			if s.restore != nil {
				s.restore()
			}
			fmt.Fprintln(s.env.Stdout, "feedscale: the demo ended")
		}()
	} else {
		fmt.Fprintf(s.env.Stdout, "feedscale demo: %s/api/dashboard shows the same in a browser; Ctrl-C ends it\n", s.host.URL())
		fmt.Fprintf(s.env.Stdout, "in another terminal, %s has every command work on it\n", s.walk())
	}
	ticks := make(chan []state.State)
	var polling sync.WaitGroup
	polling.Go(func() {
		if s.restore != nil {
			defer s.restore() // a panic here ends the process without what others deferred
		}
		_ = s.host.TickForever(ctx, func(result report.Tick) { // which fails never
			if len(result.Polled) == 0 {
				return
			}
			select {
			case ticks <- result.Polled:
			case <-ctx.Done():
			}
		})
	})
	defer polling.Wait()
	redraw := time.NewTicker(drawEvery)
	defer redraw.Stop()
	var polled []state.State
	for tick := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case p := <-ticks:
			if polled = p; !s.live && tick%summaryEvery == 0 {
				fmt.Fprintf(s.env.Stdout, "%s\n", strings.Join(s.view(polled).table(console.Style{}), "\n"))
			}
			tick++
			s.tell(polled)
		case key := <-s.keys:
			s.press(key)
			s.tell(polled)
		case <-redraw.C:
		}
		if s.live {
			s.draw(polled)
		}
	}
}

// Keys that end the demo. In raw mode the terminal sends no signal for Ctrl-C.
const (
	ctrlC     = 3
	ctrlSlash = 28 // Ctrl-\
	escape    = 27 // begins what an arrow, say, sends
)

// press does what a key is for: a digit switches the fault of that place.
func (s *screen) press(key byte) {
	if key == 'q' || key == ctrlC || key == ctrlSlash {
		s.end()
		return
	}
	faults := s.world.Faults()
	if at := int(key) - '1'; at >= 0 && at < len(faults) {
		_ = s.world.Switch(faults[at].Name, !faults[at].On) // it has the name
	}
}

// readKeys reads keys until there are no more. What begins with an escape is one key that means nothing
// here.
func readKeys(from io.Reader) <-chan byte {
	keys := make(chan byte)
	go func() {
		chunk := make([]byte, 64)
		for {
			n, err := from.Read(chunk)
			if err != nil {
				return
			}
			for _, key := range chunk[:n] {
				if key == escape {
					break
				}
				keys <- key
			}
		}
	}()
	return keys
}

// tell notes a line for each decision that was published, and for what happened to the world.
func (s *screen) tell(polled []state.State) {
	for _, p := range polled {
		s.tellThroughput(p)
		if p.Published == nil || p.Sequence == s.said[p.Processor] {
			continue
		}
		s.said[p.Processor] = p.Sequence
		r := report.New(p)
		from := "-"
		if p.Decision.Previous != nil {
			from = fmt.Sprint(*p.Decision.Previous)
		}
		at, why := p.Decision.Time.Local().Format(time.TimeOnly), report.Why(r.Reasons)
		s.say(told{
			fmt.Sprintf("%s  %-9s %2s → %-2d  %-11s lag %-5s %s", at, p.Processor, from, p.Decision.Replicas, r.Status, console.Number(r.Lag), why),
			fmt.Sprintf("%s %s %s → %d  %s", at, p.Processor, from, p.Decision.Replicas, why),
		})
	}
	for _, h := range s.world.Happenings() {
		if h.Time.After(s.happened) {
			s.happened = h.Time
			at := h.Time.Local().Format(time.TimeOnly)
			s.say(told{at + "  " + h.Text, at + " " + h.Text})
		}
	}
}

// tellThroughput notes a line for each change of a container's throughput.
func (s *screen) tellThroughput(p state.State) {
	for _, t := range report.New(p).Throughput {
		if t.Desired != nil && t.Provisioned != nil && *t.Desired != *t.Provisioned && s.provisioned[t.Container] != *t.Desired {
			s.provisioned[t.Container] = *t.Desired
			at := p.AttemptedAt.Local().Format(time.TimeOnly)
			s.say(told{
				fmt.Sprintf("%s  %-9s %s RU/s of %s  %s", at, p.Processor, t.RUPerSecond(), t.Container, t.Why()),
				fmt.Sprintf("%s %s: %s RU/s", at, t.Container, t.RUPerSecond()),
			})
		}
	}
}

// say tells a line: at once, or in the part of the screen that is for them.
func (s *screen) say(line told) {
	s.history = append(s.history, line)
	s.history = s.history[max(0, len(s.history)-historyKept):]
	if !s.live {
		fmt.Fprintln(s.env.Stdout, line.long)
	}
}

// walk is the line with which another terminal works on this demo.
func (s *screen) walk() string {
	port := ""
	if address := strings.TrimPrefix(s.host.URL(), "http://"); address != usualAddress {
		if port = " " + address; strings.HasPrefix(address, loopback) {
			port = " " + strings.TrimPrefix(address, loopback)
		}
	}
	return fmt.Sprintf(`eval "$(%s demo env%s)"`, os.Args[0], port)
}

// view is what there is to see now.
func (s *screen) view(polled []state.State) view {
	return view{
		since: time.Since(s.started).Round(time.Second), url: s.host.URL(), walk: s.walk(), keys: s.keys != nil,
		polled: polled, services: s.world.Snapshot(), faults: s.world.Faults(), watch: s.world.Watch(),
		history: s.history, trouble: s.trouble.shown(),
	}
}

// The size of a terminal that does not say it.
const (
	usualWidth  = 80
	usualHeight = 24
)

// draw paints the whole screen, line by line over what was there, as large as the terminal is now.
func (s *screen) draw(polled []state.State) {
	style := s.env.Style()
	_, height, _ := s.env.Terminal()
	style.Width, height = cmp.Or(style.Width, usualWidth), cmp.Or(height, usualHeight)
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := s.view(polled).lines(style, height)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[2K" + line) // erased first: behind a full line the cursor stands on its last character
	}
	if len(lines) < height {
		b.WriteString("\r\n\x1b[J")
	}
	fmt.Fprint(s.env.Stdout, b.String())
}

// lastTrouble keeps the last line that was logged, for a while.
type lastTrouble struct {
	mu   sync.Mutex
	text string
	at   time.Time
}

// troubleShown is how long a line of the log is shown.
const troubleShown = 10 * time.Second

func (l *lastTrouble) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text, l.at = strings.TrimSpace(string(line)), time.Now()
	return len(line), nil
}

func (l *lastTrouble) shown() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.at) > troubleShown {
		return ""
	}
	return l.text
}
