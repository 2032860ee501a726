package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
)

const year = 8760 * time.Hour

// History charts what was measured and decided of one processor.
func History(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "history NAME", "chart what was measured and decided of a processor", program.GroupLook
	f.Example = "feedscale history orders\nfeedscale history orders --since 168h --output csv > orders.csv\n" +
		"feedscale history orders --since 2026-01-01T00:00:00Z --until 2026-01-02T00:00:00Z --step 5m"
	f.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "NO_COLOR", "COLUMNS")
	f.CompleteArguments(processorNames(env, new(string)))
	var from source
	var since, until time.Time
	var step time.Duration
	var output string
	timeFlag(f, env, &since, "since", "the start, in RFC 3339, or how long ago, such as 6h (default 24h before the end)")
	timeFlag(f, env, &until, "until", "the end, in the same forms (default now)")
	program.Number(f, &step, "step", program.Durations, 0, year, "show the last sample of each step, and each that changed the replicas; 0s shows all")
	from.urlFlag(f)
	f.Output(&output, "chart", "json", "csv")
	f.Check(func(names []string) {
		f.Mistake(len(names) != 1, "name one processor, as in feedscale history orders")
		if until.IsZero() {
			until = env.Now().UTC()
		}
		if since.IsZero() {
			since = until.Add(-24 * time.Hour)
		}
		f.Mistake(!since.Before(until), "--since has to be before --until: they are %s and %s", since.Format(time.RFC3339), until.Format(time.RFC3339))
	})
	f.Run(func(ctx context.Context, names []string) error {
		samples, err := recorded(ctx, env, &from, names[0], since, until)
		if err != nil {
			return err
		}
		samples = report.Thin(samples, step)
		history := report.History{Processor: names[0], Samples: samples}
		switch output {
		case "json":
			return console.WriteJSON(env.Stdout, history)
		case "csv":
			return console.WriteSamplesCSV(env.Stdout, samples)
		}
		if first := samples[0].Time; since.Before(first) {
			since = first
		}
		if last := samples[len(samples)-1].Time; !last.Before(until) {
			until = last.Add(time.Second)
		}
		return console.WriteHistory(env.Stdout, history, since, until, env.Style())
	})
}

// timeFlag adds a flag for a time, or for how long ago it was. Its default is the zero time.
func timeFlag(f *program.Flags, env program.Env, at *time.Time, name, usage string) {
	f.Add(name, "", "time", usage, "", func(text string) string {
		if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
			*at = env.Now().UTC().Add(-ago)
			return ""
		}
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return "durations from 0s, such as 24h, and times such as 2026-01-01T00:00:00Z"
		}
		*at = parsed.UTC()
		return ""
	})
}

// recorded reads what is recorded of a processor up to the second of a time. It is an error if that
// is nothing.
func recorded(ctx context.Context, env program.Env, s *source, name string, from, to time.Time) ([]state.Sample, error) {
	samples, err := program.Await(ctx, env, "the state", func(func(string)) ([]state.Sample, error) {
		store, err := s.store(env)
		if err != nil {
			return nil, err
		}
		defer store.Close()
		return store.History(ctx, name, from, to.Add(time.Second))
	})
	if err == nil && len(samples) == 0 {
		c, _ := readConfig(env, "") // without a file no name is near
		if near := config.Nearest(name, names(c)); near != "" && near != name {
			return nil, fmt.Errorf("nothing is recorded of processor %q%s", name, program.Meant(near))
		}
		err = fmt.Errorf("nothing is recorded of processor %q from %s to %s: feedscale did not poll it in this time, "+
			"or --url or FEEDSCALE_STATE names another feedscale", name, from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return samples, unreadable(err)
}
