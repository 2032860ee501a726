package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// Poll is one tick over every processor, printed. Standard output is kept for the result: events and
// the log go to standard error.
func Poll() Command {
	return Command{"poll", "poll every processor once and print the result", poll}
}

func poll(ctx context.Context, env Env, args []string) error {
	f := NewFlags(env, "poll", "[--config FILE] [--output table|json] [--partitions] [--explain] [--dry-run]")
	file := f.String("config", "", "the processors file")
	output := f.String("output", "table", "table or json")
	partitions := f.Bool("partitions", false, "a line for each partition, too, in the table; JSON always has them")
	explain := f.Bool("explain", false, "in place of the table, tell the steps of each decision")
	dryRun := f.Bool("dry-run", false, "write no state and publish nothing")
	if err := f.Parse(args); err != nil {
		return err
	}
	var mistakes flagMistakes
	mistakes.choice("output", *output, "table", "json")
	if *explain && (*output == "json" || *partitions) {
		mistakes.add("--explain takes the place of the table; it goes neither with --output json, which has all reasons, nor with --partitions")
	}
	if err := mistakes.refuse(env.Stderr, "poll"); err != nil {
		return err
	}
	c, err := configure(env, *file)
	if err != nil {
		return err
	}
	log := newLog(env.Stderr, c.Settings.LogLevel)
	a, err := app.New(c, app.Options{Log: log, EventLines: env.Stderr, ReadOnly: *dryRun, Version: env.Version, Now: env.Now})
	if errors.Is(err, boltstore.ErrInUse) && !*dryRun {
		err = fmt.Errorf("%w; or poll with --dry-run, which writes nothing", err)
	}
	if err != nil {
		return Usage(err)
	}
	result, tickErr := a.Poll(ctx, poller.Mode{All: true, DryRun: *dryRun})
	a.Close()
	switch {
	case *explain:
		err = console.WriteExplanations(env.Stdout, slices.Concat(result.Polled, result.Groups), *dryRun, env.Style())
	case *output == "json":
		err = console.WriteProcessorsJSON(env.Stdout, result.Polled, result.Groups)
	default:
		err = console.WriteProcessors(env.Stdout, result.Polled, result.Groups, *partitions, env.Style())
	}
	if err != nil {
		return err
	}
	if tickErr != nil {
		return tickErr
	}
	if !result.Complete() {
		return Incomplete(nil)
	}
	return nil
}
