package cli

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// Simulate replays a trace, synthetic or recorded, against policies, and prints what each of them would
// have cost and kept.
func Simulate(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "simulate", Short: "replay a trace against policies, to tune them",
		Example:     "feedscale simulate --trace daily --compare\nfeedscale simulate --trace history:orders --policies policies.yaml\nfeedscale simulate --matrix --output csv > matrix.csv",
		Annotations: Settings("FEEDSCALE_STATE", "NO_COLOR", "COLUMNS"),
	}
	f := c.Flags()
	f.String("trace", "daily", "`name` or file: "+strings.Join(simulate.Names(), ", ")+"; history:PROCESSOR, what is recorded of it; or a file that feedscale history wrote as JSON or CSV")
	f.String("since", "168h", "`duration` to look back in history:PROCESSOR")
	f.String("seed", "1", "whole `number`: the same one gives the same synthetic trace, and the same chances")
	f.String("seeds", "1", "`number` of replays, each with the next seed; the results are means (with --matrix 5 by default)")
	f.String("duration", "24h", "`duration` of a synthetic trace; of weekly 168h by default")
	f.String("partitions", "8", "`number` of partitions; of a recorded trace its own by default")
	f.String("rate", "40", "`number` of transactions per second, on average, of a synthetic trace; sparse has its own")
	f.String("skew", "0", "`number`: the exponent of Zipf's law by which partitions share a synthetic trace; 0 = evenly. hot, zipf, moving and outrun have shares of their own")
	f.String("throughput", "25", "`number` of transactions per second that one replica works off; with a recorded trace the median recorded by default")
	f.String("startup", "30s", "`duration` from the moment a replica is made to the moment it works")
	f.String("rebalance", "1s", "`duration` for which nobody works off a lease that has got another owner")
	f.String("poll-delay", "5s", "`duration` until a replica that found nothing looks again (the SDKs' feedPollDelay)")
	f.String("batch", "100", "`number` of changes that the handler gets at most, and then checkpoints (the SDKs' maxItemCount)")
	f.String("batch-time", "0s", "`duration` that a full batch takes at least; 0s = as fast as the replica is")
	f.String("ru-per-change", "0", "request units `number` to read a change and to process it; with --ru-limit")
	f.String("ru-limit", "0", "request units a second `number` that the container has at the start; 0 = no limit. A policy in --policies may have throughput follow")
	f.String("acting", "consumer", "`way` in which a decision becomes replicas: consumer, metrics-api, metric-value, external-push; or keda, which asks nobody")
	f.String("delay", "0s", "`duration` until a decision takes effect, beside what the way of acting takes")
	f.String("poll", "15s", "`duration` between two polls of default; those of --policies have their own (every)")
	f.String("failed-polls", "0", "`share` of the polls that fail, from 0 to 1")
	f.String("lag-objective", "1000", "`transactions` that may be pending")
	f.String("age-objective", "60s", "`duration` for which the oldest change may be pending")
	f.String("policies", "", "a `file` of policies to try out")
	f.String("policy", "", "default, keda, or the `name` of one in --policies; by default all of --policies, or else default")
	compare := f.Bool("compare", false, "default, keda and all of --policies side by side, with the best fixed count and the clairvoyant bound")
	matrix := f.Bool("matrix", false, "every synthetic trace, start-up time, delay and way of acting, summed up, or each with --output csv; --trace, --startup and --delay leave only that one")
	addOutput(c, "table", "json", "csv")
	charts := f.Bool("chart", true, "charts below the table")
	complete(c, "trace", simulate.Names()...)
	complete(c, "acting", actings()...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return simulateTrace(c.Context(), env, f, *compare, *matrix, *charts)
	}
	return c
}

