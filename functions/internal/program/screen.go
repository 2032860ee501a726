package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// Screen shows what a process does: lines that stay and, on a terminal, a picture below them that
// is drawn again and again in the same place.
type Screen struct {
	Live bool // there is a picture

	env            Env
	mu             sync.Mutex
	view           View
	closed         bool
	drawn          int // lines of the picture on the terminal
	ticks          int
	polled, groups []state.State  // by the last poll of each
	provisioned    map[string]int // the RU/s of each container that a line last announced
}

// View makes the picture of what was polled so far: lines, of which as many are shown as there is
// room for, and a foot.
type View func(polled, groups []state.State, style console.Style) (lines, foot []string)

const (
	drawEvery    = 500 * time.Millisecond
	summaryEvery = 10 // polls between two pictures without a terminal

	// The size of a terminal that does not report it.
	usualWidth  = 80
	usualHeight = 24
)

// NewScreen makes the screen of a process. A plain screen draws no picture.
func NewScreen(env Env, plain bool) *Screen {
	_, _, terminal := size(env.Terminal)
	return &Screen{Live: terminal && !plain, env: env, provisioned: make(map[string]int)}
}

// Log logs to Stderr. If that is the terminal of the picture, its lines are text above the picture.
func (s *Screen) Log(level slog.Level) *slog.Logger {
	if s.Live && s.env.Person() {
		return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: level}))
	}
	return NewLog(s.env.Stderr, level)
}

// Write writes lines above the picture.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(lines), s.draw(string(lines))
}

// Show draws a view, and on a terminal again and again until Close.
func (s *Screen) Show(v View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view == nil && s.Live {
		time.AfterFunc(drawEvery, s.redraw)
	}
	s.view = v
	_ = s.draw("") // nobody could be told of an error
}

func (s *Screen) redraw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_ = s.draw("")
		time.AfterFunc(drawEvery, s.redraw)
	}
}

// Close ends the picture, which stays on the terminal.
func (s *Screen) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.drawn > 0 {
		fmt.Fprint(s.env.Stdout, "\r\nfeedscale: stopped\r\n")
	}
}

// Tick shows the result of a tick.
func (s *Screen) Tick(result report.Tick) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines strings.Builder
	if len(result.Polled) > 0 {
		s.polled, s.groups = latest(s.polled, result.Polled), latest(s.groups, result.Groups)
		if !s.Live && s.ticks%summaryEvery == 0 {
			picture, _ := s.view(s.polled, s.groups, console.Style{})
			lines.WriteString(strings.Join(picture, "\n") + "\n")
		}
		s.ticks++
	}
	for _, p := range slices.Concat(result.Polled, result.Groups) {
		s.tell(&lines, p)
	}
	_ = s.draw(lines.String()) // nobody could be told of an error
}

// latest replaces the states of the processors that were polled.
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

// tell writes a line for each change of throughput, and for a decision that this poll published.
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

// Clock is the time of day of a line, in UTC.
func Clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }

// draw replaces the picture by lines and, below them, a new picture.
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
		_, _ = io.WriteString(console.Lines{Writer: &b}, lines) // a Builder never fails
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
	_, err := io.WriteString(s.env.Stdout, strings.ReplaceAll(b.String(), "\n", "\r\n")) // a raw terminal needs both
	return err
}

// picture returns lines that are shorter than the terminal's.
func (s *Screen) picture() []string {
	if s.view == nil {
		return nil
	}
	_, height, _ := size(s.env.Terminal)
	style := s.env.Style()
	style.Width, height = cmp.Or(style.Width, usualWidth)-1, cmp.Or(height, usualHeight)-1
	lines, foot := s.view(s.polled, s.groups, style)
	if room := max(1, height-len(foot)); len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("… %d more lines", len(lines)-room+1))
	}
	lines = append(lines, foot...)
	for i, line := range lines {
		lines[i] = style.Cut(line)
	}
	return lines[:min(len(lines), height)]
}

// Table is console.ProcessorTable as lines of a View.
func Table(rows [][]console.Cell, style console.Style) []string {
	if len(rows) == 1 {
		return []string{"waiting for the first poll"}
	}
	return strings.Split(strings.TrimSuffix(console.ProcessorTable(rows, style), "\n"), "\n")
}

// Await runs work. If that takes longer than a second, a line on the terminal of Stderr says what
// is waited for, until work says something else. After a signal the error says so, and the value is
// what the work returned.
func Await[T any](ctx context.Context, env Env, what string, work func(say func(what string)) (T, error)) (T, error) {
	var said atomic.Value
	said.Store(what)
	ended := make(chan struct{})
	var showing sync.WaitGroup
	if env.Person() {
		showing.Go(func() {
			const wipe = "\r\x1b[K" // empties the line of the cursor (ECMA-48, EL)
			width, _, _ := size(env.ErrTerminal)
			for seconds := 1; ; seconds++ {
				select {
				case <-time.After(time.Second):
					line := fmt.Sprintf("waiting for %s, %ds; Ctrl-C ends it", said.Load(), seconds)
					env.draw(wipe + console.Style{Width: width}.Cut(line))
				case <-ended:
					if seconds > 1 {
						env.draw(wipe)
					}
					return
				}
			}
		})
	}
	value, err := work(func(what string) { said.Store(what) })
	close(ended)
	showing.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		err = fmt.Errorf("interrupted while waiting for %s", said.Load())
	}
	return value, err
}
