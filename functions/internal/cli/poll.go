package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// Poll runs one tick over all or some processors, and prints the result. Standard output is kept
// for the result: events and the log go to standard error.
func Poll(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "poll [NAME...]", "poll processors once, whatever their schedule, and print the result", program.GroupWork
	f.Example = "feedscale poll --dry-run --explain orders\nfeedscale poll --dry-run --status stalled,unknown --partitions\nfeedscale poll --output json | jq '.processors[] | {name, lag, desiredReplicas}'"
	f.Settings("FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "FEEDSCALE_STATE", "FEEDSCALE_EVENTS", "FEEDSCALE_RU_BUDGET", "FEEDSCALE_TICK_TIMEOUT", "FEEDSCALE_LOG_LEVEL", "NO_COLOR", "COLUMNS")
	var o pollOptions
	configFlag(f, env, &o.file)
	f.Output(&o.output, "table", "json")
	listingFlags(f, &o.listing)
	f.BoolVar(&o.partitions, "partitions", false, "in the table, add a line for each partition; JSON always has them")
	f.BoolVar(&o.explain, "explain", false, "show the steps of each decision, in place of the table")
	f.BoolVar(&o.dryRun, "dry-run", false, "write no state and publish nothing")
	f.Check(func([]string) {
		f.Mistake(o.explain && (o.output == "json" || o.partitions), "--explain replaces the table; leave out --partitions and --output json, which has all reasons")
	})
	f.Run(func(ctx context.Context, names []string) error { return poll(ctx, env, o, names) })
}

type pollOptions struct {
	file, output                string
	partitions, explain, dryRun bool
	listing                     console.Listing
}

func poll(ctx context.Context, env program.Env, o pollOptions, names []string) error {
	c, err := readNamed(env, o.file, names)
	if err != nil {
		return err
	}
	// A person sees the table instead of the events. Below it are the errors of the log.
	var below bytes.Buffer
	lines, log, waiting := env.Stderr, program.NewLog(env.Stderr, c.Settings.LogLevel), env
	if o.output == "table" && env.Person() {
		lines = io.Discard
	}
	if o.output == "table" && env.Getenv("FEEDSCALE_LOG_LEVEL") == "" {
		log = program.NewLog(&below, slog.LevelError)
	} else {
		waiting.ErrTerminal = nil // the log shows the progress
	}
	var store state.Store
	if o.dryRun {
		store, err = new(source).open(env, c.Settings)
	} else if store, err = connect.New(c.Settings).Store(false); errors.Is(err, boltstore.ErrInUse) {
		err = fmt.Errorf("%w; or poll with --dry-run, which writes nothing", err)
	}
	if err != nil {
		return program.Usage(err)
	}
	a, err := misused(app.New(c, options(env, log, lines), store))
	if err != nil {
		return err
	}
	all := cmp.Or(len(names), len(c.Processors))
	left := func(polled int) string { return fmt.Sprintf("%d of %d processors", all-polled, all) }
	result, err := program.Await(ctx, waiting, left(0), func(say func(string)) (report.Tick, error) {
		defer a.Close() // it may log
		var polled atomic.Int64
		return a.Poll(ctx, poller.Mode{All: true, Only: names, DryRun: o.dryRun, Each: func(state.State) {
			say(left(int(polled.Add(1))))
		}})
	})
	if len(result.Polled) > 0 || ctx.Err() == nil {
		if err := o.write(env, result); err != nil {
			return err
		}
	}
	if err != nil {
		return err // of everything: the log repeats it
	}
	_, err = below.WriteTo(env.Stderr)
	return program.Completed(result.Complete(), err)
}

// write prints the result.
func (o pollOptions) write(env program.Env, result report.Tick) error {
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