func simulateTrace(ctx context.Context, env Env, f *pflag.FlagSet, compare, matrix, charts bool) error {
	in := flagReader{flags: f, history: func(processor string, since time.Duration) ([]state.Sample, error) {
		settings, err := config.ReadSettings(env.Environ)
		if err != nil {
			return nil, err
		}
		until := env.Now()
		return recorded(ctx, env, settings, processor, until.Add(-since), until)
	}}
	output := in.choice("output", "table", "json", "csv")
	if matrix {
		return simulateMatrix(ctx, env, &in, compare, output)
	}
	s, trace := in.simulation()
	comparison := simulate.Comparison{
		Trace: trace, Seeds: s.Seeds, Workers: s.Workers, Conditions: s.Met, Objective: s.Objective,
		Scalers: in.scalers(compare), Yardsticks: compare,
	}
	if err := in.mistakes.refuse(env.Stderr, "simulate"); err != nil {
		return err
	}
	if in.unread != nil {
		return in.unread
	}
	var err error
	if s.Results, err = comparison.Run(ctx, progressBar(env)); err != nil {
		return err
	}
	switch output {
	case "json":
		return console.WriteJSON(env.Stdout, s.Report())
	case "csv":
		return s.WriteCSV(env.Stdout)
	default:
		return s.Write(env.Stdout, charts, env.Style())
	}
}

// flagReader reads the flags of a simulation, and collects what is wrong with
// them, so that all of it is said at once.
type flagReader struct {
	flags    *pflag.FlagSet
	mistakes flagMistakes
	history  func(processor string, since time.Duration) ([]state.Sample, error)
	unread   error // why a history could not be read, which is no mistake in the flags
}

func (r *flagReader) text(name string) string { return r.flags.Lookup(name).Value.String() }

// given reports whether a flag stands on the command line.
func (r *flagReader) given(name string) (found bool) {
	r.flags.Visit(func(f *pflag.Flag) { found = found || f.Name == name })
	return found
}

func (r *flagReader) choice(name string, allowed ...string) string {
	r.mistakes.choice(name, r.text(name), allowed...)
	return r.text(name)
}

func (r *flagReader) whole(name string, low, high uint64) uint64 {
	n, err := strconv.ParseUint(r.text(name), 10, 64)
	if err != nil || n < low || n > high {
		r.mistakes.add("--%s is %q; allowed are whole numbers from %d to %d", name, r.text(name), low, high)
	}
	return n
}

// rate reads transactions per second.
func (r *flagReader) rate(name string) float64 {
	n, err := strconv.ParseFloat(r.text(name), 64)
	if err != nil || !(n >= 0.001 && n <= simulate.MaxRate) {
		r.mistakes.add("--%s is %q; allowed are transactions per second from 0.001 to %d", name, r.text(name), simulate.MaxRate)
	}
	return n
}

func (r *flagReader) duration(name string, low, high time.Duration) time.Duration {
	d, err := time.ParseDuration(r.text(name))
	if err != nil || d < low || d > high {
		r.mistakes.add("--%s is %q; allowed are durations from %s to %s, such as 90s, 5m or 1h30m", name, r.text(name), console.Brief(low), console.Brief(high))
	}
	return d
}

// fraction reads a number from 0 to high.
func (r *flagReader) fraction(name string, high float64) float64 {
	n, err := strconv.ParseFloat(r.text(name), 64)
	if err != nil || !(n >= 0 && n <= high) {
		r.mistakes.add("--%s is %q; allowed are numbers from 0 to %v", name, r.text(name), high)
	}
	return n
}

// workers reads what the replicas can do.
func (r *flagReader) workers() simulate.Workers {
	return simulate.Workers{
		Throughput: r.rate("throughput"),
		StartUp:    r.duration("startup", 0, time.Hour),
		Rebalance:  r.duration("rebalance", 0, time.Hour),
		PollDelay:  r.duration("poll-delay", 0, time.Hour),
		Batch:      int(r.whole("batch", 1, maxBatch)),
		BatchTime:  r.duration("batch-time", 0, time.Hour),
		Container:  r.container(),
	}
}

func (r *flagReader) objective() simulate.Objective {
	return simulate.Objective{
		Lag: int64(r.whole("lag-objective", 0, math.MaxInt64)),
		Age: r.duration("age-objective", 0, 365*24*time.Hour),
	}
}

// conditions reads what a replay meets beside the trace.
func (r *flagReader) conditions() simulate.Conditions {
	return simulate.Conditions{
		Acting:      simulate.Acting(r.choice("acting", actings()...)),
		Delay:       r.duration("delay", 0, time.Hour),
		FailedPolls: r.fraction("failed-polls", 1),
	}
}

