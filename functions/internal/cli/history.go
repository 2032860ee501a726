package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

// History prints what was measured and decided of one processor.
func History() Command {
	return Command{"history", "chart what was measured and decided of a processor", history}
}

func history(ctx context.Context, env Env, args []string) error {
	f := NewFlags(env, "history", "NAME [--since 24h] [--output chart|json|csv]")
	since := f.Duration("since", 24*time.Hour, "how far to look back")
	output := f.String("output", "chart", "chart, json or csv")
	name := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	var mistakes flagMistakes
	if name == "" {
		mistakes.add("the name of a processor is missing, as in feedscale history orders")
	}
	if *since <= 0 {
		mistakes.add("--since is %s; allowed are durations above 0, such as 24h", *since)
	}
	mistakes.choice("output", *output, "chart", "json", "csv")
	if err := mistakes.refuse(env.Stderr, "history"); err != nil {
		return err
	}
	settings, err := settings(env)
	if err != nil {
		return err
	}
	until := env.Now().UTC()
	samples, err := recorded(ctx, env, settings, name, until.Add(-*since), until)
	switch {
	case errors.Is(err, boltstore.ErrInUse), errors.Is(err, boltstore.ErrDamaged), errors.Is(err, report.ErrUnknownName):
		return Usage(err)
	case err != nil:
		return err
	}
	if len(samples) == 0 {
		return fmt.Errorf("nothing is recorded of processor %q in the last %s: is the name right, does FEEDSCALE_STATE name the state of the poller, and has it polled?", name, *since)
	}
	switch *output {
	case "json":
		return console.WriteJSON(env.Stdout, report.History{Processor: name, Samples: samples})
	case "csv":
		return console.WriteSamplesCSV(env.Stdout, samples)
	default:
		return console.History{Processor: name, Samples: samples, From: until.Add(-*since), Until: until}.Write(env.Stdout, env.Style())
	}
}

// recorded reads what is recorded of a processor.
func recorded(ctx context.Context, env Env, settings config.Settings, name string, from, to time.Time) ([]state.Sample, error) {
	connections := connect.New(settings)
	connections.Asking = env.asking
	return connections.History(ctx, name, from, to)
}
