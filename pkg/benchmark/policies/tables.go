package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

// columns are the columns of the CSV, which has a line for each contender in each cell.
var columns = []string{
	"trace", "partitions", "startUpSeconds", "delaySeconds", "acting", "policy", "seeds",
	"replicaHours", "secondsOverLag", "secondsOverAge", "actions", "scaleOuts", "scaleIns",
	"maxLag", "maxAgeSeconds", "p99AgeSeconds", "arrived", "processed", "left", "fixedReplicas",
}

// writeCSV writes a line for each contender in each cell. The best fixed count and the bound follow
// the contenders of each delay, without a way of acting. Columns that do not apply to the bound are
// empty.
func (m Matrix) writeCSV(w io.Writer, meetings []Meeting) error {
	out := csv.NewWriter(w)
	_ = out.Write(columns) // the writer keeps an error until the end
	for _, meeting := range meetings {
		line := func(c Contender, r simulate.Result) {
			_ = out.Write(append([]string{
				meeting.Shape.Name, strconv.Itoa(meeting.Partitions), whole(meeting.StartUp), whole(c.Delay),
				string(c.Acting), r.Scaler, strconv.Itoa(m.Seeds),
			}, numbers(r)...))
		}
		for i, c := range m.Contenders {
			line(c, meeting.Results[i].Result)
			if i+1 == len(m.Contenders) || m.Contenders[i+1].Delay != c.Delay {
				line(Contender{Delay: c.Delay}, meeting.Fixed.Result)
				line(Contender{Delay: c.Delay}, meeting.Bound.Result)
			}
		}
	}
	out.Flush()
	return out.Error()
}

// whole formats a duration as whole seconds.
func whole(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// numbers are the columns with the numbers of a result.
func numbers(r simulate.Result) []string {
	line := []string{
		strconv.FormatFloat(r.ReplicaHours, 'f', -1, 64), whole(r.OverLag), whole(r.OverAge),
		strconv.Itoa(r.Actions()), strconv.Itoa(r.Out), strconv.Itoa(r.In),
	}
	arrived := strconv.FormatInt(r.Arrived, 10)
	if r.Scaler == boundName {
		return append(line, "", "", "", arrived, "", "", "")
	}
	fixed := ""
	if r.Fixed > 0 {
		fixed = strconv.Itoa(r.Fixed)
	}
	return append(line, strconv.FormatInt(r.MaxLag, 10), whole(r.MaxAge), whole(r.P99Age),
		arrived, strconv.FormatInt(r.Processed, 10), strconv.FormatInt(r.Left, 10), fixed)
}

// duel is the results of a contender and of KEDA in a cell, with the same delay.
type duel struct {
	Cell
	Contender
	own, keda, bound, fixed Result
}

// duels returns the duels of the contenders that a function selects, by the shape of the cell.
func (m Matrix) duels(meetings []Meeting, want func(Contender) bool) map[string][]duel {
	of := make(map[string][]duel)
	for _, meeting := range meetings {
		for i, c := range m.Contenders {
			if !want(c) {
				continue
			}
			keda := slices.IndexFunc(m.Contenders, func(k Contender) bool {
				return k.Acting == KEDATrigger && k.Delay == c.Delay
			})
			name := meeting.Shape.Name
			of[name] = append(of[name], duel{
				meeting.Cell, c, meeting.Results[i], meeting.Results[keda], meeting.Bound, meeting.Fixed,
			})
		}
	}
	return of
}

// wish is a goal for a policy in a cell.
type wish struct {
	name string
	// by how much the goal is missed; 0 or less if it is met
	miss func(own, keda, bound simulate.Result) float64
	says func(miss float64) string
	of   []string // shapes; nil = all
}

// wishes are the goals of decision 0011.
var wishes = []wish{
	{
		name: "hours",
		miss: func(own, keda, _ simulate.Result) float64 { return own.ReplicaHours/keda.ReplicaHours - 1 },
		says: func(miss float64) string { return fmt.Sprintf("+%.1f %%", 100*miss) },
	},
	{
		name: "over the lag",
		miss: func(own, keda, _ simulate.Result) float64 { return (own.OverLag - keda.OverLag).Seconds() },
		says: func(miss float64) string { return fmt.Sprintf("+%.0f s", miss) },
	},
	{
		name: "over the age",
		miss: func(own, keda, _ simulate.Result) float64 { return (own.OverAge - keda.OverAge).Seconds() },
		says: func(miss float64) string { return fmt.Sprintf("+%.0f s", miss) },
	},
	{
		name: "actions", // at most a third of KEDA's
		miss: func(own, keda, _ simulate.Result) float64 {
			return float64(own.Actions())/float64(keda.Actions()) - mostActions
		},
		says: func(miss float64) string { return fmt.Sprintf("%.2f of KEDA's", miss+mostActions) },
	},
	{
		name: "bound", // at most 1.3 times its hours
		miss: func(own, _, bound simulate.Result) float64 { return own.ReplicaHours/bound.ReplicaHours - mostBound },
		says: func(miss float64) string { return fmt.Sprintf("%.2f times", miss+mostBound) },
		of:   []string{"steady", "ramp", "daily", "hot"},
	},
}

const (
	mostActions = 1.0 / 3
	mostBound   = 1.3
)

// The headers of the tables of decision 0011.
const (
	figuresHead = "| trace | KEDA + HPA | default, consumer | metrics-api | external-push | metric-value | best fixed count | bound | × bound |\n|---|---|---|---|---|---|---|---|---|\n"
	missesHead  = "| trace | wanted | cells that fail, of 9 | the worst: start-up, delay, way |\n|---|---|---|---|\n"
)

// figures returns the rows of the first table of decision 0011.
func (m Matrix) figures(meetings []Meeting) string {
	var b strings.Builder
	for _, name := range shapesIn(meetings) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, acting := range []Acting{KEDATrigger, Consumer, MetricsAPI, ExternalPush, MetricValue} {
			duels := m.duels(meetings, func(c Contender) bool { return c.Acting == acting })[name]
			fmt.Fprintf(&b, " %.1f / %.0f / %.0f / %.0f |",
				average(duels, func(d duel) float64 { return d.own.ReplicaHours }),
				average(duels, func(d duel) float64 { return d.own.OverLag.Seconds() }),
				average(duels, func(d duel) float64 { return d.own.OverAge.Seconds() }),
				average(duels, func(d duel) float64 { return float64(d.own.Actions()) }))
		}
		duels := m.duels(meetings, follows)[name]
		bound := average(duels, func(d duel) float64 { return d.bound.ReplicaHours })
		fmt.Fprintf(&b, " %.1f | %.1f | %.2f |\n", average(duels, func(d duel) float64 { return d.fixed.ReplicaHours }),
			bound, average(duels, func(d duel) float64 { return d.own.ReplicaHours })/bound)
	}
	return b.String()
}