func actings() []string {
	var names []string
	for _, way := range append(simulate.Ways(), simulate.KEDATrigger) {
		names = append(names, string(way))
	}
	return names
}

// simulation reads what is to be replayed, and by which workers, and returns the trace of each seed.
func (r *flagReader) simulation() (s console.Simulation, trace func(seed uint64) simulate.Trace) {
	s = console.Simulation{Workers: r.workers(), Objective: r.objective()}
	if slices.Contains(simulate.Names(), r.text("trace")) {
		trace = r.synthetic(&s)
	} else {
		r.recorded(&s)
		trace = func(uint64) simulate.Trace { return s.Trace }
	}
	s.Met = r.conditions()
	s.Seeds = int(r.whole("seeds", 1, maxSeeds))
	if s.Seed != nil {
		s.Met.Seed = *s.Seed
	}
	return s, trace
}

const (
	maxPartitions = 100_000
	maxBatch      = 100_000
	maxSeeds      = 1000
)

// options reads what shapes a synthetic trace.
func (r *flagReader) options() simulate.Options {
	return simulate.Options{
		Seed:       r.whole("seed", 0, math.MaxUint64),
		Duration:   r.duration("duration", time.Second, 365*24*time.Hour),
		Partitions: int(r.whole("partitions", 1, maxPartitions)),
		Rate:       r.rate("rate"),
		Skew:       r.fraction("skew", simulate.MaxSkew),
	}
}

// synthetic draws a trace, and returns how to draw it for each seed.
func (r *flagReader) synthetic(s *console.Simulation) func(seed uint64) simulate.Trace {
	r.notSince()
	before := len(r.mistakes)
	o := r.options()
	if len(r.mistakes) > before {
		return nil
	}
	o.Throughput = s.Workers.Throughput
	if r.text("trace") == "weekly" && !r.given("duration") {
		o.Duration = 7 * 24 * time.Hour
	}
	var err error
	if s.Trace, err = simulate.Generate(r.text("trace"), o); err != nil {
		r.mistakes.add("%v; shorten --duration or take fewer --partitions", err)
	}
	s.Seed = new(o.Seed)
	return func(seed uint64) simulate.Trace {
		if seed == o.Seed {
			return s.Trace
		}
		next := o
		next.Seed = seed
		t, _ := simulate.Generate(r.text("trace"), next) // which options are allowed does not depend on the seed
		return t
	}
}

// scalers are those that --policy, --policies and --compare choose.
func (r *flagReader) scalers(compare bool) []simulate.Scaler {
	all := []simulate.Scaler{simulate.Feedscale("default", config.DefaultPolicy(), r.duration("poll", time.Second, time.Hour)), simulate.KEDA()}
	builtIn := len(all)
	file, name := r.text("policies"), r.text("policy")
	if r.text("acting") == string(simulate.KEDATrigger) {
		if file != "" || name != "" && name != "keda" {
			r.mistakes.add("--acting keda asks no policy of feedscale; leave out --policies and --policy, or act in another way")
		}
		return all[1:2]
	}
	if compare && name != "" {
		r.mistakes.add("--policy and --compare are given; allowed is one of them")
	}
	if file != "" {
		policies, err := readPolicies(file)
		if err != nil {
			r.wrongPolicies(err)
			return nil
		}
		for _, p := range policies {
			all = append(all, r.policy(p))
		}
	}
	switch {
	case compare:
		return all
	case name == "" && file != "":
		return all[builtIn:]
	case name == "":
		return all[:1]
	}
	var names []string
	for _, s := range all {
		if s.Name() == name {
			return []simulate.Scaler{s}
		}
		names = append(names, s.Name())
	}
	r.mistakes.add("--policy is %q; allowed are %s, and the names in --policies", name, strings.Join(names, ", "))
	return nil
}

func readPolicies(file string) ([]config.NamedPolicy, error) {
	text, err := bounded.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return config.LoadPolicies(file, text)
}

// wrongPolicies lists the mistakes of a file one by one.
func (r *flagReader) wrongPolicies(err error) {
	mistakes, ok := errors.AsType[config.Mistakes](err)
	if !ok {
		r.mistakes.add("--policies: %v; allowed is a file of YAML or JSON that can be read", err)
	}
	for _, m := range mistakes {
		r.mistakes.add("%s", m)
	}
}
