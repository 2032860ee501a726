package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// showDemo runs feedscale on a world that is embedded: accounts, load, workers and a consumer of the
// scale events, which closes the loop.
func showDemo(env cli.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Short: "run a world of embedded processors under load",
		Example:     "feedscale demo\nfeedscale demo --duration 1m",
		Annotations: cli.Settings("FEEDSCALE_LISTEN", "FEEDSCALE_API_KEY", "NO_COLOR"),
	}
	duration := c.Flags().Duration("duration", 0, "end after this time; 0 = at Ctrl-C")
	c.RunE = func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), env, *duration) }
	return c
}

func runDemo(ctx context.Context, env cli.Env, duration time.Duration) error {
	if duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, duration)
		defer cancel()
	}
	s := &screen{env: env, started: env.Now(), said: make(map[string]int64), provisioned: make(map[string]int)}
	logs := env.Stderr
	if _, _, ok := env.Terminal(); ok {
		s.live = true
		logs = &s.troubles // a log must not tear the table apart
	}
	log := slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: cli.UTC}))
	var err error
	if s.world, err = demo.Start(ctx, demo.Options{Seed: uint64(env.Now().UnixNano()), Log: log}); err != nil {
		return err
	}
	defer func() {
		if err := s.world.Close(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(env.Stderr, "feedscale: %v\n", err)
		}
	}()
	env.Environ = demoEnviron(env, s.world)
	c, err := config.Read(config.Input{Environ: env.Environ, ReadFile: bounded.ReadFile})
	if err != nil {
		return cli.Usage(err)
	}
	if s.host, err = cli.Listen(env, c, slog.New(slog.NewJSONHandler(logs, &slog.HandlerOptions{Level: c.Settings.LogLevel, ReplaceAttr: cli.UTC}))); err != nil {
		return err
	}
	defer s.host.Close()
	return s.host.Serve(ctx, s.run)
}

// demoEnviron is the world's environment in place of the user's, of which only what concerns this
// process is kept. Where the usual port is taken, any is fine.
func demoEnviron(env cli.Env, world *demo.World) []string {
	environ := slices.DeleteFunc(slices.Clone(env.Environ), func(entry string) bool {
		return strings.HasPrefix(entry, "FEEDSCALE_") && !strings.HasPrefix(entry, "FEEDSCALE_LISTEN=") && !strings.HasPrefix(entry, "FEEDSCALE_API_KEY=")
	})
	if env.Getenv("FEEDSCALE_LISTEN") == "" {
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
	env      cli.Env
	live     bool // it is a terminal, on which the table stands still
	world    *demo.World
	host     *app.Host
	troubles lastLines // of the log, where there is a terminal
	started  time.Time
	said     map[string]int64 // last sequence that was told, by processor
	happened time.Time        // of the last happening that was told

	provisioned map[string]int // what was told last of a container's throughput
	history     []string       // the last lines that were told
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
	if s.live {
		fmt.Fprint(s.env.Stdout, "\x1b[?25l\x1b[2J") // no cursor, an empty screen
		defer fmt.Fprint(s.env.Stdout, "\x1b[?25h\nfeedscale: the demo ended\n")
	} else {
		fmt.Fprintf(s.env.Stdout, "feedscale demo: %s/api/dashboard shows the same in a browser; Ctrl-C ends it\n", s.host.URL())
	}
	var polled []state.State
	for tick := 0; ctx.Err() == nil; tick++ {
		result, err := s.host.Tick(ctx)
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
		s.redrawUntil(ctx, polled, s.host.Settings().Timer.Next(now))
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
			if s.live {
				s.draw(polled)
			}
		}
	}
}

// tell notes a line for each decision that was published, and for what happened
// to the partitions.
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
		s.say(fmt.Sprintf("%s  %-9s %2s → %-2d  %-11s lag %-5s %s", p.Decision.Time.Local().Format(time.TimeOnly), p.Processor, from, p.Decision.Replicas, r.Status, console.Number(r.Lag), report.Why(r.Reasons)))
	}
	for _, h := range s.world.Happenings() {
		if h.Time.After(s.happened) {
			s.happened = h.Time
			s.say(h.Time.Local().Format(time.TimeOnly) + "  " + h.Text)
		}
	}
}

