package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// checkReport is what `feedscale check --output json` prints. Every field is
// always present.
type checkReport struct {
	Checks []checkLine `json:"checks"`
	OK     bool        `json:"ok"` // nothing fails, and nothing was left out for lack of time
}

// checkLine is one thing that was tried.
type checkLine struct {
	Target     string      `json:"target"`
	Check      string      `json:"check"`
	Status     checkStatus `json:"status"`
	Detail     string      `json:"detail"`
	Fix        *string     `json:"fix"`        // the command that mends it, or what to do; null where there is nothing to mend, or it is not known
	Processors []string    `json:"processors"` // that depend on it
}

type checkStatus string

const (
	statusOK   checkStatus = "ok"
	statusFail checkStatus = "fail"
	statusSkip checkStatus = "skip" // not tried, or nothing there to try
)

// finding is what trying something showed.
type finding struct {
	status      checkStatus
	detail, fix string // fix "" = none
}

func good(format string, args ...any) finding {
	return finding{status: statusOK, detail: fmt.Sprintf(format, args...)}
}

func bad(fix, format string, args ...any) finding {
	return finding{status: statusFail, detail: fmt.Sprintf(format, args...), fix: fix}
}

func notTried(format string, args ...any) finding {
	return finding{status: statusSkip, detail: fmt.Sprintf(format, args...)}
}

// checkSection is the lines about one target. Once one fails, those after it are
// skipped: they would fail for the same cause, which is to be said once.
type checkSection struct {
	target     string
	processors []string
	lines      []checkLine
	cause      string // of what is skipped from now on; "" = none
	unhurried  bool   // a try may take all the time there is, since a budget makes it wait
}

// part is a section about something within the target, which is skipped for the
// same cause.
func (s *checkSection) part(target string, processors []string) *checkSection {
	return &checkSection{target: target, processors: processors, cause: s.cause, unhurried: s.unhurried}
}

// stepTimeout bounds a try, so that what does not answer costs no more.
const stepTimeout = 10 * time.Second

// try adds what trying shows, unless something failed before or there is no time.
func (s *checkSection) try(ctx context.Context, check string, run func(context.Context) finding) {
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
	if found.status == statusFail {
		if ctx.Err() != nil {
			found = outOfTime(ctx)
		}
		s.cause = fmt.Sprintf("%s fails for %s", check, s.target)
	}
	s.add(check, found)
}

// tryAnyway tries also where something failed before.
func (s *checkSection) tryAnyway(ctx context.Context, check string, run func(context.Context) finding) {
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

func (s *checkSection) add(check string, f finding) {
	line := checkLine{Target: s.target, Check: check, Status: f.status, Detail: oneLine(f.detail), Processors: append([]string{}, s.processors...)}
	if f.fix != "" {
		line.Fix = &f.fix
	}
	s.lines = append(s.lines, line)
}

// inOrder runs tasks, at most so many at once, and returns their lines in the
// order of the tasks.
func inOrder(limit int, tasks []func() []checkLine) []checkLine {
	lines := make([][]checkLine, len(tasks))
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

// processorsShown is how many processors the table names below what fails.
const processorsShown = 5

// writeChecks prints one line for each check, and below one that fails who
// depends on it and what mends it.
func writeChecks(w io.Writer, report checkReport, colors bool) error {
	rows := [][]cell{{{"STATUS", bold, false}, {"TARGET", bold, false}, {"CHECK", bold, false}, {"DETAIL", bold, false}}}
	failed := 0
	for _, l := range report.Checks {
		rows = append(rows, []cell{{string(l.Status), checkColor(l.Status), false}, {l.Target, plain, false}, {l.Check, plain, false}, {l.Detail, dim, false}})
		if l.Status == statusFail {
			failed++
		}
	}
	var table, b strings.Builder
	writeRows(&table, rows, colors, 0)
	row := -1 // of the report; the first line is the heading
	for line := range strings.Lines(table.String()) {
		b.WriteString(line)
		if row >= 0 {
			writeRemedy(&b, report.Checks[row], colors)
		}
		row++
	}
	switch {
	case failed > 0:
		fmt.Fprintf(&b, "\n%d of %d checks fail\n", failed, len(report.Checks))
	case !report.OK:
		b.WriteString("\nnot everything was tried\n")
	default:
		b.WriteString("\neverything holds\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeRemedy(b *strings.Builder, l checkLine, colors bool) {
	if l.Status != statusFail {
		return
	}
	if names := l.Processors; len(names) > 0 {
		more := ""
		if len(names) > processorsShown {
			names, more = names[:processorsShown], fmt.Sprintf(" and %d more", len(names)-processorsShown)
		}
		b.WriteString("        " + paint("processors: ", dim, colors) + strings.Join(names, ", ") + more + "\n")
	}
	if l.Fix != nil {
		b.WriteString("        " + paint("fix: ", dim, colors) + paint(*l.Fix, bold, colors) + "\n")
	}
}

func checkColor(s checkStatus) string {
	switch s {
	case statusOK:
		return green
	case statusFail:
		return red
	default:
		return yellow
	}
}
