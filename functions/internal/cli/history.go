package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// History prints what was measured and decided of one processor.
func History(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "history NAME", Short: "chart what was measured and decided of a processor",
		Example:     "feedscale history orders\nfeedscale history orders --since 168h --output csv > orders.csv",
		Annotations: Settings("FEEDSCALE_STATE", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs, ValidArgsFunction: processorNames(env, new(string)),
	}
	since := c.Flags().Duration("since", 24*time.Hour, "how far to look back")
	output := addOutput(c, "chart", "json", "csv")
	c.RunE = func(c *cobra.Command, names []string) error {
		var mistakes flagMistakes
		if len(names) == 0 {
			mistakes.add("the name of a processor is missing, as in feedscale history orders")
		} else if len(names) > 1 {
			mistakes.add("unexpected argument %q; one processor at a time", names[1])
		}
		if *since <= 0 {
			mistakes.add("--since is %s; allowed are durations above 0, such as 24h", *since)
		}
		mistakes.choice("output", *output, "chart", "json", "csv")
		if err := mistakes.refuse(env.Stderr, "history"); err != nil {
			return err
		}
		return history(c.Context(), env, names[0], *since, *output)
	}
	return c
}

func history(ctx context.Context, env Env, name string, since time.Duration, output string) error {
	until := env.Now().UTC()
	samples, err := await(ctx, env, "the state", func() ([]state.Sample, error) {
		return recorded(ctx, env, name, since, until)
	})
	if err != nil {
		return unreadable(err)
	}
	switch output {
	case "json":
		return console.WriteJSON(env.Stdout, report.History{Processor: name, Samples: samples})
	case "csv":
		return console.WriteSamplesCSV(env.Stdout, samples)
	default:
		return console.History{Processor: name, Samples: samples, From: until.Add(-since), Until: until}.Write(env.Stdout, env.Style())
	}
}

// recorded reads what is recorded of a processor, which is something.
func recorded(ctx context.Context, env Env, name string, since time.Duration, until time.Time) ([]state.Sample, error) {
	settings, err := settings(env)
	if err != nil {
		return nil, err
	}
	connections := connect.New(settings)
	connections.Asking = env.asking
	samples, err := connections.History(ctx, name, until.Add(-since), until)
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("nothing is recorded of processor %q in the last %s: is the name right, "+
			"does FEEDSCALE_STATE name the state of the poller, and has it polled?", name, console.Brief(since))
	}
	return samples, err
}
