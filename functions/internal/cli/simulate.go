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
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/simulate"
	"github.com/feedscale/feedscale/pkg/state"
)

// Simulate replays a trace, built-in or recorded, against policies, and prints what each of them would
// have cost and kept.
func Simulate(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "simulate", Short: "replay a trace against policies, to tune them", GroupID: GroupTry,
		Example: "feedscale simulate --trace daily --compare\n" +
			"feedscale simulate --trace history:orders --policies policies.yaml",
		Annotations: Settings("FEEDSCALE_URL", "FEEDSCALE_API_KEY", "FEEDSCALE_STATE", "NO_COLOR", "COLUMNS"),
	}
	s := simulation{
		env: env, flags: flagsOf(c), trace: "daily", since: 168 * time.Hour, poll: simulate.DefaultEvery,
		options: simulate.Options{Seed: 1, Duration: 24 * time.Hour, Partitions: 8, Rate: 40},
	}
	s.Seeds, s.Workers, s.Objective = 1, simulate.DefaultWorkers(), simulate.Objective{Lag: 1000, Age: time.Minute}
	s.addFlags()
	c.RunE = func(c *cobra.Command, _ []string) error { return s.run(c.Context()) }
	return c
}

// simulation is what the flags of simulate say.
type simulation struct {
	console.Simulation
	source
	env   Env
	flags *flags

	trace, policies, policy, output string
	compare                         bool
	since, poll                     time.Duration
	options                         simulate.Options
}

func (s *simulation) addFlags() {
	const least, most = 0.001, simulate.MaxRate
	f := s.flags
	f.text(&s.trace, "trace", "name", strings.Join(simulate.Names(), ", ")+
		"; history:PROCESSOR, what is recorded of it; or a file that feedscale history wrote as JSON or CSV")
	f.complete("trace", simulate.Names()...)
	number(f, &s.since, "since", durations, time.Second, year, "how far to look back in history:PROCESSOR")
	f.url(&s.url)
	number(f, &s.options.Duration, "duration", durations, time.Second, year, "the length of a built-in trace")
	number(f, &s.options.Seed, "seed", seeds, 0, math.MaxUint64, "the same one gives the same built-in trace, and the same chances")
	number(f, &s.Seeds, "seeds", wholeNumbers, 1, 1000, "replays, each with the next seed; the results are means")
	number(f, &s.options.Partitions, "partitions", wholeNumbers, 1, 100_000, "partitions; of a recorded trace its own by default")
	number(f, &s.options.Rate, "rate", rates, least, most, "transactions per second, on average, of a built-in trace; sparse has its own")
	number(f, &s.Workers.Throughput, "throughput", rates, least, most,
		"transactions per second that one replica works off; with a recorded trace the median recorded by default")
	number(f, &s.Workers.StartUp, "startup", durations, 0, time.Hour, "from the moment a replica is made to the moment it works")
	number(f, &s.poll, "poll", durations, time.Second, time.Hour, "between two polls of default; those of --policies have their own (every)")
	f.text(&s.policies, "policies", "path", "policies to try out, as a file")
	f.text(&s.policy, "policy", "name", "default, keda, or one of --policies; by default all of --policies, or else default")
	f.BoolVar(&s.compare, "compare", false, "default, keda and all of --policies side by side, with the best fixed count")
	f.output(&s.output, "table", "json")

	f.removed(inLaboratory, "matrix", "skew", "acting", "delay", "failed-polls", "rebalance", "poll-delay",
		"batch", "batch-time", "ru-per-change", "ru-limit")
	f.removed("a table always has its charts, --output json has none", "chart")
	f.removed("the objectives are a lag of 1000 and an age of 60s; for others --output json has the series",
		"lag-objective", "age-objective")
	f.Lookup("matrix").NoOptDefVal, f.Lookup("chart").NoOptDefVal = "true", "true"
}

// inLaboratory says where flags and traces of earlier releases are now.
const inLaboratory = "it is in the laboratory of the sources, make policies (https://github.com/feedscale/feedscale/blob/main/docs/tune.md)"

func (s *simulation) run(ctx context.Context) error {
	scalers := s.scalers()
	draw, err := s.traces(ctx)
	if err == nil {
		err = s.flags.mistakes()
	}
	if err != nil {
		return err
	}
	var percent atomic.Int64
	w := waitFor(s.env, func() string { return fmt.Sprintf("the replays (%d %%)", percent.Load()) })
	s.Results, err = simulate.Comparison{
		Trace: draw, Seed: s.options.Seed, Seeds: s.Seeds, Workers: s.Workers, Objective: s.Objective,
		Scalers: scalers, BestFixed: s.compare,
		Told: func(done float64) { percent.Store(int64(100 * done)) },
	}.Run(ctx)
	w.end()
	if err != nil {
		return err
	}
	if s.output == "json" {
		return console.WriteJSON(s.env.Stdout, s.Report())
	}
	return s.Write(s.env.Stdout, s.env.Style())
}

