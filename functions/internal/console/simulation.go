package console

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// Simulation is a trace, replayed against policies.
type Simulation struct {
	Trace     simulate.Trace
	Seed      *uint64       // nil for a recorded trace
	Guessed   time.Duration // the part of a recorded trace without an arrival rate
	Seeds     int           // replays of which the results are means
	Workers   simulate.Workers
	Objective simulate.Objective
	Results   []simulate.Result
}

// object is a JSON object.
type object = map[string]any

// Report is the JSON of a Simulation, with every field always present (docs/tune.md).
func (s Simulation) Report() any {
	results := make([]object, len(s.Results))
	for i, of := range s.Results {
		series := make([]object, len(of.Series)) // the greatest values of each second
		for i, p := range of.Series {
			series[i] = object{"second": whole(p.At), "lag": p.Lag, "changeAgeSeconds": whole(p.Age), "desiredReplicas": p.Desired, "workingReplicas": p.Working}
		}
		results[i] = object{
			"policy": of.Scaler, "replicaHours": of.ReplicaHours, "secondsOverLag": whole(of.OverLag), "secondsOverAge": whole(of.OverAge),
			"actions": of.Actions(), "scaleOuts": of.Out, "scaleIns": of.In,
			"maxLag": of.MaxLag, "maxAgeSeconds": whole(of.MaxAge), "p99AgeSeconds": whole(of.P99Age),
			"arrived": of.Arrived, "processed": of.Processed, "left": of.Left, "fixedReplicas": nil, "series": series,
		}
		if of.Fixed > 0 {
			results[i]["fixedReplicas"] = of.Fixed // of the best fixed count
		}
	}
	return object{
		"trace": object{
			"name": s.Trace.Name, "seed": s.Seed, "start": s.Trace.Start, "seconds": whole(s.Trace.Duration()), "partitions": s.Trace.Partitions,
			"transactions": s.Trace.Transactions(), "guessedSeconds": whole(s.Guessed), "seeds": s.Seeds,
		},
		"workers":    object{"throughputPerReplica": s.Workers.Throughput, "startUpSeconds": s.Workers.StartUp.Seconds()},
		"objectives": object{"lag": s.Objective.Lag, "ageSeconds": s.Objective.Age.Seconds()},
		"results":    results,
	}
}

// whole is a duration in whole seconds.
func whole(d time.Duration) int64 { return int64(d / time.Second) }

// Write prints the trace, a line for each policy, and charts.
func (s Simulation) Write(w io.Writer, style Style) error {
	var head, b strings.Builder
	s.writeHead(&head, style)
	b.WriteString(style.wrapLines(head.String()))
	s.writeTable(&b, style)
	s.writeCharts(&b, style)
	return style.print(w, b.String())
}

// writeHead writes the trace, the workers and the objectives.
func (s Simulation) writeHead(b *strings.Builder, style Style) {
	origin := "recorded from " + s.Trace.Start.Format(time.RFC3339)
	if s.Seed != nil {
		origin = fmt.Sprintf("seed %d", *s.Seed)
	}
	fmt.Fprintf(b, "%s, %s: %s, %s, %s transactions\n", style.Paint(s.Trace.Name, Bold), origin, Brief(s.Trace.Duration()),
		report.Count(s.Trace.Partitions, "partition"), compact(float64(s.Trace.Transactions())))
	if s.Seeds > 1 {
		fmt.Fprintf(b, "means of %d replays, from that seed on; the charts are of the first\n", s.Seeds)
	}
	fmt.Fprintf(b, "workers: %.4g transactions/s a replica, start-up %s\n", s.Workers.Throughput, Brief(s.Workers.StartUp))
	fmt.Fprintf(b, "objectives: a lag of %d, an age of %s\n", s.Objective.Lag, Brief(s.Objective.Age))
	if s.Guessed > 0 {
		fmt.Fprintf(b, "for %s no arrival rate was recorded: the last one before is used\n", Brief(s.Guessed))
	}
	b.WriteString("\n")
}

// writeTable writes a line for each policy.
func (s Simulation) writeTable(b *strings.Builder, style Style) {
	rows := [][]Cell{Head("POLICY", ">REPLICA-HOURS", ">OVER LAG", ">OVER AGE", ">ACTIONS", ">MAX LAG", ">MAX AGE", ">P99 AGE")}
	var left strings.Builder
	for _, r := range s.Results {
		name := r.Scaler
		if r.Fixed > 0 {
			name = fmt.Sprintf("%s at %d", r.Scaler, r.Fixed)
		}
		row := Row(name, fmt.Sprintf("%.1f", r.ReplicaHours), Brief(r.OverLag), Brief(r.OverAge), fmt.Sprint(r.Actions()),
			fmt.Sprint(r.MaxLag), Brief(r.MaxAge), Brief(r.P99Age))
		row[2].Color, row[3].Color = overColor(r.OverLag), overColor(r.OverAge)
		rows = append(rows, row)
		if r.Left > s.Objective.Lag {
			fmt.Fprintf(&left, "%s%s still pending at the end\n", style.Paint(r.Scaler+": ", Yellow), report.Count(int(r.Left), "transaction"))
		}
	}
	b.WriteString(style.Table(rows, "ACTIONS", "MAX LAG", "MAX AGE", "P99 AGE", "OVER LAG"))
	b.WriteString(style.wrapLines(left.String()))
}

func overColor(d time.Duration) string {
	if d > 0 {
		return Yellow
	}
	return Green
}

// writeCharts draws lag and replicas over time, with one scale for all policies.
func (s Simulation) writeCharts(b *strings.Builder, style Style) {
	lagHeight, replicasHeight := 8, 4
	if len(s.Results) > 1 {
		lagHeight, replicasHeight = 4, 2
	}
	lags, replicas := make([][]Point, len(s.Results)), make([][]Point, len(s.Results))
	most, highest := 0.0, 0.0
	for i, r := range s.Results {
		for _, p := range r.Series {
			at := s.Trace.Start.Add(p.At)
			lags[i], replicas[i] = append(lags[i], Point{at, float64(p.Lag)}), append(replicas[i], Point{at, float64(p.Desired)})
			most, highest = max(most, float64(p.Lag)), max(highest, float64(p.Desired))
		}
	}
	end := s.Trace.Start.Add(s.Trace.Duration())
	for i, r := range s.Results {
		lag := Plot{
			Title: r.Scaler + ": lag, and below it the replicas", Points: lags[i], Height: lagHeight, From: s.Trace.Start, To: end,
			Untimed: true, Top: most, Limit: float64(s.Objective.Lag), Style: style,
		}
		count := Plot{Points: replicas[i], Height: replicasHeight, From: s.Trace.Start, To: end, Top: highest, Style: style}
		b.WriteString("\n" + lag.String() + count.String())
	}
}
