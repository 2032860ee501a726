package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
)

// demo runs feedscale on a world that is embedded: accounts, load, workers and
// a consumer of the scale events, which closes the loop.
func (p program) demo(ctx context.Context, args []string) int {
	f := p.flags("demo", "[--duration TIME]")
	duration := f.Duration("duration", 0, "end after this time; 0 = at Ctrl-C")
	if status, done := p.parse(f, args); done {
		return status
	}
	if *duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *duration)
		defer cancel()
	}
	s := &screen{out: p.stdout, started: time.Now(), said: make(map[string]int64)}
	logs := p.stderr
	if f, ok := p.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.terminal, s.colors = f, colored(p.stdout, p.getenv("NO_COLOR"))
		logs = &s.troubles // a log must not tear the table apart
	}
	var err error
	s.world, err = demo.Start(ctx, demo.Options{Seed: uint64(time.Now().UnixNano()), Log: slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: utc}))})
	if err != nil {
		return p.fail(exitIncomplete, err)
	}
	defer func() {
		if err := s.world.Close(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(p.stderr, "feedscale: %v\n", err)
		}
	}()
	p.environ = p.demoEnviron(s.world)
	return p.host(ctx, "", logs, func(ctx context.Context, a *app, _ *http.ServeMux) (work func() error) {
		s.app = a
		return func() error { return s.run(ctx) }
	})
}

// demoEnviron is the world's environment in place of the user's, of which only
// what concerns this process is kept. Where the usual port is taken, any is fine.
func (p program) demoEnviron(world *demo.World) []string {
	environ := slices.DeleteFunc(slices.Clone(p.environ), func(entry string) bool {
		return strings.HasPrefix(entry, "FEEDSCALE_") && !strings.HasPrefix(entry, "FEEDSCALE_LISTEN=")
	})
	if p.getenv("FEEDSCALE_LISTEN") == "" {
		if probe, err := net.Listen("tcp", "127.0.0.1:7071"); err == nil {
			probe.Close()
		} else {
			environ = append(environ, "FEEDSCALE_LISTEN=127.0.0.1:0")
		}
	}
	return append(environ, append(world.Environ(), "FEEDSCALE_LOG_LEVEL=error")...)
}

// screen shows the world: a table that stands still in a terminal, and lines
// elsewhere.
type screen struct {
	out      io.Writer
	terminal *os.File // nil where there is none
	colors   bool
	world    *demo.World
	app      *app
	troubles lastLines // of the log, where there is a terminal
	started  time.Time
	said     map[string]int64 // last sequence that was told, by processor
	happened time.Time        // of the last happening that was told
	history  []string         // the last lines that were told
}

const (
	drawEvery    = 500 * time.Millisecond
	summaryEvery = 10 // seconds between two tables without a terminal
	historyKept  = 8
	troublesKept = 3
)

// run polls every second, as the timer of the demo says, and shows what comes
// of it, until ctx ends.
func (s *screen) run(ctx context.Context) error {
	if s.terminal != nil {
		fmt.Fprint(s.out, "\x1b[?25l\x1b[2J") // no cursor, an empty screen
		defer fmt.Fprint(s.out, "\x1b[?25h\nfeedscale: the demo ended\n")
	} else {
		fmt.Fprintf(s.out, "feedscale demo: %s/api/dashboard shows the same in a browser; Ctrl-C ends it\n", s.app.url)
	}
	var polled []state.State
	for tick := 0; ctx.Err() == nil; tick++ {
		result, err := s.app.tick(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		if len(result.Polled) > 0 {
			polled = result.Polled
		}
		s.tell(polled)
		s.show(polled, tick)
		now := time.Now()
		s.redrawUntil(ctx, polled, s.app.config.Settings.Timer.Next(now))
	}
	return nil
}

// redrawUntil keeps the counts of the workers moving between two polls.
func (s *screen) redrawUntil(ctx context.Context, polled []state.State, next time.Time) {
	redraw := time.NewTicker(drawEvery)
	defer redraw.Stop()
	due := time.NewTimer(time.Until(next))
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-due.C:
			return
		case <-redraw.C:
			if s.terminal != nil {
				s.draw(polled)
			}
		}
	}
}

