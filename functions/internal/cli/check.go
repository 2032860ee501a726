package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
)

// Check tries every name and permission that the configuration needs, and prints of each whether it
// holds and what mends it. It sends no event. Those of the kinds that can tell what else scales a
// target say so.
func Check(kinds actions.Kinds) Command {
	return func(env Env) *cobra.Command {
		c := &cobra.Command{
			Use: "check [NAME...]", Short: "try every name and permission, and say what mends what does not hold", GroupID: GroupWork,
			Args:        cobra.ArbitraryArgs,
			Example:     "feedscale check\nfeedscale check --failed orders\nfeedscale check --output json | jq '.checks[] | select(.status == \"fail\")'",
			Annotations: Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "NO_COLOR", "COLUMNS"),
		}
		f := flagsOf(c)
		o := checkOptions{timeout: time.Minute}
		f.file(&o.file)
		f.output(&o.output, "table", "json")
		f.BoolVar(&o.failures, "failed", false, "show what fails or warns, and nothing else, in the table")
		c.ValidArgsFunction = processorNames(env, &o.file)
		number(f, &o.timeout, "timeout", durations, time.Nanosecond, time.Hour, "what was not tried by then is skipped, and does not count as holding")
		c.RunE = func(c *cobra.Command, names []string) error {
			o.names = names
			if err := f.mistakes(); err != nil {
				return err
			}
			return runCheck(c.Context(), env, o, kinds)
		}
		return c
	}
}

type checkOptions struct {
	file, output string   // "" is the file of the settings
	names        []string // of processors; none = all
	failures     bool     // and nothing else
	timeout      time.Duration
}

func runCheck(ctx context.Context, env Env, o checkOptions, kinds actions.Kinds) error {
	write := func(found check.Report) error {
		if o.output == "json" {
			return console.WriteJSON(env.Stdout, found)
		}
		return console.WriteChecks(env.Stdout, found, o.failures, env.Style())
	}
	c, err := readConfig(env, o.file)
	if err != nil {
		if o.output == "json" {
			_ = write(check.Misconfigured(err)) // err is worse
		}
		return err
	}
	if len(o.names) > 0 {
		if err := known(c, o.names); err != nil {
			return err
		}
		c.Processors = slices.DeleteFunc(c.Processors, func(p config.Processor) bool { return !slices.Contains(o.names, p.Name) })
		c.Groups = slices.DeleteFunc(c.Groups, func(g config.Group) bool {
			return !slices.ContainsFunc(c.Processors, func(p config.Processor) bool { return p.Group == g.Name })
		})
	}
	trying, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	w := waitFor(env, func() string { return "the answers to the checks" })
	found, err := check.Run(trying, c, env.Getenv, kinds)
	w.end()
	if err != nil {
		return Usage(err)
	}
	if err := write(found); err != nil {
		return err
	}
	if err := w.interrupted(ctx); err != nil || found.OK {
		return err
	}
	return Incomplete(nil)
}
