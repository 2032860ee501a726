package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

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
		Use: "poll [NAME...]", Short: "poll processors once, whatever their schedule, and print the result", GroupID: GroupWork,
		Example:     "feedscale poll --dry-run --explain orders\nfeedscale poll --dry-run --status stalled,unknown --partitions\nfeedscale poll --output json | jq '.processors[] | {name, lag, desiredReplicas}'",
		Annotations: Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_RU_BUDGET", "FEEDSCALE_TICK_TIMEOUT", "FEEDSCALE_LOG_LEVEL", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	f := flagsOf(c)
	var o pollOptions
	f.file(&o.file)
	f.output(&o.output, "table", "json")
	f.listing(&o.listing)
	f.BoolVar(&o.partitions, "partitions", false, "a line for each partition, too, in the table; JSON always has them")
	f.BoolVar(&o.explain, "explain", false, "in place of the table, tell the steps of each decision")
	f.BoolVar(&o.dryRun, "dry-run", false, "write no state and publish nothing")
	c.ValidArgsFunction = processorNames(env, &o.file)
	c.RunE = func(c *cobra.Command, names []string) error {
		f.mistake(o.explain && (o.output == "json" || o.partitions), "--explain takes the place of the table; it goes neither with --output json, which has all reasons, nor with --partitions")
		if err := f.mistakes(); err != nil {
			return err
		}
		return poll(c.Context(), env, o, names)
	}
	return c
}

type pollOptions struct {
	file, output                string
	partitions, explain, dryRun bool
	listing                     console.Listing
}

func poll(ctx context.Context, env Env, o pollOptions, names []string) error {
	c, err := readConfig(env, o.file)
	if err != nil {
		return err
	}
	if err := known(c, names); err != nil {
		return err
	}
	person := o.output == "table"
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
	a, err := app.New(c, app.Options{Log: log, EventLines: lines, ReadOnly: o.dryRun, Asking: env.asking, Version: env.Version, Now: env.Now})
	if errors.Is(err, boltstore.ErrInUse) && !o.dryRun {
		err = fmt.Errorf("%w; or poll with --dry-run, which writes nothing", err)
	}
	if err != nil {
		return Usage(err)
	}
	var decided atomic.Int64
	waitsFor := func() string {
		all := cmp.Or(len(names), len(c.Processors))
		return fmt.Sprintf("%d of %d processors", all-int(decided.Load()), all)
	}
	quiet := env
	if !asSentences {
		quiet.ErrTerminal = nil // the log is there
	}
	wait := waitFor(quiet, waitsFor)
	result, tickErr := a.Poll(ctx, poller.Mode{All: true, Only: names, DryRun: o.dryRun, Progress: func(_ string, done bool) {
		if done {
			decided.Add(1)
		}
	}})
	a.Close()
	wait.end()
	interrupted := wait.interrupted(ctx)
	if len(result.Polled) > 0 || interrupted == nil {
		if err := o.write(env, result); err != nil {
			return err
		}
	}
	if _, ok := env.errTerminal(); !ok { // a person has the table
		if _, err := env.Stderr.Write(events.Bytes()); err != nil {
			return err
		}
	}
	said := make(map[string]string)
	for i := range result.Polled {
		says := result.Polled[i].Lag.Problem() + "\n" + result.Polled[i].Lag.Nearest + "\n"
		said[result.Polled[i].Processor] = says
		said[""] += says
	}
	for line := range bytes.Lines(notes.Bytes()) {
		_, _ = sentences{env.Stderr, said}.Write(line)
	}
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
func (o pollOptions) write(env Env, result report.Tick) error {
	if o.output == "table" {
		o.listing.Sort = cmp.Or(o.listing.Sort, "status")
	}
	polled := console.Arrange(o.listing, result.Polled, report.New)
	switch {
	case o.explain:
		return console.WriteExplanations(env.Stdout, slices.Concat(polled, result.Groups), o.dryRun, env.Style())
	case o.output == "json":
		return console.WriteProcessorsJSON(env.Stdout, polled, result.Groups)
	default:
		return console.WriteProcessors(env.Stdout, polled, result.Groups, o.partitions, env.Style())
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
