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
)

// Report is what `feedscale check --output json` prints. Every field is
// always present.
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
	Fix        *string  `json:"fix"`        // the command that mends it, or what to do; null where there is nothing to mend, or it is not known
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

// section is the lines about one target. Once one fails, those after it are
// skipped: they would fail for the same cause, which is to be said once.
type section struct {
	target     string
	processors []string
	lines      []Line
	cause      string // of what is skipped from now on; "" = none
	unhurried  bool   // a try may take all the time there is, since a budget makes it wait
}

// part is a section about something within the target, which is skipped for the
// same cause.
func (s *section) part(target string, processors []string) *section {
	return &section{target: target, processors: processors, cause: s.cause, unhurried: s.unhurried}
}

// stepTimeout bounds a try, so that what does not answer costs no more.
const stepTimeout = 10 * time.Second

// try adds what trying shows, unless something failed before or there is no time.
func (s *section) try(ctx context.Context, check string, run func(context.Context) finding) {
	switch {
	case s.cause != "":
		s.add(check, notTried("not tried, since %s", s.cause))
		return
	case ctx.Err() != nil:
		s.add(check, outOfTime(ctx))
		return
	}
	step := ctx
	if !s.unhurried {
		var cancel context.CancelFunc
		step, cancel = context.WithTimeout(ctx, stepTimeout)
		defer cancel()
	}
	found := run(step)
	switch deadline, bounded := ctx.Deadline(); {
	case found.status != Fail:
	case ctx.Err() != nil, bounded && !time.Now().Before(deadline): // the timer of ctx may be late
		found = outOfTime(ctx)
	default:
		s.cause = fmt.Sprintf("%s fails for %s", check, s.target)
	}
	s.add(check, found)
}

// tryAnyway tries also where something failed before.
func (s *section) tryAnyway(ctx context.Context, check string, run func(context.Context) finding) {
	before := s.cause
	s.cause = ""
	s.try(ctx, check, run)
	s.cause = cmp.Or(before, s.cause)
}

func outOfTime(ctx context.Context) finding {
	if errors.Is(ctx.Err(), context.Canceled) {
		return notTried("not tried, since the check was interrupted")
	}
	return notTried("not tried, since the time was over: raise --timeout")
}

func (s *section) add(check string, f finding) {
	line := Line{Target: s.target, Check: check, Status: f.status, Detail: strings.Join(strings.Fields(f.detail), " "), Processors: append([]string{}, s.processors...)}
	if f.fix != "" {
		line.Fix = &f.fix
	}
	s.lines = append(s.lines, line)
}

// inOrder runs tasks, at most so many at once, and returns their lines in the
// order of the tasks.
func inOrder(limit int, tasks []func() []Line) []Line {
	lines := make([][]Line, len(tasks))
	var running errgroup.Group
	running.SetLimit(limit)
	for i, task := range tasks {
		running.Go(func() error {
			lines[i] = task()
			return nil
		})
	}
	_ = running.Wait() // what fails is a line
	return slices.Concat(lines...)
}