// traces returns the trace of each seed. The error says why a history could not be read, which is no
// mistake in the flags.
func (s *simulation) traces(ctx context.Context) (draw func(seed uint64) simulate.Trace, err error) {
	if !slices.Contains(simulate.Names(), s.trace) {
		recording, err := s.recording(ctx)
		s.Trace, s.Guessed = recording.Trace, recording.Guessed
		if recording.Drain != nil && !s.flags.Changed("throughput") {
			s.Workers.Throughput = *recording.Drain
		}
		return func(uint64) simulate.Trace { return s.Trace }, err
	}
	s.only("history:PROCESSOR", "since", "url")
	s.Seed = &s.options.Seed
	draw = func(seed uint64) simulate.Trace {
		o := s.options
		o.Seed = seed
		t, _ := simulate.Generate(s.trace, o) // which options are allowed does not depend on the seed
		return t
	}
	s.Trace, err = simulate.Generate(s.trace, s.options)
	s.flags.mistake(err != nil, "%v; shorten --duration or take fewer --partitions", err)
	return draw, nil
}

// only holds that flags of other traces are left out.
func (s *simulation) only(of string, names ...string) {
	for _, name := range names {
		s.flags.mistake(s.flags.Changed(name), "--%s is for --trace %s; leave it out with another trace", name, of)
	}
}

// scalers are those that --policy, --policies and --compare choose.
func (s *simulation) scalers() []simulate.Scaler {
	all := []simulate.Scaler{simulate.Feedscale("default", config.DefaultPolicy(), s.poll), simulate.KEDA()}
	own := all[:1]
	if s.policies != "" {
		own = s.named()
		all = append(all, own...)
	}
	switch {
	case s.compare && s.policy != "":
		s.flags.mistake(true, "--policy and --compare are given; allowed is one of them")
		return nil
	case s.compare:
		return all
	case s.policy == "":
		return own
	}
	var names []string
	for _, scaler := range all {
		if scaler.Name() == s.policy {
			return []simulate.Scaler{scaler}
		}
		names = append(names, scaler.Name())
	}
	s.flags.mistake(true, "--policy is %q; allowed are %s, and the names in --policies", s.policy, strings.Join(names, ", "))
	return nil
}

// named are the policies of --policies. The mistakes of the file are listed one by one.
func (s *simulation) named() (scalers []simulate.Scaler) {
	text, err := bounded.ReadFile(s.policies)
	if err != nil {
		s.flags.mistake(true, "--policies: %v; allowed is a file of YAML or JSON that can be read", err)
		return nil
	}
	policies, err := config.LoadPolicies(s.policies, text)
	mistakes, _ := errors.AsType[config.Mistakes](err)
	for _, m := range mistakes {
		s.flags.mistake(true, "%s", m)
	}
	for _, p := range policies {
		scalers = append(scalers, simulate.Feedscale(p.Name, p.Policy, p.Every))
	}
	return scalers
}

// recording makes the trace of what was recorded, in the state or in a file.
func (s *simulation) recording(ctx context.Context) (r simulate.Recording, err error) {
	s.only("with a built-in name", "seed", "duration", "rate")
	partitions := 0
	if s.flags.Changed("partitions") {
		partitions = s.options.Partitions
	}
	var samples []state.Sample
	name, stored := strings.CutPrefix(s.trace, "history:")
	switch {
	case !stored:
		s.only("history:PROCESSOR", "since", "url")
		name, samples, err = readHistory(s.trace)
	case name == "":
		err = errors.New("history: names no processor; allowed is, for example, history:orders")
	case len(s.flags.wrong) > 0:
		return r, nil
	default:
		now := s.env.Now().UTC()
		if samples, err = recorded(ctx, s.env, s.source, name, window{now.Add(-s.since), now}); err != nil {
			return r, err
		}
	}
	if err == nil {
		r, err = simulate.FromSamples(name, samples, partitions)
	}
	s.flags.mistake(err != nil, "--trace: %v", err)
	return r, nil
}

// movedTraces are built-in traces of earlier releases.
var movedTraces = []string{"workday", "weekly", "hot", "zipf", "moving", "overload", "outrun"}

// readHistory reads what `feedscale history` printed, as JSON or as CSV, and whose it is: of CSV only
// the file's name can tell.
func readHistory(file string) (name string, samples []state.Sample, err error) {
	text, err := bounded.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist) && slices.Contains(movedTraces, file):
		return "", nil, fmt.Errorf("%s is no longer built in: %s", file, inLaboratory)
	case errors.Is(err, os.ErrNotExist):
		return "", nil, fmt.Errorf("there is no %q; allowed are %s, history:PROCESSOR, or a file that is there",
			file, strings.Join(simulate.Names(), ", "))
	case err != nil:
		return "", nil, fmt.Errorf("%w; allowed is a file that can be read", err)
	}
	name = filepath.Base(file)
	if text = bytes.TrimSpace(text); !bytes.HasPrefix(text, []byte("{")) {
		samples, err = readHistoryCSV(text)
	} else {
		err = json.Unmarshal(text, &struct {
			Processor *string         `json:"processor"`
			Samples   *[]state.Sample `json:"samples"`
		}{&name, &samples})
	}
	untimed := slices.IndexFunc(samples, func(s state.Sample) bool { return s.Time.IsZero() })
	if err == nil && untimed >= 0 {
		err = fmt.Errorf("sample %d has no time", untimed+1)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w; allowed is what feedscale history prints with --output json or csv", file, err)
	}
	return name, samples, err
}

// readHistoryCSV reads lines whose columns the first line names, in any order.
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
		samples[i].Complete = true // unless the line says otherwise
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
