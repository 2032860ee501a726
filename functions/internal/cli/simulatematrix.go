package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// simulateMatrix replays every synthetic trace under all conditions:
// docs/decisions/0011-default-policy.md is made of it.
func simulateMatrix(ctx context.Context, env Env, in *flagReader, compare bool, output string) error {
	for _, name := range []string{"acting", "policy"} {
		if in.given(name) {
			in.mistakes.add("--%s is given with --matrix, which has every one; leave it out", name)
		}
	}
	if compare {
		in.mistakes.add("--compare and --matrix are given; allowed is one of them")
	}
	if output == "json" {
		in.mistakes.add("--output is \"json\"; --matrix has table, which sums it up, and csv, which has every cell")
	}
	if !in.given("seeds") {
		_ = in.flags.Set("seeds", "5")
	}
	in.notSince()
	m := simulate.Matrix{
		Traces: simulate.Names(), Options: in.options(), Seeds: int(in.whole("seeds", 1, maxSeeds)),
		Workers: in.workers(), Conditions: in.conditions(), Objective: in.objective(),
		StartUps: simulate.RecordStartUps, Delays: simulate.RecordDelays,
	}
	m.Options.Throughput = m.Workers.Throughput
	for _, s := range in.scalers(true) {
		if s.Name() != simulate.KEDA().Name() {
			m.Policies = append(m.Policies, s)
		}
	}
	if in.given("trace") {
		m.Traces = []string{in.choice("trace", simulate.Names()...)}
	}
	if in.given("startup") {
		m.StartUps = []time.Duration{m.Workers.StartUp}
	}
	if in.given("delay") {
		m.Delays = []time.Duration{m.Conditions.Delay}
	}
	if err := in.mistakes.refuse(env.Stderr, "simulate"); err != nil {
		return err
	}
	cells, err := m.Run(ctx, progressBar(env))
	if err != nil {
		return err
	}
	if output == "csv" {
		return console.WriteMatrixCSV(env.Stdout, cells, m.Seeds)
	}
	return console.WriteMatrix(env.Stdout, cells, env.Style())
}

// progressBar draws how far the replays are, where stderr is a terminal; else it is nil.
func progressBar(env Env) simulate.Progress {
	if _, ok := env.errTerminal(); !ok {
		return nil
	}
	return drawProgress(env.terminal())
}

// drawProgress draws a bar into one line, anew at each percent, and wipes it at the end.
func drawProgress(w io.Writer) simulate.Progress {
	const width = 40
	shown := -1
	return func(done, all int) {
		percent := 100 * done / all
		if percent == shown {
			return
		}
		shown = percent
		full := width * done / all
		fmt.Fprintf(w, "\r%s%s %3d %% of %d replays", strings.Repeat("█", full), strings.Repeat("░", width-full), percent, all)
		if done == all {
			fmt.Fprint(w, "\r\x1b[K")
		}
	}
}
