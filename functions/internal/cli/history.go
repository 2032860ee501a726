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
		Use: "history NAME", Short: "chart what was measured and decided of a processor", GroupID: GroupLook,
		Example: "feedscale history orders\nfeedscale history orders --since 168h --output csv > orders.csv\n" +
			"feedscale history orders --since 2026-01-01T00:00:00Z --until 2026-01-02T00:00:00Z --step 5m",
		Annotations: Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs, ValidArgsFunction: processorNames(env, new(string)),
	}
	f := flagsOf(c)
	var o historyOptions
	f.text(&o.since, "since", "time", "from when: so long ago, as 6h is, or in RFC 3339 (default 24h before the end)")
	f.text(&o.until, "until", "time", "until when, in the same forms (default now)")
	number(f, &o.step, "step", durations, 0, year, "of each step the last sample, and each that changed the replicas; 0s is all")
	f.url(&o.url)
	f.output(&o.output, "chart", "json", "csv")
	c.RunE = func(c *cobra.Command, names []string) error {
		f.mistake(len(names) == 0, "the name of a processor is missing, as in feedscale history orders")
		f.mistake(len(names) > 1, "unexpected arguments %q; one processor at a time", names[min(1, len(names)):])
		w := o.window(f, env.Now().UTC())
		if err := f.mistakes(); err != nil {
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

// window is the time that is looked at.
type window struct{ from, to time.Time }

// window reads the flags.
func (o historyOptions) window(f *flags, now time.Time) (w window) {
	moment := func(name, text string, otherwise time.Time) time.Time {
		if text == "" {
			return otherwise
		}
		ago, err := time.ParseDuration(text)
		if err == nil && ago >= 0 {
			return now.Add(-ago)
		}
		at, err := time.Parse(time.RFC3339, text)
		f.mistake(err != nil, "--%s is %q; allowed are durations from 0s, such as 24h, and times such as 2026-01-01T00:00:00Z", name, text)
		return at.UTC()
	}
	w.to = moment("until", o.until, now)
	w.from = moment("since", o.since, w.to.Add(-24*time.Hour))
	f.mistake(len(f.wrong) == 0 && !w.from.Before(w.to), "--since is no earlier than --until: %s and %s", w.from.Format(time.RFC3339), w.to.Format(time.RFC3339))
	return w
}

func history(ctx context.Context, env Env, o historyOptions, w window, name string) error {
	asked := w
	if o.until == "" {
		asked.to = asked.to.Add(time.Minute) // a poll may end while it is asked for
	}
	samples, err := recorded(ctx, env, o.source, name, asked)
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

// recorded reads what is recorded of a processor, which is something.
func recorded(ctx context.Context, env Env, s source, name string, w window) ([]state.Sample, error) {
	settings, err := readSettings(env)
	if err != nil {
		return nil, err
	}
	api, err := s.api(settings)
	if err != nil {
		return nil, err
	}
	samples, err := await(ctx, env, "the state", func() ([]state.Sample, error) {
		if api != nil {
			return api.History(ctx, name, w.from, w.to)
		}
		connections := connect.New(settings)
		connections.Asking = env.asking
		return connections.History(ctx, name, w.from, w.to)
	})
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("nothing is recorded of processor %q since %s: is the name right, "+
			"does FEEDSCALE_STATE name the state of the poller, and has it polled?", name, w.from.Format(time.RFC3339))
	}
	return samples, unreadable(err)
}
