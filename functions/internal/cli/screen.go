package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// Screen shows what a process does: lines that stay and, on a terminal, a picture below them that is drawn
// over itself.
type Screen struct {
	Live bool // there is a terminal, and so a picture

	env            Env
	mu             sync.Mutex
	view           View
	drawn          int // lines of the picture on the terminal
	ticks          int
	polled, groups []state.State  // by the last poll of each
	provisioned    map[string]int // what was told last of a container's throughput
}

// View is what a Screen shows. The picture is Head, Table and Foot; one that is too high is cut above
// Foot. More is lines that are told with the next picture. What is nil is left out.
type View struct {
	Head, Foot func(style console.Style) []string
	Table      func(polled, groups []state.State, style console.Style) string
	More       func() string
}

const (
	drawEvery    = 500 * time.Millisecond
	summaryEvery = 10 // polls between two tables without a terminal

	// The size of a terminal that does not say it.
	usualWidth  = 80
	usualHeight = 24
)

// NewScreen makes the screen of a process. plain has it draw no picture.
func NewScreen(env Env, plain bool) *Screen {
	_, _, terminal := env.size()
	return &Screen{Live: terminal && !plain, env: env, provisioned: make(map[string]int)}
}

// Log logs to standard error. What would tear a picture there is a sentence above it.
func (s *Screen) Log(level slog.Level) *slog.Logger {
	if _, ok := s.env.errTerminal(); ok && s.Live {
		return newLog(sentences{to: s}, level)
	}
	return newLog(s.env.Stderr, level)
}

// Write writes lines above the picture.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(lines), s.draw(string(lines))
}

// Show has the screen show a view.
func (s *Screen) Show(v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = v
	_ = s.draw("")
}

// Follow polls as the timer of a host says, and shows what comes of it, until ctx ends.
func (s *Screen) Follow(ctx context.Context, h *app.Host) error {
	var drawing sync.WaitGroup
	defer drawing.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	drawing.Go(func() {
		redraw := time.NewTicker(drawEvery)
		defer redraw.Stop()
		for ; ctx.Err() == nil; s.redraw(report.Tick{}) {
			select {
			case <-redraw.C:
			case <-ctx.Done():
			}
		}
	})
	return h.TickForever(ctx, s.redraw)
}

// Close ends the picture, which stays.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drawn > 0 {
		fmt.Fprint(s.env.Stdout, "\r\nfeedscale: stopped\r\n")
	}
}

// redraw takes up what came of a tick, if anything did, and tells it.
func (s *Screen) redraw(result report.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines strings.Builder
	if len(result.Polled) > 0 {
		s.polled, s.groups = latest(s.polled, result.Polled), latest(s.groups, result.Groups)
		if !s.Live && s.ticks%summaryEvery == 0 {
			lines.WriteString(s.view.Table(s.polled, s.groups, console.Style{}))
		}
		s.ticks++
		for _, p := range slices.Concat(result.Polled, result.Groups) {
			s.tell(&lines, p)
		}
	}
	if s.view.More != nil {
		lines.WriteString(s.view.More())
	}
	_ = s.draw(lines.String()) // there is nobody to tell where this fails
}

// latest replaces the states of those that were polled.
func latest(states, polled []state.State) []state.State {
	for _, p := range polled {
		at := slices.IndexFunc(states, func(s state.State) bool { return s.Processor == p.Processor })
		if at < 0 {
			states = append(states, p)
		} else {
			states[at] = p
		}
	}
	return states
}

// tell writes a line for a decision that this poll published, and for each change of throughput.
func (s *Screen) tell(b *strings.Builder, p state.State) {
	at, r := Clock(p.AttemptedAt), report.New(p)
	for _, t := range r.Throughput {
		if t.Desired != nil && t.Provisioned != nil && *t.Desired != *t.Provisioned && s.provisioned[t.Container] != *t.Desired {
			s.provisioned[t.Container] = *t.Desired
			fmt.Fprintf(b, "%s  %-9s %s RU/s of %s  %s\n", at, p.Processor, t.RUPerSecond(), t.Container, t.Why())
		}
	}
	if p.Published == nil || p.Decision == nil || !p.Published.Time.Equal(p.AttemptedAt) {
		return
	}
	from := "-"
	if p.Decision.Previous != nil {
		from = fmt.Sprint(*p.Decision.Previous)
	}
	line := fmt.Sprintf("%s  %-9s %2s → %-2d  %-11s lag %-5s %s", at, p.Processor, from, p.Decision.Replicas, r.Status, console.Number(r.Lag), report.Why(r.Reasons))
	fmt.Fprintln(b, console.Wrap(line, "           ", s.env.Style().Width))
}

// Clock is a time of day as every line has it.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// draw writes lines in place of the picture, and the picture anew below them, as large as the terminal is
// now.
func (s *Screen) draw(lines string) error {
	if !s.Live {
		_, err := io.WriteString(console.Lines{Writer: s.env.Stdout}, lines)
		return err
	}
	var b strings.Builder
	b.WriteString("\r")
	if s.drawn > 1 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn-1)
	}
	if lines != "" {
		b.WriteString("\x1b[J")
		io.WriteString(console.Lines{Writer: &b}, lines)
	}
	picture := s.picture()
	for i, line := range picture {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("\x1b[2K" + line)
	}
	b.WriteString("\x1b[J")
	s.drawn = len(picture)
	_, err := io.WriteString(s.env.Stdout, strings.ReplaceAll(b.String(), "\n", "\r\n")) // keys may be read raw
	return err
}

// picture is what stands still, no line of which fills the terminal to its end.
func (s *Screen) picture() []string {
	_, height, _ := s.env.size()
	style := s.env.Style()
	style.Width, height = cmp.Or(style.Width, usualWidth)-1, cmp.Or(height, usualHeight)-1
	var head, foot []string
	if s.view.Head != nil {
		head = s.view.Head(style)
	}
	if s.view.Foot != nil {
		foot = s.view.Foot(style)
	}
	var table []string
	switch {
	case len(s.polled) > 0:
		table = strings.Split(strings.TrimSuffix(s.view.Table(s.polled, s.groups, style), "\n"), "\n")
	case s.view.Table != nil:
		table = []string{"waiting for the first poll"}
	}
	lines := append(head, table...)
	if room := max(1, height-len(foot)); len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("… %d more lines", len(lines)-room+1))
	}
	lines = append(lines, foot...)
	for i, line := range lines {
		lines[i] = style.Cut(line)
	}
	return lines[:min(len(lines), height)]
}