// tell notes a line for each decision that was published, and for what happened
// to the partitions.
func (s *screen) tell(polled []state.State) {
	for _, p := range polled {
		if p.Published == nil || p.Sequence == s.said[p.Processor] {
			continue
		}
		s.said[p.Processor] = p.Sequence
		r := poller.NewReport(p)
		from := "-"
		if p.Decision.Previous != nil {
			from = fmt.Sprint(*p.Decision.Previous)
		}
		s.say(fmt.Sprintf("%s  %-9s %2s → %-2d  %-11s lag %-5s %s", p.Decision.Time.Local().Format(time.TimeOnly), p.Processor, from, p.Decision.Replicas, r.Status, number(r.Lag), why(r)))
	}
	for _, h := range s.world.Happenings() {
		if h.Time.After(s.happened) {
			s.happened = h.Time
			s.say(h.Time.Local().Format(time.TimeOnly) + "  " + h.Text)
		}
	}
}

// say tells a line: at once, or in the part of the screen that is for them.
func (s *screen) say(line string) {
	s.history = append(s.history, line)
	s.history = s.history[max(0, len(s.history)-historyKept):]
	if s.terminal == nil {
		fmt.Fprintln(s.out, line)
	}
}

func (s *screen) show(polled []state.State, tick int) {
	switch {
	case s.terminal != nil:
		s.draw(polled)
	case tick%summaryEvery == 0:
		fmt.Fprintf(s.out, "%s\n", s.table(polled, 0))
	}
}

// table is what stands of each processor: what was decided, beside what its
// workers do.
func (s *screen) table(polled []state.State, width int) string {
	services := make(map[string]demo.Service)
	for _, service := range s.world.Snapshot() {
		services[service.Name] = service
	}
	rows := [][]cell{{
		{"PROCESSOR", bold, false}, {"STATUS", bold, false}, {"LAG", bold, true}, {"AGE", bold, true}, {"CATCH-UP", bold, true}, {"REPLICAS", bold, true}, {"RUNNING", bold, true},
		{"PARTITIONS", bold, true}, {"WRITTEN", bold, true}, {"DONE", bold, true}, {"RU", bold, true}, {"WHY", bold, false},
	}}
	for _, p := range polled {
		r, service := poller.NewReport(p), services[p.Processor]
		rows = append(rows, []cell{
			{r.Name, plain, false},
			{string(r.Status), statusColor(r.Status), false},
			{number(r.Lag), plain, true},
			{age(r.ChangeAgeSeconds), plain, true},
			{catchUp(p), plain, true},
			{replicas(r), plain, true},
			{fmt.Sprint(service.Replicas), plain, true},
			{partitions(r), plain, true},
			{fmt.Sprint(service.Written), dim, true},
			{fmt.Sprint(service.Processed), dim, true},
			{fmt.Sprintf("%.1f", r.RequestCharge), dim, true},
			{why(r), dim, false},
		})
	}
	var b strings.Builder
	writeRows(&b, rows, s.colors, width)
	return b.String()
}

// draw paints the whole screen, line by line over what was there.
func (s *screen) draw(polled []state.State) {
	width, _, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil {
		width = 0
	}
	var b strings.Builder
	b.WriteString(paint("feedscale demo", bold, s.colors))
	fmt.Fprintf(&b, "  %s  %s/api/dashboard  Ctrl-C ends it\n\n", time.Since(s.started).Round(time.Second), s.app.url)
	b.WriteString(s.table(polled, width))
	b.WriteString("\n" + paint("what happened", bold, s.colors) + "\n")
	for _, line := range s.history {
		b.WriteString(cut(line, width) + "\n")
	}
	for _, line := range s.troubles.lines() {
		b.WriteString(paint(cut(line, width), red, s.colors) + "\n")
	}
	screen := strings.ReplaceAll(b.String(), "\n", "\x1b[K\n")
	fmt.Fprint(s.out, "\x1b[H"+screen+"\x1b[J")
}

// lastLines keeps the last lines that are written to it.
type lastLines struct {
	mu   sync.Mutex
	kept []string
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(p) {
		l.kept = append(l.kept, strings.TrimSpace(string(line)))
	}
	l.kept = l.kept[max(0, len(l.kept)-troublesKept):]
	return len(p), nil
}

func (l *lastLines) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.kept)
}
