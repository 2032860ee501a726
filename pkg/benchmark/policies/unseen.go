package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// Unseen compares the default policy with KEDA on drawn shapes.
type Unseen struct {
	Shapes     []uint64 // seeds of shapes
	Seconds    int      // length of a trace
	Partitions []int
	StartUps   []time.Duration
	Polls      []time.Duration // poll intervals of the default; KEDA polls at the same
	Seeds      int             // for arrivals and all other randomness; at least 1
	Java       bool            // leases move as in Java
}

// actingDelay is the time until a decision takes effect, in addition to the consumer's own.
const actingDelay = 5 * time.Second

// Trial is the results for a shape under some conditions: means over the seeds.
type Trial struct {
	Family     string
	Shape      uint64
	Partitions int
	StartUp    time.Duration
	KEDA       simulate.Result
	Own        []simulate.Result // by poll interval
}

// inWorld is a Scaler that applies the events of a shape to its workers.
type inWorld struct {
	simulate.Scaler
	happens func(r *simulate.Replay, second int)
}

// Begin joins a replay.
func (w inWorld) Begin(r *simulate.Replay) func(second int) int {
	act := w.Scaler.Begin(r)
	if w.happens == nil {
		return act
	}
	return func(second int) int {
		w.happens(r, second)
		return act(second)
	}
}

// Run replays every shape under every condition, in parallel, and reports each one that is done.
func (u Unseen) Run(ctx context.Context, told func(done, all int)) ([]Trial, error) {
	var trials []Trial
	for _, shape := range u.Shapes {
		for _, n := range u.Partitions {
			for _, startUp := range u.StartUps {
				trials = append(trials, Trial{Shape: shape, Partitions: n, StartUp: startUp})
			}
		}
	}
	var lock sync.Mutex
	done := 0
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range trials {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			u.try(&trials[i])
			lock.Lock()
			defer lock.Unlock()
			done++
			told(done, len(trials))
			return nil
		})
	}
	return trials, g.Wait()
}

// try replays one shape under one set of conditions.
func (u Unseen) try(t *Trial) {
	d := draw(t.Shape, u.Seconds, t.Partitions)
	t.Family, d.Workers.StartUp, d.Workers.Java = d.Family, t.StartUp, u.Java
	// Over the objectives: more is pending than arrives in 25 s, or a change is older than a
	// minute.
	objective := simulate.Objective{Lag: int64(25 * d.mean()), Age: time.Minute}
	contenders := []Contender{{simulate.KEDA(), KEDATrigger, actingDelay}}
	for _, poll := range u.Polls {
		contenders = append(contenders, Contender{simulate.Feedscale("default", config.DefaultPolicy(), poll), Consumer, actingDelay})
	}
	results := make([][]simulate.Result, len(contenders))
	for seed := range uint64(u.Seeds) {
		trace := d.arrivals(t.Partitions, seed)
		for i, c := range contenders {
			r := simulate.Run(trace, d.Workers, inWorld{c, d.happens}, simulate.Conditions{Seed: seed}, objective)
			r.Series = nil // the series would not fit into memory
			results[i] = append(results[i], r)
		}
	}
	t.KEDA = simulate.Mean(results[0])
	for _, own := range results[1:] {
		t.Own = append(t.Own, simulate.Mean(own))
	}
}

