package main

import (
	"context"
	"log/slog"

	"github.com/feedscale/feedscale/pkg/poller"
	"github.com/feedscale/feedscale/pkg/state"
)

// poll is one tick over every processor, printed. Standard output is kept for
// the result: events and the log go to standard error.
func (p program) poll(ctx context.Context, args []string) int {
	f := p.flags("poll", "[--config FILE] [--output table|json] [--partitions] [--explain] [--dry-run]")
	file := f.String("config", "", "the processors file")
	output := f.String("output", "table", "table or json")
	partitions := f.Bool("partitions", false, "a line for each partition, too, in the table; JSON always has them")
	explain := f.Bool("explain", false, "in place of the table, tell the steps of each decision")
	dryRun := f.Bool("dry-run", false, "write no state and publish nothing")
	if status, done := p.parse(f, args); done {
		return status
	}
	var mistakes flagMistakes
	mistakes.choice("output", *output, "table", "json")
	if *explain && (*output == "json" || *partitions) {
		mistakes.add("--explain takes the place of the table; it goes neither with --output json, which has all reasons, nor with --partitions")
	}
	if p.refuse("poll", mistakes) {
		return exitUsage
	}
	c, ok := p.configure(*file)
	if !ok {
		return exitUsage
	}
	log := slog.New(slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: c.Settings.LogLevel, ReplaceAttr: utc}))
	a, err := newApp(c, log, p.stderr, *dryRun)
	if err != nil {
		return p.fail(exitUsage, err)
	}
	result, tickErr := a.poller.Tick(ctx, poller.Mode{All: true, DryRun: *dryRun})
	if err := a.close(); err != nil {
		log.Warn("not everything was closed", "error", err.Error())
	}
	if *explain {
		err = writeExplanations(p.stdout, result.Polled, *dryRun, colored(p.stdout, p.getenv("NO_COLOR")))
	} else {
		err = p.print(*output, result.Polled, *partitions)
	}
	if err != nil {
		return p.fail(exitIncomplete, err)
	}
	if tickErr != nil {
		return p.fail(exitIncomplete, tickErr)
	}
	return resultStatus(result)
}

// resultStatus is the exit status that a tick asks for.
func resultStatus(r poller.Result) int {
	if r.Uncommitted > 0 || r.Unpublished > 0 {
		return exitIncomplete
	}
	for _, s := range r.Polled {
		if !s.Lag.Complete() {
			return exitIncomplete
		}
	}
	return exitOK
}

func (p program) print(output string, polled []state.State, partitions bool) error {
	if output == "table" {
		return writeTable(p.stdout, polled, partitions, colored(p.stdout, p.getenv("NO_COLOR")))
	}
	reports := make([]poller.Report, len(polled))
	for i, s := range polled {
		reports[i] = poller.NewReport(s)
	}
	return writeJSON(p.stdout, struct {
		Processors []poller.Report `json:"processors"`
	}{reports})
}
