package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/shadow"
	"github.com/feedscale/feedscale/pkg/simulate"
)

const (
	// mostModelled is how many processors are modelled if no name is given: a replay of a week
	// takes seconds.
	mostModelled = 20
	// modelledAtOnce is how much of a history is read at once, to bound memory.
	modelledAtOnce = 6 * time.Hour
)

// reportOptions are the flags of report.
type reportOptions struct {
	source
	env         program.Env
	names       []string
	since       time.Duration
	ran, output string
	fixed       int // of --ran fixed:N
	config      config.Config
}

// Report prints the replicas that ran, by the leases, beside those that policies would have run.
func Report(env program.Env) *cobra.Command {
	c := &cobra.Command{
		Use: "report [NAME...]", Short: "compare the replicas that ran, by the leases, with those that policies would have run", GroupID: program.GroupLook,
		Example:     "feedscale report\nfeedscale report orders --ran keda\nfeedscale report --since 24h --output markdown > day.md",
		Annotations: program.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "FEEDSCALE_LISTEN", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS"),
		Args:        cobra.ArbitraryArgs,
	}
	f := program.FlagsOf(c)
	r := reportOptions{env: env, since: 168 * time.Hour}
	program.Number(f, &r.since, "since", program.Durations, time.Hour, year, "how far to look back")
	f.Text(&r.ran, "ran", "policy", "what scaled the replicas in that time: keda, own or fixed:N; the model is checked against it")
	f.Complete("ran", "keda", "own", "fixed:1")
	r.source.flags(f)
	f.Output(&r.output, "table", "markdown", "json")
	c.ValidArgsFunction = processorNames(env, &r.file)
	c.RunE = func(c *cobra.Command, names []string) error {
		r.names = names
		r.check(f)
		if count, fixed := strings.CutPrefix(r.ran, "fixed:"); fixed {
			r.fixed, _ = strconv.Atoi(count)
		}
		f.Mistake((r.fixed < 1 || r.fixed > 1000) && !slices.Contains([]string{"", "keda", "own"}, r.ran),
			"--ran is %q; allowed are keda, own, and fixed:N with an N from 1 to 1000", r.ran)
		if err := f.Mistakes(); err != nil {
			return err
		}
		return r.run(c.Context())
	}
	return c
}

func (r *reportOptions) run(ctx context.Context) error {
	record, end, err := r.open()
	if err != nil {
		return unreadable(err)
	}
	defer end()
	var doing atomic.Value
	doing.Store("the state")
	all, err := program.Await(ctx, r.env, func() string { return doing.Load().(string) }, func() (shadow.Report, error) {
		all, err := record.Report(ctx, r.names, r.env.Now().Add(-r.since), func(done, all int) {
			doing.Store(fmt.Sprintf("the state (%d of %d processors)", done, all))
			if all == 0 {
				doing.Store(fmt.Sprintf("the API (%d processors so far)", done))
			}
		})
		if len(r.names) == 0 && len(all.Processors) > mostModelled {
			return all, err
		}
		for i := 0; err == nil && i < len(all.Processors); i++ {
			p := &all.Processors[i]
			doing.Store(fmt.Sprintf("the model of %s (%d of %d)", p.Name, i+1, len(all.Processors)))
			p.Model, err = r.model(ctx, record, p.Name, all)
		}
		return all, err
	})
	if err != nil {
		return unreadable(err)
	}
	if r.output == "json" {
		err = console.WriteJSON(r.env.Stdout, all)
	} else {
		err = console.WriteReport(r.env.Stdout, all, r.output == "markdown", r.env.Style())
	}
	if unread := slices.ContainsFunc(all.Processors, func(p shadow.Processor) bool { return p.Error != nil }); unread && err == nil {
		err = program.Incomplete(nil)
	}
	return err
}

// open opens the API, or the state.
func (r *reportOptions) open() (record app.Record, end func(), err error) {
	settings, api, err := r.source.open(r.env)
	if err != nil {
		return nil, nil, err
	}
	var wrong error
	r.config, wrong = readConfig(r.env, r.file) // an API needs none; then the policies are those built in
	if wrong != nil && r.ran == "own" {
		return nil, nil, program.Usage(fmt.Errorf("--ran own needs the policies of the processors file: %w", wrong))
	}
	if api != nil {
		return api, func() {}, nil
	}
	return app.OpenRecord(settings, func() (config.Config, error) { return r.config, wrong },
		options(r.env, program.NewLog(r.env.Stderr, settings.LogLevel), io.Discard))
}

// model replays the history of a processor.
func (r *reportOptions) model(ctx context.Context, record app.Record, name string, all shadow.Report) (*shadow.Model, error) {
	q := shadow.Question{Name: name, Policies: []simulate.Scaler{simulate.Feedscale("default", config.DefaultPolicy(), simulate.DefaultEvery)}}
	for _, p := range r.config.Processors {
		if p.Name == name {
			q.Policies[0], q.Objective = r.own(p), p.Policy.MaxChangeAge
		}
	}
	q.Policies = append(q.Policies, simulate.KEDA())
	switch {
	case r.ran == "keda":
		q.Ran = simulate.KEDA()
	case r.ran == "own":
		q.Ran = q.Policies[0]
	case r.fixed > 0:
		q.Ran = simulate.Fixed(r.fixed)
	}
	for from := all.Since; from.Before(all.Until); from = from.Add(modelledAtOnce) {
		until := from.Add(modelledAtOnce)
		if all.Until.Before(until) {
			until = all.Until
		}
		samples, err := record.History(ctx, name, from, until)
		if err != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		for _, s := range samples {
			s.Reasons, s.Partitions = nil, nil // which are most of it
			q.Samples = append(q.Samples, s)
		}
	}
	return shadow.NewModel(q), ctx.Err()
}

// own is the policy of a processor, without its pause.
func (r *reportOptions) own(p config.Processor) simulate.Scaler {
	polls := p.Schedule
	if polls.IsZero() {
		polls = r.config.Settings.Timer
	}
	first := polls.Next(r.env.Now())
	policy := p.Policy
	policy.Paused = false
	return simulate.Feedscale("own", policy, polls.Next(first).Sub(first))
}
