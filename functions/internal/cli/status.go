package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
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
		Use: "status [NAME...]", Short: "say what is held of the processors, and what is wrong with them",
		Example:     "feedscale status\nfeedscale status --watch orders\nfeedscale status --url https://APP.azurewebsites.net --output json | jq .problems",
		Annotations: Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "FEEDSCALE_LISTEN", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	f := c.Flags()
	url := addURL(c)
	file := addConfig(c)
	watch := f.Bool("watch", false, "print it again whenever it has changed, until interrupted")
	every := f.Bool("all", false, "show every processor; else, of more than 20, the worst 20 that no common cause explains")
	output := addOutput(c, "table", "json")
	c.ValidArgsFunction = processorNames(env, file)
	c.RunE = func(c *cobra.Command, names []string) error {
		var mistakes flagMistakes
		mistakes.choice("output", *output, "table", "json")
		mistakes.eitherURL(*url, *file)
		if err := mistakes.refuse(env.Stderr, "status"); err != nil {
			return err
		}
		return status(c.Context(), env, *url, *file, *watch, statusShown{env: env, names: names, all: *every, json: *output == "json"})
	}
	return c
}

func status(ctx context.Context, env Env, url, file string, watch bool, shown statusShown) error {
	held, err := sourceOf(env, url, file)
	if err != nil {
		return err
	}
	if watch {
		return shown.watch(ctx, held)
	}
	all, err := await(ctx, env, "the state", func() (report.List, error) { return held.Find(ctx, shown.names) })
	if err != nil {
		return unreadable(err)
	}
	if err := shown.print(env.Stdout, all); err != nil {
		return err
	}
	return incomplete(all)
}

// sourceOf decides where to ask.
func sourceOf(env Env, url, file string) (app.Source, error) {
	settings, err := settings(env)
	if err != nil {
		return app.Source{}, err
	}
	if url == "" && file == "" {
		url = settings.URL
	}
	if url != "" {
		api, err := askable(url, settings)
		if err != nil {
			return app.Source{}, err
		}
		return app.SourceOfAPI(api), nil
	}
	options := app.Options{Log: newLog(env.Stderr, settings.LogLevel), EventLines: io.Discard, Version: env.Version, Now: env.Now, Asking: env.asking}
	return app.SourceOfState(settings, func() (config.Config, error) { return configure(env, file) }, options), nil
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
	for _, p := range all.Processors {
		if p.AttemptedAt == nil || p.Stale || !p.Complete || waits(p.Findings) {
			return Incomplete(nil)
		}
	}
	for _, g := range all.Groups {
		if g.AttemptedAt == nil || g.Stale || g.DesiredReplicas == nil || waits(g.Findings) {
			return Incomplete(nil)
		}
	}
	return nil
}

// statusShown is how the answer is printed.
type statusShown struct {
	env   Env
	names []string
	all   bool // of many processors, too
	json  bool
}

func (s statusShown) print(w io.Writer, all report.List) error {
	if s.json {
		return console.WriteStatusJSON(w, all)
	}
	return console.WriteStatus(w, all, s.all || len(s.names) > 0, s.env.Style())
}

// watch prints the answer again whenever it is another one, on a terminal in place of the one before,
// until ctx ends. After the first answer a failure is said, and the question asked again.
func (s statusShown) watch(ctx context.Context, held app.Source) error {
	look := time.NewTicker(held.Every)
	defer look.Stop()
	var before []byte // the last answer, without its time
	for {
		all, err := held.Find(ctx, s.names)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && before == nil:
			return unreadable(err)
		case err != nil:
			fmt.Fprintf(s.env.Stderr, "feedscale: %v\n", err)
		default:
			if before, err = s.again(all, before); err != nil {
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

// again prints an answer that is another one than before. On a terminal that is every one, since its
// times go on.
func (s statusShown) again(all report.List, before []byte) (now []byte, err error) {
	if now, err = json.Marshal(report.List{Processors: all.Processors, Groups: all.Groups}); err != nil {
		return nil, err
	}
	_, height, terminal := s.env.Terminal()
	switch {
	case terminal && !s.json:
		var b bytes.Buffer
		if err := s.print(&b, all); err != nil {
			return nil, err
		}
		return now, console.WriteScreen(s.env.Stdout, b.String(), height)
	case bytes.Equal(now, before):
		return now, nil
	case before != nil && !s.json:
		fmt.Fprintln(s.env.Stdout)
	}
	return now, s.print(s.env.Stdout, all)
}