// judge prints the tables, or writes them into a decision record with the figures of each cell
// beside it.
func (u Unseen) judge(ctx context.Context, record string, stdout, stderr io.Writer) error {
	trials, err := u.Run(ctx, func(done, all int) { fmt.Fprintf(stderr, "\r%d of %d cells", done, all) })
	fmt.Fprintln(stderr)
	if err != nil {
		return err
	}
	if record == "" {
		_, err = io.WriteString(stdout, unseenHead+u.families(trials)+"\n"+worstHead+u.worst(trials))
		return err
	}
	page, err := os.ReadFile(record + ".md")
	if err != nil {
		return err
	}
	text, err := withTable(string(page), unseenHead, u.families(trials))
	if err == nil {
		text, err = withTable(text, worstHead, u.worst(trials))
	}
	if err != nil {
		return fmt.Errorf("%s.md: %w", record, err)
	}
	var cells strings.Builder
	if err := u.writeCSV(&cells, trials); err != nil {
		return err
	}
	if err := os.WriteFile(record+"-unseen.csv", []byte(cells.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(record+".md", []byte(text), 0o644)
}

// sums are the totals of the trials of a family.
type sums struct {
	hours, over, actions float64
	cells, dominated     int
	worst                float64 // highest ratio to KEDA's hours
}

func (s *sums) add(own, keda simulate.Result) {
	s.hours, s.over, s.actions = s.hours+own.ReplicaHours, s.over+own.Over.Seconds(), s.actions+float64(own.Actions())
	s.cells++
	if dominated(own, keda) {
		s.dominated++
	}
	s.worst = max(s.worst, own.ReplicaHours/keda.ReplicaHours)
}

// dominated reports whether a is worse than b in both respects: over 1 % and 0.05 replica-hours
// more, and over 1 % and 10 s longer over the objectives.
func dominated(own, keda simulate.Result) bool {
	return own.ReplicaHours > max(1.01*keda.ReplicaHours, keda.ReplicaHours+0.05) &&
		own.Over.Seconds() > max(1.01*keda.Over.Seconds(), keda.Over.Seconds()+10)
}

// The headers of the tables of decision 0011.
const (
	unseenHead = "| family | KEDA + HPA | default, polls of 15 s | 30 s | 60 s | dominated, of | most × KEDA's hours |\n|---|---|---|---|---|---|---|\n"
	worstHead  = "| shape | family | partitions | start-up | poll | hours, KEDA's | seconds over, KEDA's | × hours |\n|---|---|---|---|---|---|---|---|\n"
	all        = "all"
)

// families returns the rows of the first table: for each family, and for all, hours / seconds over
// / actions, of KEDA and of the default with each poll interval.
func (u Unseen) families(trials []Trial) string {
	keda, own := make(map[string]*sums), make(map[string][]*sums)
	names := []string{}
	for _, f := range families {
		names = append(names, f.name)
	}
	names = append(names, all)
	for _, name := range names {
		keda[name] = &sums{}
		for range u.Polls {
			own[name] = append(own[name], &sums{})
		}
	}
	for _, t := range trials {
		for _, name := range []string{t.Family, all} {
			keda[name].add(t.KEDA, t.KEDA)
			for i := range t.Own {
				own[name][i].add(t.Own[i], t.KEDA)
			}
		}
	}
	var b strings.Builder
	for _, name := range names {
		k := keda[name]
		if k.cells == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s | %.0f / %.0f / %.0f |", name, k.hours, k.over, k.actions)
		dominated, worst := 0, 0.0
		for _, s := range own[name] {
			if name == all {
				fmt.Fprintf(&b, " **%+.1f / %+.1f / %+.1f %%** |", 100*(s.hours/k.hours-1), 100*(s.over/k.over-1), 100*(s.actions/k.actions-1))
			} else {
				fmt.Fprintf(&b, " %.0f / %.0f / %.0f |", s.hours, s.over, s.actions)
			}
			dominated, worst = dominated+s.dominated, max(worst, s.worst)
		}
		fmt.Fprintf(&b, " %d, %d | %.2f |\n", dominated, k.cells*len(u.Polls), worst)
	}
	return b.String()
}

// worst returns the rows of the second table: the ten trials with the highest ratio to KEDA's
// hours.
func (u Unseen) worst(trials []Trial) string {
	type line struct {
		Trial
		own  simulate.Result
		poll time.Duration
	}
	var lines []line
	for _, t := range trials {
		for i, own := range t.Own {
			lines = append(lines, line{t, own, u.Polls[i]})
		}
	}
	ratio := func(l line) float64 { return l.own.ReplicaHours / l.KEDA.ReplicaHours }
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(ratio(b), ratio(a)) })
	var b strings.Builder
	for _, l := range lines[:min(10, len(lines))] {
		fmt.Fprintf(&b, "| %d | %s | %d | %s s | %s s | %.1f, %.1f | %.0f, %.0f | %.2f |\n", l.Shape, l.Family, l.Partitions, whole(l.StartUp), whole(l.poll),
			l.own.ReplicaHours, l.KEDA.ReplicaHours, l.own.Over.Seconds(), l.KEDA.Over.Seconds(), ratio(l))
	}
	return b.String()
}

// writeCSV writes a line for each trial and policy.
func (u Unseen) writeCSV(w io.Writer, trials []Trial) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"shape", "family", "partitions", "startUpSeconds", "policy", "pollSeconds", "replicaHours", "secondsOver", "secondsOverLag",
		// the writer keeps an error until the end
		"secondsOverAge", "actions", "maxAgeSeconds", "left"})
	for _, t := range trials {
		for i, r := range slices.Concat([]simulate.Result{t.KEDA}, t.Own) {
			poll := ""
			if i > 0 {
				poll = whole(u.Polls[i-1])
			}
			_ = out.Write([]string{strconv.FormatUint(t.Shape, 10), t.Family, strconv.Itoa(t.Partitions), whole(t.StartUp), r.Scaler, poll,
				strconv.FormatFloat(r.ReplicaHours, 'f', 3, 64), whole(r.Over), whole(r.OverLag), whole(r.OverAge), strconv.Itoa(r.Actions()), whole(r.MaxAge), strconv.FormatInt(r.Left, 10)})
		}
	}
	out.Flush()
	return out.Error()
}
