package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// Status prints what a feedscale that runs, or the state that it left, holds of the processors.
func Status(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "status [NAME...]", Short: "say what is held of the processors, and what is wrong with them", GroupID: GroupLook,
		Example:     "feedscale status\nfeedscale status --watch orders\nfeedscale status --status stalled,unknown --sort lag\nfeedscale status --url https://APP.azurewebsites.net --output json | jq .problems",
		Annotations: Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "FEEDSCALE_LISTEN", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	f := flagsOf(c)
	o := statusOptions{env: env}
	o.source.flags(f)
	f.BoolVar(&o.again, "watch", false, "print it again whenever it has changed, until interrupted")
	f.BoolVar(&o.listing.All, "all", false, "show every processor; else, of more than 20, the worst 20 that no common cause explains")
	f.listing(&o.listing)
	f.output(&o.output, "table", "json")
	c.ValidArgsFunction = processorNames(env, &o.file)
	c.RunE = func(c *cobra.Command, names []string) error {
		o.source.check(f)
		if err := f.mistakes(); err != nil {
			return err
		}
		o.names, o.listing.All = names, o.listing.All || len(names) > 0
		return o.run(c.Context())
	}
	return c
}

type statusOptions struct {
	source
	env     Env
	names   []string
	again   bool
	listing console.Listing
	output  string
}

func (o statusOptions) run(ctx context.Context) error {
	held, err := o.held()
	if err != nil {
		return err
	}
	if o.again {
		return o.watch(ctx, held)
	}
	all, err := await(ctx, o.env, "the state", func() (report.List, error) { return held.Find(ctx, o.names) })
	if err != nil {
		return unreadable(err)
	}
	if err := o.print(o.env.Stdout, all); err != nil {
		return err
	}
	return incomplete(all)
}

// held decides where to ask.
func (o statusOptions) held() (app.Source, error) {
	settings, err := readSettings(o.env)
	if err != nil {
		return app.Source{}, err
	}
	api, err := o.api(settings)
	if err != nil {
		return app.Source{}, err
	}
	if api != nil {
		return app.SourceOfAPI(api), nil
	}
	options := app.Options{Log: newLog(o.env.Stderr, settings.LogLevel), EventLines: io.Discard, Version: o.env.Version, Now: o.env.Now, Asking: o.env.asking}
	return app.SourceOfState(settings, func() (config.Config, error) { return readConfig(o.env, o.file) }, options), nil
}

// unreadable is the Failure of what could not be asked.
func unreadable(err error) error {
	if errors.Is(err, report.ErrUnknownName) || errors.Is(err, boltstore.ErrInUse) || errors.Is(err, boltstore.ErrDamaged) {
		return Usage(err)
	}
	return err
}

// incomplete is the Failure where a processor or group is unknown, was not polled for too long, or could not
// publish its decision.
func incomplete(all report.List) error {
	waits := func(findings []report.Finding) bool {
		return slices.ContainsFunc(findings, func(f report.Finding) bool { return f.Code == report.Unpublished })
	}
	wrong := false
	for _, p := range all.Processors {
		wrong = wrong || p.AttemptedAt == nil || p.Stale || !p.Complete || waits(p.Findings)
	}
	for _, g := range all.Groups {
		wrong = wrong || g.AttemptedAt == nil || g.Stale || g.DesiredReplicas == nil || waits(g.Findings)
	}
	if wrong {
		return Incomplete(nil)
	}
	return nil
}

func (o statusOptions) print(w io.Writer, all report.List) error {
	if o.output == "json" {
		return console.WriteStatusJSON(w, all, o.listing)
	}
	return console.WriteStatus(w, all, o.listing, o.env.Style())
}

// watch prints the answer again whenever it is another one, on a terminal in place of the one before,
// until ctx ends. After the first answer a failure is said, and the question asked again.
func (o statusOptions) watch(ctx context.Context, held app.Source) error {
	screen := NewScreen(o.env, o.output == "json")
	if screen.Live {
		defer screen.Close()
	}
	look := time.NewTicker(held.Every)
	defer look.Stop()
	var before []byte // the last answer, without its time
	for {
		all, err := held.Find(ctx, o.names)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && before == nil:
			return unreadable(err)
		case err != nil:
			fmt.Fprintf(o.env.Stderr, "feedscale: %v\n", err)
		case screen.Live: // its times go on
			before = []byte{}
			screen.Show(View{Head: func(style console.Style) []string {
				var b strings.Builder
				_ = console.WriteStatus(&b, all, o.listing, style) // a Builder never fails
				return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			}})
		default:
			now, err := json.Marshal(report.List{Processors: all.Processors, Groups: all.Groups})
			if err != nil {
				return err
			}
			if bytes.Equal(now, before) {
				break
			}
			if before != nil && o.output == "table" {
				fmt.Fprintln(o.env.Stdout)
			}
			before = now
			if err := o.print(o.env.Stdout, all); err != nil {
				return err
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
	}
}
