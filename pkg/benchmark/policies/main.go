// Command policies is the laboratory in which the default policy is judged: it replays shapes of
// load against policies, in cells of partitions and start-up times, in every way of acting and with
// several delays, beside KEDA with an HPA, the best fixed count and a clairvoyant bound. `make
// policies` writes the tables of docs/decisions/0011-default-policy.md, and every number behind
// them into the CSVs beside it; `make policies FLAGS="-shapes hot"` prints a summary of a part.
// With -unseen it compares the default with KEDA on shapes that seeds draw (families.go,
// unseen.go).
//
// The model is that of package simulate. This package adds what a user does not choose: shapes
// (shapes.go, profiles.go), ways of acting (acting.go), a container whose request units run out
// (container.go) and the bound (bound.go). Start with Matrix.Run in matrix.go; tables.go prints
// what came of it.
//
// The command is internal to the project: its flags and its output may change in any release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/simulate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "policies:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var names []string
	for _, s := range shapes {
		names = append(names, s.Name)
	}
	m := Matrix{Workers: simulate.DefaultWorkers(), Objective: simulate.Objective{Lag: 1000, Age: time.Minute}}
	partitions := []int{8}
	startUps := []time.Duration{5 * time.Second, 30 * time.Second, time.Minute}
	delays := []time.Duration{actingDelay}
	f := flag.NewFlagSet("policies", flag.ContinueOnError)
	f.SetOutput(stderr)
	list(f, "shapes", "of what arrives, by `name`", &names, func(name string) (string, error) { return name, nil })
	list(f, "partitions", "`numbers` of partitions", &partitions, strconv.Atoi)
	list(f, "startups", "start-up `times` of a replica", &startUps, time.ParseDuration)
	list(f, "delays", "`times` until a decision takes effect, beside what the way of acting takes", &delays, time.ParseDuration)
	f.DurationVar(&m.Load.Duration, "duration", 24*time.Hour, "of a trace")
	f.Float64Var(&m.Load.Rate, "rate", 40, "transactions per second on average")
	f.Float64Var(&m.Workers.Throughput, "throughput", m.Workers.Throughput, "transactions per second of a replica")
	f.Uint64Var(&m.Seed, "seed", 1, "the first seed")
	f.IntVar(&m.Seeds, "seeds", 2, "number of seeds")
	f.Float64Var(&m.Container.RUPerChange, "ru-per-change", 0, "request units to read a change and to process it")
	f.IntVar(&m.Container.RUPerSecond, "ru-limit", 0, "RU/s of the container; 0 = no limit")
	follow := f.Int("ru-max", 0, "RU/s up to which the throughput follows the replicas; 0 = it stays")
	policies := f.String("policies", "", "a `file` of policies, as for feedscale simulate, beside the default")
	var unseen Unseen
	shapesOf := f.String("unseen", "", "compare the default with KEDA on shapes drawn by `seeds`, as 0-78: every second one from the first to the last")
	f.BoolVar(&unseen.Java, "java", false, "with -unseen, leases move as Java's library moves them")
	polls := []time.Duration{15 * time.Second, 30 * time.Second, time.Minute}
	list(f, "polls", "with -unseen, poll `intervals` of the default", &polls, time.ParseDuration)
	record := f.String("record", "", "`path` of a decision record without .md, whose tables and .csv are written")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 || m.Seeds < 1 {
		return fmt.Errorf("unexpected %q, or no seeds; see -help", f.Args())
	}
	if *shapesOf != "" {
		var first, last uint64
		if _, err := fmt.Sscanf(*shapesOf, "%d-%d", &first, &last); err != nil || last < first {
			return fmt.Errorf("-unseen is %q; it has two seeds, as in 0-78", *shapesOf)
		}
		for seed := first; seed <= last; seed += 2 {
			unseen.Shapes = append(unseen.Shapes, seed)
		}
		unseen.Seconds, unseen.Partitions, unseen.StartUps, unseen.Polls, unseen.Seeds = int(m.Load.Duration/time.Second), partitions, startUps, polls, m.Seeds
		return unseen.judge(ctx, *record, stdout, stderr)
	}
	if *follow > 0 {
		m.Container.Follow = &scaling.ThroughputPolicy{Max: *follow, ScaleDownAfter: time.Hour}
	}
	own := []simulate.Policy{simulate.Feedscale("default", config.DefaultPolicy(), simulate.DefaultEvery)}
	if *policies != "" {
		text, err := bounded.ReadFile(*policies)
		if err != nil {
			return err
		}
		named, err := config.LoadPolicies(*policies, text)
		if err != nil {
			return err
		}
		for _, p := range named {
			own = append(own, simulate.Feedscale(p.Name, p.Policy, p.Every))
		}
	}
	m.Contenders = contenders(own, delays)
	meetings, err := m.Run(ctx, cells(shapesNamed(names), partitions, startUps), func(done, all int) {
		fmt.Fprintf(stderr, "\r%d of %d replays of a cell", done, all)
	})
	fmt.Fprintln(stderr)
	if err != nil {
		return err
	}
	if *record != "" {
		return m.write(*record, meetings)
	}
	return m.writeSummary(stdout, meetings)
}

// contenders returns policies with every way of acting, and KEDA, with every delay.
func contenders(policies []simulate.Policy, delays []time.Duration) (all []Contender) {
	for _, delay := range delays {
		for _, policy := range policies {
			for _, acting := range ways {
				all = append(all, Contender{policy, acting, delay})
			}
		}
		all = append(all, Contender{simulate.KEDA(), KEDATrigger, delay})
	}
	return all
}

// list adds a flag whose value is a list with commas.
func list[T any](f *flag.FlagSet, name, usage string, values *[]T, parse func(string) (T, error)) {
	f.Func(name, usage+", with commas between them; by default "+fmt.Sprint(*values), func(text string) error {
		*values = nil
		for part := range strings.SplitSeq(text, ",") {
			value, err := parse(part)
			if err != nil {
				return err
			}
			*values = append(*values, value)
		}
		return nil
	})
}

// write rewrites the tables of a decision record and the CSV beside it.
func (m Matrix) write(record string, meetings []Meeting) error {
	text, err := os.ReadFile(record + ".md")
	if err != nil {
		return err
	}
	page, err := withTable(string(text), figuresHead, m.figures(meetings))
	if err == nil {
		page, err = withTable(page, missesHead, m.misses(meetings))
	}
	if err != nil {
		return fmt.Errorf("%s.md: %w", record, err)
	}
	var lines strings.Builder
	if err := m.writeCSV(&lines, meetings); err != nil {
		return err
	}
	if err := os.WriteFile(record+".csv", []byte(lines.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(record+".md", []byte(page), 0o644)
}

// withTable replaces the rows of a page's table below its header.
func withTable(page, head, lines string) (string, error) {
	before, after, found := strings.Cut(page, head)
	if !found {
		return "", fmt.Errorf("there is no table with the head %q", head)
	}
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	return before + head + lines + after, nil
}
