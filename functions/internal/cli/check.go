package cli

import (
	"context"
	"fmt"
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
			Use: "check [NAME...]", Short: "try every name and permission, and say what mends what does not hold",
			Args:        cobra.ArbitraryArgs,
			Example:     "feedscale check\nfeedscale check --failed orders\nfeedscale check --output json | jq '.checks[] | select(.status == \"fail\")'",
			Annotations: Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "NO_COLOR", "COLUMNS"),
		}
		file := addConfig(c)
		output := addOutput(c, "table", "json")
		failures := c.Flags().Bool("failed", false, "show what fails or warns, and nothing else, in the table")
		c.ValidArgsFunction = processorNames(env, file)
		timeout := c.Flags().Duration("timeout", time.Minute, "what was not tried by then is skipped, and does not count as holding")
		c.RunE = func(c *cobra.Command, names []string) error {
			var mistakes flagMistakes
			mistakes.choice("output", *output, "table", "json")
			if *timeout <= 0 {
				mistakes.add("--timeout is %s; allowed are durations above 0, such as 60s", *timeout)
			}
			if err := mistakes.refuse(env.Stderr, "check"); err != nil {
				return err
			}
			return checkAll(c.Context(), env, checkChoice{*file, names, *output, *failures, *timeout}, kinds)
		}
		return c
	}
}

// checkChoice is what is checked, and how it is shown.
type checkChoice struct {
	file     string   // of processors; "" = that of the settings
	names    []string // of processors; none = all
	output   string
	failures bool
	timeout  time.Duration
}

func checkAll(ctx context.Context, env Env, choice checkChoice, kinds actions.Kinds) error {
	c, err := readConfig(env, choice.file)
	output := choice.output
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		if output == "json" {
			if err := console.WriteJSON(env.Stdout, check.Misconfigured(err)); err != nil {
				return Usage(err)
			}
		}
		return Usage(nil)
	}
	if len(choice.names) > 0 {
		if err := known(c, choice.names); err != nil {
			return err
		}
		c.Processors = slices.DeleteFunc(c.Processors, func(p config.Processor) bool { return !slices.Contains(choice.names, p.Name) })
		c.Groups = slices.DeleteFunc(c.Groups, func(g config.Group) bool {
			return !slices.ContainsFunc(c.Processors, func(p config.Processor) bool { return p.Group == g.Name })
		})
	}
	trying, cancel := context.WithTimeout(ctx, choice.timeout)
	defer cancel()
	w := waitFor(env, func() string { return "the answers to the checks" })
	found, err := check.Run(trying, c, env.Getenv, kinds)
	w.end()
	if err != nil {
		return Usage(err)
	}
	if output == "json" {
		err = console.WriteJSON(env.Stdout, found)
	} else {
		err = console.WriteChecks(env.Stdout, found, choice.failures, env.Style())
	}
	if err != nil {
		return err
	}
	if err := w.interrupted(ctx); err != nil {
		return err
	}
	if !found.OK {
		return Incomplete(nil)
	}
	return nil
}