// tellThroughput notes a line for each change of a container's throughput.
func (s *screen) tellThroughput(p state.State) {
	for _, t := range report.New(p).Throughput {
		if t.Desired != nil && t.Provisioned != nil && *t.Desired != *t.Provisioned && s.provisioned[t.Container] != *t.Desired {
			s.provisioned[t.Container] = *t.Desired
			s.say(fmt.Sprintf("%s  %-9s %s RU/s of %s  %s", p.AttemptedAt.Local().Format(time.TimeOnly), p.Processor, t.RUPerSecond(), t.Container, t.Why()))
		}
	}
}

// say tells a line: at once, or in the part of the screen that is for them.
func (s *screen) say(line string) {
	s.history = append(s.history, line)
	s.history = s.history[max(0, len(s.history)-historyKept):]
	if !s.live {
		fmt.Fprintln(s.env.Stdout, line)
	}
}

func (s *screen) show(polled []state.State, tick int) {
	switch {
	case s.live:
		s.draw(polled)
	case tick%summaryEvery == 0:
		fmt.Fprintf(s.env.Stdout, "%s\n", s.table(polled, console.Style{}))
	}
}

// table is what stands of each processor: what was decided, beside what its
// workers do.
func (s *screen) table(polled []state.State, style console.Style) string {
	services := make(map[string]demo.Service)
	for _, service := range s.world.Snapshot() {
		services[service.Name] = service
	}
	rows := [][]console.Cell{console.Head("PROCESSOR", "STATUS", ">LAG", ">AGE", ">CATCH-UP", ">REPLICAS", ">RUNNING", ">PARTITIONS", ">WRITTEN", ">DONE", ">RU", "WHY")}
	for _, p := range polled {
		r, service := report.New(p), services[p.Processor]
		rows = append(rows, []console.Cell{
			{Text: r.Name},
			console.StatusCell(r),
			{Text: console.Number(r.Lag), Right: true},
			{Text: console.Age(r.ChangeAgeSeconds), Right: true},
			{Text: console.CatchUp(p), Right: true},
			{Text: console.Replicas(r.DesiredReplicas, r.Direction), Right: true},
			{Text: fmt.Sprint(service.Replicas), Right: true},
			{Text: console.Partitions(r), Right: true},
			{Text: fmt.Sprint(service.Written), Color: console.Dim, Right: true},
			{Text: fmt.Sprint(service.Processed), Color: console.Dim, Right: true},
			{Text: fmt.Sprintf("%.1f", r.RequestCharge), Color: console.Dim, Right: true},
			{Text: report.Why(r.Reasons), Color: console.Dim},
		})
	}
	return style.Table(rows) + s.throughput(polled, style)
}

// throughput is a line below the table for each container that follows a processor.
func (s *screen) throughput(polled []state.State, style console.Style) string {
	var b strings.Builder
	for _, p := range polled {
		for _, t := range report.New(p).Throughput {
			b.WriteString(style.Cut(fmt.Sprintf("%s follows %s: %s RU/s  %s", t.Container, p.Processor, t.RUPerSecond(), t.Why())) + "\n")
		}
	}
	return b.String()
}

// draw paints the whole screen, line by line over what was there.
func (s *screen) draw(polled []state.State) {
	style := s.env.Style()
	var b strings.Builder
	b.WriteString(style.Paint("feedscale demo", console.Bold))
	fmt.Fprintf(&b, "  %s  %s/api/dashboard  Ctrl-C ends it\n\n", time.Since(s.started).Round(time.Second), s.host.URL())
	b.WriteString(s.table(polled, style))
	b.WriteString("\n" + style.Paint("what happened", console.Bold) + "\n")
	for _, line := range s.history {
		b.WriteString(style.Cut(line) + "\n")
	}
	for _, line := range s.troubles.lines() {
		b.WriteString(style.Paint(style.Cut(line), console.Red) + "\n")
	}
	screen := strings.ReplaceAll(b.String(), "\n", "\x1b[K\n")
	fmt.Fprint(s.env.Stdout, "\x1b[H"+screen+"\x1b[J")
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
