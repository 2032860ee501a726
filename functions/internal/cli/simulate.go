package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// Simulate replays a trace, built-in or recorded, against policies, and prints the replicas, the
// lag and the age of each.
func Simulate(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "simulate", "replay a trace against policies, to tune them", program.GroupTry
	f.Example = "feedscale simulate --trace daily --compare\n" +
		"feedscale simulate --trace history:orders --policies policies.yaml"
	f.Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "NO_COLOR", "COLUMNS")
	s := simulation{
		env: env, flags: f, trace: "daily", since: 168 * time.Hour, poll: simulate.DefaultEvery,
		options: simulate.Options{Seed: 1, Duration: 24 * time.Hour, Partitions: 8, Rate: 40},
	}
	s.Seeds, s.Workers, s.Objective = 1, simulate.DefaultWorkers(), simulate.Objective{Lag: 1000, Age: time.Minute}
	s.addFlags()
	f.Check(func([]string) {
		s.choose()
		s.read()
	})
	f.Run(func(ctx context.Context, _ []string) error { return s.run(ctx) })
}

// simulation is the flags of simulate.
type simulation struct {
	console.Simulation
	source
	env   program.Env
	flags *program.Flags

	trace, policies, policy, output string
	compare                         bool
	since, poll                     time.Duration
	options                         simulate.Options
	scalers                         []simulate.Scaler
}

func (s *simulation) addFlags() {
	const least, most = 0.001, simulate.MaxRate
	f := s.flags
	f.Text(&s.trace, "trace", "name", strings.Join(simulate.Names(), ", ")+
		"; history:PROCESSOR for its recorded history; or a JSON or CSV file of feedscale history")
	f.Complete("trace", simulate.Names()...)
	program.Number(f, &s.since, "since", program.Durations, time.Second, year, "how far to look back in history:PROCESSOR")
	s.urlFlag(f)
	program.Number(f, &s.options.Duration, "duration", program.Durations, time.Second, year, "the length of a built-in trace")
	program.Number(f, &s.options.Seed, "seed", program.Seeds, 0, math.MaxUint64, "the same seed gives the same built-in trace, and the same chances")
	program.Number(f, &s.Seeds, "seeds", program.WholeNumbers, 1, 1000, "how many replays, each with the next seed; the results are means")
	program.Number(f, &s.options.Partitions, "partitions", program.WholeNumbers, 1, 100_000, "how many partitions; a recorded trace has its own by default")
	program.Number(f, &s.options.Rate, "rate", program.Rates, least, most, "mean transactions per second of a built-in trace; sparse has its own")
	program.Number(f, &s.Workers.Throughput, "throughput", program.Rates, least, most,
		"transactions per second that one replica processes; by default, a recorded trace has its recorded median")
	program.Number(f, &s.Workers.StartUp, "startup", program.Durations, 0, time.Hour, "the time from the creation of a replica until it works")
	program.Number(f, &s.poll, "poll", program.Durations, time.Second, time.Hour, "the interval between two polls of the policy default; those of --policies have their own (every)")
	f.Text(&s.policies, "policies", "path", "a file of policies to try out")
	f.Text(&s.policy, "policy", "name", "default, keda, or one of --policies (default all of --policies, or else default)")
	f.BoolVar(&s.compare, "compare", false, "compare default, keda and all of --policies with the best fixed count")
	f.Output(&s.output, "table", "json")

	const inLaboratory = "it is in the laboratory of the sources, make policies (https://github.com/feedscale/feedscale/blob/main/docs/tune.md)"
	f.Removed(inLaboratory, "matrix", "skew", "acting", "delay", "failed-polls", "rebalance", "poll-delay",
		"batch", "batch-time", "ru-per-change", "ru-limit")
	f.Removed("a table always has its charts, --output json has none", "chart")
	f.Removed("the objectives are a lag of 1000 and an age of 60s; for others --output json has the series",
		"lag-objective", "age-objective")
	f.Lookup("matrix").NoOptDefVal, f.Lookup("chart").NoOptDefVal = "true", "true"
}

func (s *simulation) run(ctx context.Context) error {
	if name, stored := strings.CutPrefix(s.trace, "history:"); stored {
		now := s.env.Now().UTC()
		samples, err := recorded(ctx, s.env, &s.source, name, now.Add(-s.since), now)
		if err != nil {
			return err
		}
		s.replay(report.History{Processor: name, Samples: samples}, nil)
		if err := s.flags.Mistakes(); err != nil {
			return err
		}
	}
	const what = "the replays (%d %%)"
	results, err := program.Await(ctx, s.env, fmt.Sprintf(what, 0), func(say func(string)) ([]simulate.Result, error) {
		return simulate.Comparison{
			Trace: s.draw, Seed: s.options.Seed, Seeds: s.Seeds, Workers: s.Workers, Objective: s.Objective,
			Scalers: s.scalers, BestFixed: s.compare,
			Told: func(done float64) { say(fmt.Sprintf(what, int(100*done))) },
		}.Run(ctx)
	})
	if err != nil {
		return err
	}
	s.Results = results
	return show(s.env, s.output, s.Report(), func() error { return s.Write(s.env.Stdout, s.env.Style()) })
}

