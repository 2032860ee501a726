package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

// History charts what was measured and decided of one processor.
func History(env program.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "history NAME", Short: "chart what was measured and decided of a processor", GroupID: program.GroupLook,
		Example: "feedscale history orders\nfeedscale history orders --since 168h --output csv > orders.csv\n" +
			"feedscale history orders --since 2026-01-01T00:00:00Z --until 2026-01-02T00:00:00Z --step 5m",
		Annotations: program.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs, ValidArgsFunction: processorNames(env, new(string)),
	}
	f := program.FlagsOf(c)
	var o historyOptions
	f.Text(&o.since, "since", "time", "the start, in RFC 3339, or how long ago, such as 6h (default 24h before the end)")
	f.Text(&o.until, "until", "time", "the end, in the same forms (default now)")
	program.Number(f, &o.step, "step", program.Durations, 0, year, "show the last sample of each step, and each that changed the replicas; 0s shows all")
	o.urlFlag(f)
	f.Output(&o.output, "chart", "json", "csv")
	c.RunE = func(c *cobra.Command, names []string) error {
		f.Mistake(len(names) != 1, "name one processor, as in feedscale history orders")
		w := o.window(f, env.Now().UTC())
		if err := f.Mistakes(); err != nil {
			return err
		}
		return history(c.Context(), env, o, w, names[0])
	}
	return c
}

const year = 8760 * time.Hour

type historyOptions struct {
	source
	since, until, output string
	step                 time.Duration
}

type window struct {
	from, to time.Time
	read     time.Time // samples until then are read: a poll may end after to, while it is asked for
}

// window reads the flags for times.
func (o historyOptions) window(f *program.Flags, now time.Time) (w window) {
	moment := func(name, text string, otherwise time.Time) time.Time {
		if text == "" {
			return otherwise
		}
		ago, err := time.ParseDuration(text)
		if err == nil && ago >= 0 {
			return now.Add(-ago)
		}
		at, err := time.Parse(time.RFC3339, text)
		f.Mistake(err != nil, "--%s is %q; allowed are durations from 0s, such as 24h, and times such as 2026-01-01T00:00:00Z", name, text)
		return at.UTC()
	}
	w.to = moment("until", o.until, now)
	if w.read = w.to; o.until == "" {
		w.read = w.to.Add(time.Minute)
	}
	w.from = moment("since", o.since, w.to.Add(-24*time.Hour))
	f.Mistake(f.Mistakes() == nil && !w.from.Before(w.to), "--since has to be before --until: they are %s and %s", w.from.Format(time.RFC3339), w.to.Format(time.RFC3339))
	return w
}

func history(ctx context.Context, env program.Env, o historyOptions, w window, name string) error {
	samples, err := recorded(ctx, env, o.source, name, w)
	if err != nil {
		return err
	}
	samples = report.Thin(samples, o.step)
	switch o.output {
	case "json":
		return console.WriteJSON(env.Stdout, report.History{Processor: name, Samples: samples})
	case "csv":
		return console.WriteSamplesCSV(env.Stdout, samples)
	}
	first, last := samples[0].Time, samples[len(samples)-1].Time
	if w.from.Before(first) {
		w.from = first
	}
	if !last.Before(w.to) {
		w.to = last.Add(time.Second)
	}
	return console.History{Processor: name, Samples: samples, From: w.from, Until: w.to}.Write(env.Stdout, env.Style())
}

// recorded reads what is recorded of a processor. It is an error if that is nothing.
func recorded(ctx context.Context, env program.Env, s source, name string, w window) ([]state.Sample, error) {
	settings, api, err := s.open(env)
	if err != nil {
		return nil, err
	}
	samples, err := program.Await(ctx, env, waitFor("the state"), func() ([]state.Sample, error) {
		if api != nil {
			return api.History(ctx, name, w.from, w.read)
		}
		connections := connect.New(settings)
		connections.Asking = asking(env)
		return connections.History(ctx, name, w.from, w.read)
	})
	if err == nil && len(samples) == 0 {
		c, _ := readConfig(env, "") // without a file no name is near
		if near := config.Nearest(name, names(c)); near != "" && near != name {
			return nil, fmt.Errorf("nothing is recorded of processor %q%s", name, program.Meant(near))
		}
		err = fmt.Errorf("nothing is recorded of processor %q from %s to %s: feedscale did not poll it in this time, "+
			"or --url or FEEDSCALE_STATE names another feedscale", name, w.from.Format(time.RFC3339), w.to.Format(time.RFC3339))
	}
	return samples, unreadable(err)
}