// follows reports whether a way of acting uses feedscale's decision.
func follows(c Contender) bool { return c.Acting != KEDATrigger && c.Acting != MetricValue }

func average(duels []duel, value func(duel) float64) (mean float64) {
	for _, d := range duels {
		mean += value(d) / float64(len(duels))
	}
	return mean
}

// fails counts the duels that miss a goal, and returns the worst.
func (w wish) fails(duels []duel) (n int, most float64, worst duel) {
	for _, d := range duels {
		miss := w.miss(d.own.Result, d.keda.Result, d.bound.Result)
		if miss > 0 {
			n++
		}
		if miss > most {
			most, worst = miss, d
		}
	}
	return n, most, worst
}

// misses returns the rows of the second table of decision 0011, for the ways that use the decision.
func (m Matrix) misses(meetings []Meeting) string {
	var b strings.Builder
	duels := m.duels(meetings, follows)
	for _, name := range shapesIn(meetings) {
		for _, w := range wishes {
			if w.of != nil && !slices.Contains(w.of, name) {
				continue
			}
			if n, most, worst := w.fails(duels[name]); n > 0 {
				fmt.Fprintf(&b, "| %s | %s | %d | %s at %s s, %s s, %s |\n", name, w.name, n, w.says(most),
					whole(worst.StartUp), whole(worst.Delay), worst.Acting)
			}
		}
	}
	return b.String()
}

// writeSummary writes a line for each shape, policy and way of acting: the means over the cells,
// and how many cells miss each goal.
func (m Matrix) writeSummary(w io.Writer, meetings []Meeting) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "TRACE\tPOLICY\tACTING\tHOURS\tx BOUND\tFIXED\tOVER LAG\tOVER AGE\tACTIONS\tRU/S-HOURS\tCELLS\t")
	for _, w := range wishes {
		fmt.Fprintf(out, "FAIL: %s\t", strings.ToUpper(w.name))
	}
	fmt.Fprintln(out)
	for _, name := range shapesIn(meetings) {
		for _, c := range m.Contenders {
			if c.Delay != m.Contenders[0].Delay {
				break // the same shapes again
			}
			duels := m.duels(meetings, func(o Contender) bool { return o.Acting == c.Acting && o.Name() == c.Name() })[name]
			of := func(value func(duel) float64) float64 { return average(duels, value) }
			hours := of(func(d duel) float64 { return d.own.ReplicaHours })
			fmt.Fprintf(out, "%s\t%s\t%s\t%.1f\t%.2f\t%.1f\t%.0f s\t%.0f s\t%.0f\t%.0f\t%d\t", name, c.Name(), c.Acting,
				hours, hours/of(func(d duel) float64 { return d.bound.ReplicaHours }), of(func(d duel) float64 { return d.fixed.ReplicaHours }),
				of(func(d duel) float64 { return d.own.OverLag.Seconds() }), of(func(d duel) float64 { return d.own.OverAge.Seconds() }),
				of(func(d duel) float64 { return float64(d.own.Actions()) }), of(func(d duel) float64 { return d.own.RUHours }), len(duels))
			for _, w := range wishes {
				n, _, _ := w.fails(duels)
				fmt.Fprintf(out, "%d\t", n)
			}
			fmt.Fprintln(out)
		}
	}
	return out.Flush()
}

// shapesIn returns the names of the shapes, in order.
func shapesIn(meetings []Meeting) (names []string) {
	for _, m := range meetings {
		if !slices.Contains(names, m.Shape.Name) {
			names = append(names, m.Shape.Name)
		}
	}
	return names
}
