package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// Status prints the last state of each processor, and what is wrong with it.
func Status(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "status [NAME...]", "show the last state of each processor, and what is wrong with it", program.GroupLook
	f.Example = "feedscale status\nfeedscale status --watch orders\nfeedscale status --status stalled,unknown --sort lag\nfeedscale status --url https://APP.azurewebsites.net --output json | jq .problems"
	f.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "FEEDSCALE_LISTEN", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS")
	o := statusOptions{env: env}
	o.source.flags(f, env)
	f.BoolVar(&o.again, "watch", false, "print each change, until interrupted")
	f.BoolVar(&o.listing.All, "all", false, "show every processor; by default, of more than 20, the worst 20 that no common cause explains")
	listingFlags(f, &o.listing)
	f.Output(&o.output, "table", "json")
	f.Run(func(ctx context.Context, names []string) error {
		o.names, o.listing.All = names, o.listing.All || len(names) > 0
		return o.run(ctx)
	})
}

type statusOptions struct {
	source
	env     program.Env
	names   []string
	again   bool
	listing console.Listing
	output  string
}

// watchEvery is the interval between two looks with --watch.
const watchEvery = 5 * time.Second

func (o *statusOptions) run(ctx context.Context) error {
	settings, err := readSettings(o.env)
	if err != nil {
		return err
	}
	var kept app.Record // a table or an API, with its token
	look := func(func(string)) (report.List, error) {
		record := kept
		if record == nil {
			opened, end, err := o.record(o.env, unlogged)
			if err != nil {
				return report.List{}, err
			}
			if record = opened; settings.State.BoltPath == "" {
				kept = opened
			} else {
				defer end() // the file is free for others between two looks
			}
		}
		return record.List(ctx, o.names)
	}
	if o.again {
		return o.watch(ctx, look)
	}
	all, err := program.Await(ctx, o.env, "the state", look)
	if err != nil {
		return unreadable(err)
	}
	return program.Completed(!incomplete(all), o.print(all))
}

// incomplete reports whether a processor or group is unknown or overdue, or an event of it waits.
func incomplete(all report.List) bool {
	waits := func(f report.Finding) bool { return f.Code == report.Unpublished }
	return slices.ContainsFunc(all.Processors, func(p report.StoredProcessor) bool {
		return p.AttemptedAt == nil || p.Stale || !p.Complete || slices.ContainsFunc(p.Findings, waits)
	}) || slices.ContainsFunc(all.Groups, func(g report.StoredGroup) bool {
		return g.AttemptedAt == nil || g.Stale || g.DesiredReplicas == nil || slices.ContainsFunc(g.Findings, waits)
	})
}

func (o *statusOptions) print(all report.List) error {
	if o.output == "json" {
		return console.WriteStatusJSON(o.env.Stdout, all, o.listing)
	}
	return console.WriteStatus(o.env.Stdout, all, o.listing, o.env.Style())
}

// watch prints each change until ctx ends, on a terminal in place of the last one. After the first
// answer, a failure is printed, and the next look goes on.
func (o *statusOptions) watch(ctx context.Context, look func(func(string)) (report.List, error)) error {
	screen := program.NewScreen(o.env, o.output == "json")
	defer screen.Close()
	var before *report.List // the last answer: its processors and groups
	for ctx.Err() == nil {
		all, err := look(nil)
		now := report.List{Processors: all.Processors, Groups: all.Groups}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && before == nil:
			return unreadable(err)
		case err != nil:
			fmt.Fprintf(o.env.Stderr, "feedscale: %v\n", err)
		case screen.Live: // the times in the picture change always
			before = &now
			screen.Show(func(_, _ []state.State, style console.Style) (lines, foot []string) {
				var b strings.Builder
				_ = console.WriteStatus(&b, all, o.listing, style) // a Builder never fails
				return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n"), nil
			})
		case before == nil || !reflect.DeepEqual(now, *before):
			if before != nil && o.output == "table" {
				fmt.Fprintln(o.env.Stdout)
			}
			before = &now
			if err := o.print(all); err != nil {
				return err
			}
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
		}
	}
	return nil
}
