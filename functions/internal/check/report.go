package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/report"
)

// Report is what `feedscale check --output json` prints. Every field is always present.
type Report struct {
	Checks []Line `json:"checks"`
	OK     bool   `json:"ok"` // nothing fails, and nothing was left out for lack of time
}

// Line is one thing that was tried.
type Line struct {
	Target     string   `json:"target"`
	Check      string   `json:"check"`
	Status     Status   `json:"status"`
	Detail     string   `json:"detail"`
	Fix        *string  `json:"fix"`        // a command, or what to do; null if nothing is wrong, or it is not known
	Processors []string `json:"processors"` // that depend on it
}

// Status is how a try ended.
type Status string

// The statuses.
const (
	OK   Status = "ok"
	Warn Status = "warn" // works, and does not do what its user will expect
	Fail Status = "fail"
	Skip Status = "skip" // not tried, or nothing there to try
)

// finding is what trying something showed.
type finding struct {
	status      Status
	detail, fix string // fix "" = none
}

func good(format string, args ...any) finding {
	return finding{status: OK, detail: fmt.Sprintf(format, args...)}
}

func bad(fix, format string, args ...any) finding {
	return finding{status: Fail, detail: fmt.Sprintf(format, args...), fix: fix}
}

func doubtful(fix, format string, args ...any) finding {
	return finding{status: Warn, detail: fmt.Sprintf(format, args...), fix: fix}
}

func notTried(format string, args ...any) finding {
	return finding{status: Skip, detail: fmt.Sprintf(format, args...)}
}

// section is what is tried of one target, one step after the other. Once one fails, those after it are skipped,
// and so are the parts: they would fail for the same cause, which is to be said once.
type section struct {
	target     string
	processors []string
	steps      []step
	parts      []*section // within the target; tried after the steps, at once
	unhurried  bool       // a step may take all the time there is, since a budget makes it wait

	key any        // among the parts of another section
	who *principal // that signs in, filled by the step that tries it; nil where nobody signs in
}

// step is one thing that is tried. A finding without a status makes no line.
type step struct {
	check  string
	anyway bool // also if something failed before
	beside bool // its failure keeps nothing else from being tried
	try    func(context.Context) finding
}

// try adds a step.
func (s *section) try(check string, try func(context.Context) finding) {
	s.steps = append(s.steps, step{check: check, try: try})
}

// holds adds a step that a service does not refuse.
func (s *section) holds(check, what string, probe func(context.Context) error) {
	s.try(check, func(ctx context.Context) finding { return holds(probe(ctx), *s.who, what) })
}

// child returns the part of a key, which it adds if there is none, and notes that a processor depends on it.
func (s *section) child(key any, target, processor string) (part *section, added bool) {
	i := slices.IndexFunc(s.parts, func(p *section) bool { return p.key == key })
	if added = i < 0; added {
		i = len(s.parts)
		s.parts = append(s.parts, &section{key: key, target: target, unhurried: s.unhurried, who: s.who})
	}
	part = s.parts[i]
	if n := len(part.processors); n == 0 || part.processors[n-1] != processor {
		part.processors = append(part.processors, processor)
	}
	return part, added
}

// stepTimeout bounds a try, so that what does not answer costs no more.
const stepTimeout = 10 * time.Second

// run returns the lines of the section and of its parts, of which so many are tried at once. cause is why nothing
// is tried; "" = it is.
func (s *section) run(ctx context.Context, limit int, cause string) (lines []Line) {
	for _, next := range s.steps {
		before := cause
		if next.anyway {
			before = ""
		}
		f := s.take(ctx, next, before)
		if f.status == Fail && !next.beside {
			cause = cmp.Or(cause, fmt.Sprintf("%s fails for %s", next.check, s.target))
		}
		if f.status != "" {
			lines = append(lines, s.line(next.check, f))
		}
	}
	return append(lines, runAll(ctx, limit, cause, s.parts)...)
}

// take tries a step, unless something failed before or there is no time.
func (s *section) take(ctx context.Context, next step, cause string) finding {
	switch {
	case cause != "":
		return notTried("not tried, since %s", cause)
	case ctx.Err() != nil:
		return outOfTime(ctx)
	}
	within := ctx
	if !s.unhurried {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, stepTimeout)
		defer cancel()
	}
	found := next.try(within)
	deadline, bounded := ctx.Deadline() // whose timer may be late
	if found.status == Fail && (ctx.Err() != nil || bounded && !time.Now().Before(deadline)) {
		return outOfTime(ctx)
	}
	return found
}

func outOfTime(ctx context.Context) finding {
	if errors.Is(ctx.Err(), context.Canceled) {
		return notTried("not tried, since the check was interrupted")
	}
	return notTried("not tried, since the time was over: raise --timeout")
}

func (s *section) line(check string, f finding) Line {
	return Line{
		Target: s.target, Check: check, Status: f.status, Detail: strings.Join(strings.Fields(f.detail), " "),
		Fix: report.Given(f.fix), Processors: append([]string{}, s.processors...),
	}
}

// runAll runs sections, at most so many at once, and returns their lines in the order of the sections.
func runAll(ctx context.Context, limit int, cause string, sections []*section) []Line {
	lines := make([][]Line, len(sections))
	var running errgroup.Group
	running.SetLimit(limit)
	for i, s := range sections {
		running.Go(func() error {
			lines[i] = s.run(ctx, limit, cause)
			return nil
		})
	}
	_ = running.Wait() // what fails is a line
	return slices.Concat(lines...)
}
