package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	since       time.Duration
	ran, output string
	fixed       int // of --ran fixed:N
	config      config.Config
}

// Report prints the replicas that ran, by the leases, beside those that policies would have run.
func Report(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "report [NAME...]", "compare the replicas that ran, by the leases, with those that policies would have run", program.GroupLook
	f.Example = "feedscale report\nfeedscale report orders --ran keda\nfeedscale report --since 24h --output markdown > day.md"
	f.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "FEEDSCALE_LISTEN", "FEEDSCALE_CONFIG", "FEEDSCALE_PROCESSORS", "NO_COLOR", "COLUMNS")
	r := reportOptions{env: env, since: 168 * time.Hour}
	program.Number(f, &r.since, "since", program.Durations, time.Hour, year, "how far to look back")
	f.Add("ran", "", "policy", "what scaled the replicas in that time: keda, own or fixed:N; the model is checked against it", "", r.setRan)
	f.Complete("ran", "keda", "own", "fixed:1")
	r.source.flags(f, env)
	f.Output(&r.output, "table", "markdown", "json")
	f.Run(r.run)
}

// setRan reads --ran.
func (r *reportOptions) setRan(text string) (allowed string) {
	count, fixed := strings.CutPrefix(text, "fixed:")
	r.ran = text
	r.fixed, _ = strconv.Atoi(count)
	if fixed && r.fixed > 0 && r.fixed <= 1000 || text == "keda" || text == "own" {
		return ""
	}
	return "keda, own, and fixed:N with an N from 1 to 1000"
}

func (r *reportOptions) run(ctx context.Context, names []string) error {
	var wrong error
	r.config, wrong = readConfig(r.env, r.file) // an API needs none; then the policies are those built in
	if wrong != nil && r.ran == "own" {
		return program.Usage(fmt.Errorf("--ran own needs the policies of the processors file: %w", wrong))
	}
	record, end, err := r.record(r.env, unlogged)
	if err != nil {
		return unreadable(err)
	}
	defer end()
	all, err := program.Await(ctx, r.env, "the state", func(say func(string)) (shadow.Report, error) {
		all, err := record.Report(ctx, names, r.env.Now().Add(-r.since), func(done int) {
			say(fmt.Sprintf("the state (%d processors so far)", done))
		})
		if len(names) == 0 && len(all.Processors) > mostModelled {
			return all, err
		}
		for i := 0; err == nil && i < len(all.Processors); i++ {
			p := &all.Processors[i]
			say(fmt.Sprintf("the model of %s (%d of %d)", p.Name, i+1, len(all.Processors)))
			p.Model, err = r.model(ctx, record, p.Name, all)
		}
		return all, err
	})
	if err != nil {
		return unreadable(err)
	}
	err = show(r.env, r.output, all, func() error {
		return console.WriteReport(r.env.Stdout, all, r.output == "markdown", r.env.Style())
	})
	unread := slices.ContainsFunc(all.Processors, func(p shadow.Processor) bool { return p.Error != nil })
	return program.Completed(!unread, err)
}

// model replays the history of a processor.
func (r *reportOptions) model(ctx context.Context, record app.Record, name string, all shadow.Report) (*shadow.Model, error) {
	q := shadow.Question{Name: name, Policies: []simulate.Scaler{simulate.Feedscale("default", config.DefaultPolicy(), simulate.DefaultEvery), simulate.KEDA()}}
	for _, p := range r.config.Processors {
		if p.Name == name {
			q.Policies[0], _ = app.Own(r.config.Settings, p, r.env.Now())
			q.Objective = p.Policy.MaxChangeAge
		}
	}
	q.Ran = map[string]simulate.Scaler{"own": q.Policies[0], "keda": q.Policies[1]}[r.ran] // nil if it is not said
	if r.fixed > 0 {
		q.Ran = simulate.FixedCount(r.fixed)
	}
	for from := all.Since; from.Before(all.Until); from = from.Add(modelledAtOnce) {
		length := min(modelledAtOnce, all.Until.Sub(from))
		samples, err := record.History(ctx, name, from, from.Add(length))
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