// draw is the trace of a seed.
func (s *simulation) draw(seed uint64) simulate.Trace {
	if s.Seed == nil {
		return s.Trace
	}
	o := s.options
	o.Seed = seed
	t, _ := simulate.Generate(s.trace, o) // the first seed showed that the options are allowed
	return t
}

// read makes the trace, unless it is in the state.
func (s *simulation) read() {
	name, stored := strings.CutPrefix(s.trace, "history:")
	builtIn := slices.Contains(simulate.Names(), s.trace)
	if !stored {
		s.only("history:PROCESSOR", "since", "url")
	}
	if !builtIn {
		s.only("with a built-in name", "seed", "duration", "rate")
	}
	switch {
	case builtIn:
		var err error
		s.Seed = &s.options.Seed
		s.Trace, err = simulate.Generate(s.trace, s.options)
		s.flags.Mistake(err != nil, "%v; shorten --duration or take fewer --partitions", err)
	case !stored:
		s.replay(readHistory(s.trace))
	default:
		s.flags.Mistake(name == "", "--trace: history: names no processor; allowed is, for example, history:orders")
	}
}

// replay makes the trace from a history, which could be read if err is nil.
func (s *simulation) replay(history report.History, err error) {
	partitions := 0
	if s.flags.Changed("partitions") {
		partitions = s.options.Partitions
	}
	var recording simulate.Recording
	if err == nil {
		recording, err = simulate.FromSamples(history.Processor, history.Samples, partitions)
	}
	s.flags.Mistake(err != nil, "--trace: %v", err)
	s.Trace, s.Guessed = recording.Trace, recording.Guessed
	if recording.Drain > 0 && !s.flags.Changed("throughput") {
		s.Workers.Throughput = recording.Drain
	}
}

// only refuses flags that are for other traces.
func (s *simulation) only(of string, names ...string) {
	for _, name := range names {
		s.flags.Mistake(s.flags.Changed(name), "--%s is for --trace %s; leave it out with another trace", name, of)
	}
}

// choose finds the policies of --policy, --policies and --compare.
func (s *simulation) choose() {
	all := []simulate.Scaler{simulate.Feedscale("default", config.DefaultPolicy(), s.poll), simulate.KEDA()}
	s.scalers = all[:1]
	if s.policies != "" {
		text, err := bounded.ReadFile(s.policies)
		s.flags.Mistake(err != nil, "--policies: %v; allowed is a file of YAML or JSON that can be read", err)
		policies, err := config.LoadPolicies(s.policies, text)
		if text != nil {
			s.flags.Wrong(err)
		}
		for _, p := range policies {
			all = append(all, simulate.Feedscale(p.Name, p.Policy, p.Every))
		}
		s.scalers = all[2:]
	}
	s.flags.Mistake(s.compare && s.policy != "", "--policy and --compare are given; allowed is one of them")
	if s.compare {
		s.scalers = all
	} else if s.policy != "" {
		at := slices.IndexFunc(all, func(p simulate.Scaler) bool { return p.Name() == s.policy })
		s.flags.Mistake(at < 0, "--policy is %q; allowed are default, keda, and the names in --policies", s.policy)
		s.scalers = all[max(0, at):][:1]
	}
}

// readHistory reads JSON or CSV of `feedscale history`. The processor of CSV is the name of the
// file.
func readHistory(file string) (report.History, error) {
	history := report.History{Processor: filepath.Base(file)}
	text, err := bounded.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return history, fmt.Errorf("there is no %q; allowed are %s, history:PROCESSOR, or a file that is there",
			file, strings.Join(simulate.Names(), ", "))
	case err != nil:
		return history, fmt.Errorf("%w; allowed is a file that can be read", err)
	}
	if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("{")) {
		err = json.Unmarshal(text, &history)
	} else {
		history.Samples, err = readHistoryCSV(text)
	}
	untimed := slices.IndexFunc(history.Samples, func(s state.Sample) bool { return s.Time.IsZero() })
	if err == nil && untimed >= 0 {
		err = fmt.Errorf("sample %d has no time", untimed+1)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w; allowed is what feedscale history prints with --output json or csv", file, err)
	}
	return history, err
}

// readHistoryCSV reads lines with the columns of the first line, in any order.
func readHistoryCSV(text []byte) ([]state.Sample, error) {
	columns := []string{"time", "lag", "arrivalPerSecond", "changeAgeSeconds", "complete", "partitionCount", "drainPerReplica"}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("it is neither JSON nor CSV with a line of columns (%v)", err)
	}
	for _, column := range columns[:3] {
		if !slices.Contains(lines[0], column) {
			return nil, fmt.Errorf("it has no column %s", column)
		}
	}
	samples := make([]state.Sample, len(lines)-1)
	for i, line := range lines[1:] {
		samples[i].Complete = true // unless the line has the column
		for at, column := range lines[0] {
			if line[at] == "" || !slices.Contains(columns, column) {
				continue
			}
			value := line[at] // as in the JSON
			if column == "time" {
				value = fmt.Sprintf("%q", value)
			}
			if json.Unmarshal(fmt.Appendf(nil, "{%q: %s}", column, value), &samples[i]) != nil {
				return nil, fmt.Errorf("sample %d: %s is %q, which cannot be read", i+1, column, line[at])
			}
		}
	}
	return samples, nil
}
