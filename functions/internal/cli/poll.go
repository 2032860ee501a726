package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// Poll is one tick over every processor, or those that are named, printed. Standard output is kept for
// the result: events and the log go to standard error.
func Poll(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "poll [NAME...]", Short: "poll processors once, whatever their schedule, and print the result",
		Example:     "feedscale poll --dry-run --explain orders\nfeedscale poll --dry-run --status stalled,unknown --partitions\nfeedscale poll --output json | jq '.processors[] | {name, lag, desiredReplicas}'",
		Annotations: Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_RU_BUDGET", "FEEDSCALE_TICK_TIMEOUT", "FEEDSCALE_LOG_LEVEL", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	p := pollFlags{file: addConfig(c), output: addOutput(c, "table", "json"), listing: addListing(c)}
	f := c.Flags()
	p.partitions = f.Bool("partitions", false, "a line for each partition, too, in the table; JSON always has them")
	p.explain = f.Bool("explain", false, "in place of the table, tell the steps of each decision")
	p.dryRun = f.Bool("dry-run", false, "write no state and publish nothing")
	c.ValidArgsFunction = processorNames(env, p.file)
	c.RunE = func(c *cobra.Command, names []string) error {
		var mistakes flagMistakes
		mistakes.choice("output", *p.output, "table", "json")
		if *p.explain && (*p.output == "json" || *p.partitions) {
			mistakes.add("--explain takes the place of the table; it goes neither with --output json, which has all reasons, nor with --partitions")
		}
		p.listing.check(&mistakes)
		if err := mistakes.refuse(env.Stderr, "poll"); err != nil {
			return err
		}
		return poll(c.Context(), env, p, names)
	}
	return c
}

type pollFlags struct {
	file, output                *string
	partitions, explain, dryRun *bool
	listing                     *listing
}

func poll(ctx context.Context, env Env, p pollFlags, names []string) error {
	c, err := configure(env, *p.file)
	if err != nil {
		return err
	}
	if err := known(c, names); err != nil {
		return err
	}
	person := *p.output == "table"
	log := newLog(env.Stderr, c.Settings.LogLevel)
	var notes bytes.Buffer // what is logged in place of the log, for a person to read below the table
	asSentences := person && env.Getenv("FEEDSCALE_LOG_LEVEL") == ""
	if asSentences {
		log = newLog(&notes, slog.LevelWarn)
	}
	var events bytes.Buffer // those of the setting stdout:, which do not precede the table
	lines := env.Stderr
	if person {
		lines = &events
	}
	a, err := app.New(c, app.Options{Log: log, EventLines: lines, ReadOnly: *p.dryRun, Asking: env.asking, Version: env.Version, Now: env.Now})
	if errors.Is(err, boltstore.ErrInUse) && !*p.dryRun {
		err = fmt.Errorf("%w; or poll with --dry-run, which writes nothing", err)
	}
	if err != nil {
		return Usage(err)
	}
	ahead := newAhead(c, names)
	quiet := env
	if !asSentences {
		quiet.ErrTerminal = nil // the log is there
	}
	wait := waitFor(quiet, ahead.String)
	result, tickErr := a.Poll(ctx, poller.Mode{All: true, Only: names, DryRun: *p.dryRun, Progress: ahead.advance})
	a.Close()
	wait.end()
	interrupted := wait.interrupted(ctx)
	if len(result.Polled) > 0 || interrupted == nil {
		if err := p.write(env, result); err != nil {
			return err
		}
	}
	if _, ok := env.errTerminal(); !ok { // a person has the table
		if _, err := env.Stderr.Write(events.Bytes()); err != nil {
			return err
		}
	}
	writeNotes(env.Stderr, notes.Bytes(), result.Polled)
	switch {
	case interrupted != nil:
		return interrupted
	case tickErr != nil:
		return tickErr
	case !result.Complete():
		return Incomplete(nil)
	}
	return nil
}

// write prints the result.
func (p pollFlags) write(env Env, result report.Tick) error {
	order := console.Listing{Sort: *p.listing.sort, Statuses: p.listing.statuses}
	if *p.output == "table" {
		order.Sort = cmp.Or(order.Sort, "status")
	}
	polled := console.Arrange(order, result.Polled, report.New)
	switch {
	case *p.explain:
		return console.WriteExplanations(env.Stdout, slices.Concat(polled, result.Groups), *p.dryRun, env.Style())
	case *p.output == "json":
		return console.WriteProcessorsJSON(env.Stdout, polled, result.Groups)
	default:
		return console.WriteProcessors(env.Stdout, polled, result.Groups, *p.partitions, env.Style())
	}
}

// known refuses names that no processor has.
func known(c config.Config, names []string) error {
	all := make([]string, len(c.Processors))
	for i, p := range c.Processors {
		all[i] = p.Name
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return Usage(fmt.Errorf("there is no processor %q%s", name, meant(config.Nearest(name, all))))
		}
	}
	return nil
}
