package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// check tries every name and permission that the configuration needs, and
// prints of each whether it holds and what mends it. It sends no event.
func (p program) check(ctx context.Context, args []string) int {
	f := p.flags("check", "[--config FILE] [--output table|json] [--timeout 60s]")
	file := f.String("config", "", "the processors file")
	output := f.String("output", "table", "table or json")
	timeout := f.Duration("timeout", time.Minute, "what was not tried by then is skipped, and does not count as holding")
	if status, done := p.parse(f, args); done {
		return status
	}
	var mistakes flagMistakes
	mistakes.choice("output", *output, "table", "json")
	if *timeout <= 0 {
		mistakes.add("--timeout is %s; allowed are durations above 0, such as 60s", *timeout)
	}
	if p.refuse("check", mistakes) {
		return exitUsage
	}
	c, err := config.Read(config.Input{Environ: p.environ, File: *file, ReadFile: os.ReadFile})
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		if *output == "json" {
			if err := writeJSON(p.stdout, misconfigured(err)); err != nil {
				return p.fail(exitUsage, err)
			}
		}
		return exitUsage
	}
	checker, err := newChecker(c, p.getenv)
	if err != nil {
		return p.fail(exitUsage, err)
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	report := checker.run(ctx)
	if err := p.printChecks(*output, report); err != nil {
		return p.fail(exitIncomplete, err)
	}
	if !report.OK {
		return exitIncomplete
	}
	return exitOK
}

// misconfigured reports a configuration that cannot be tried: a line for each
// mistake in it.
func misconfigured(mistakes error) checkReport {
	settings := checkSection{target: "configuration"}
	for mistake := range strings.Lines(mistakes.Error()) {
		settings.add("settings", bad("", "%s", mistake))
	}
	return checkReport{Checks: settings.lines}
}

func (p program) printChecks(output string, report checkReport) error {
	if output == "table" {
		return writeChecks(p.stdout, report, colored(p.stdout, p.getenv("NO_COLOR")))
	}
	return writeJSON(p.stdout, report)
}

// checker tries a configuration. What several processors share is tried once.
type checker struct {
	config     config.Config
	getenv     func(string) string
	wiring     wiring
	endpoints  []*accountEndpoint
	processors []string // the names of all
}

// newChecker wires a configuration and makes no request.
func newChecker(c config.Config, getenv func(string) string) (*checker, error) {
	checker := &checker{
		config: c, getenv: getenv,
		wiring: wiring{accounts: make(map[accountKey]*cosmos.Account), identities: make(map[config.Identity]azcore.TokenCredential), settings: c.Settings},
	}
	for _, p := range c.Processors {
		checker.processors = append(checker.processors, p.Name)
		if err := checker.plan(p); err != nil {
			return nil, fmt.Errorf("processor %s: %w", p.Name, err)
		}
	}
	return checker, nil
}

// run tries everything and returns the lines in the order of the configuration.
func (c *checker) run(ctx context.Context) checkReport {
	settings := checkSection{target: c.config.Source, processors: c.processors}
	settings.add("settings", good("no mistakes, %d processors", len(c.processors)))

	var tasks []func() []checkLine
	for _, e := range c.endpoints {
		tasks = append(tasks, func() []checkLine { return c.checkEndpoint(ctx, e) })
	}
	tasks = append(tasks,
		func() []checkLine { return c.checkState(ctx) },
		func() []checkLine { return c.checkEvents(ctx) },
	)
	report := checkReport{Checks: append(settings.lines, inOrder(c.config.Settings.Concurrency, tasks)...), OK: ctx.Err() == nil}
	for _, l := range report.Checks {
		report.OK = report.OK && l.Status != statusFail
	}
	return report
}
