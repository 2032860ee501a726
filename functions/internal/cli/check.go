package cli

import (
	"context"
	"slices"
	"time"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
)

// Check tries every name and permission that the configuration needs, and says how to fix each
// problem. It sends no event. Kinds that can tell what else scales a target are asked.
func Check(kinds actions.Kinds) program.Command {
	return func(env program.Env, f *program.Flags) {
		f.Use, f.Short, f.GroupID = "check [NAME...]", "try every name and permission, and say how to fix each problem", program.GroupWork
		f.Example = "feedscale check\nfeedscale check --failed orders\nfeedscale check --output json | jq '.checks[] | select(.status == \"fail\")'"
		f.Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "NO_COLOR", "COLUMNS")
		o := checkOptions{timeout: time.Minute}
		configFlag(f, env, &o.file)
		f.Output(&o.output, "table", "json")
		f.BoolVar(&o.failures, "failed", false, "in the table, show only what fails or warns")
		program.Number(f, &o.timeout, "timeout", program.Durations, time.Nanosecond, time.Hour, "the time for all checks; if some were not tried by then, the exit status is 1")
		f.Run(func(ctx context.Context, names []string) error {
			o.names = names
			return runCheck(ctx, env, o, kinds)
		})
	}
}

type checkOptions struct {
	file, output string   // a file of "" is the one in the settings
	names        []string // of processors; none = all
	failures     bool
	timeout      time.Duration
}

func runCheck(ctx context.Context, env program.Env, o checkOptions, kinds actions.Kinds) error {
	write := func(found check.Report) error {
		return show(env, o.output, found, func() error { return console.WriteChecks(env.Stdout, found, o.failures, env.Style()) })
	}
	c, err := readNamed(env, o.file, o.names)
	if err != nil {
		if o.output == "json" {
			_ = write(check.Misconfigured(err)) // err is worse
		}
		return err
	}
	if len(o.names) > 0 {
		c.Processors = slices.DeleteFunc(c.Processors, func(p config.Processor) bool { return !slices.Contains(o.names, p.Name) })
		c.Groups = slices.DeleteFunc(c.Groups, func(g config.Group) bool {
			return !slices.ContainsFunc(c.Processors, func(p config.Processor) bool { return p.Group == g.Name })
		})
	}
	trying, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	found, err := program.Await(ctx, env, "the answers to the checks", func(func(string)) (check.Report, error) {
		return misused(check.Run(trying, c, kinds))
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	if wrong := write(found); wrong != nil {
		return wrong
	}
	return program.Completed(found.OK, err)
}
