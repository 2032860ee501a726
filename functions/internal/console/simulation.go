package console

import (
	"fmt"
	"io"
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
	text := style.wrapLines(s.head(style))
	rows := [][]Cell{Head("POLICY", ">REPLICA-HOURS", ">OVER LAG", ">OVER AGE", ">ACTIONS", ">MAX LAG", ">MAX AGE", ">P99 AGE")}
	left := ""
	for _, r := range s.Results {
		row := Row(r.Scaler, fmt.Sprintf("%.1f", r.ReplicaHours), Brief(r.OverLag), Brief(r.OverAge), fmt.Sprint(r.Actions()),
			fmt.Sprint(r.MaxLag), Brief(r.MaxAge), Brief(r.P99Age))
		if r.Fixed > 0 {
			row[0].Text += fmt.Sprintf(" at %d", r.Fixed)
		}
		row[2].Color, row[3].Color = overColor(r.OverLag), overColor(r.OverAge)
		rows = append(rows, row)
		if r.Left > s.Objective.Lag {
			left += fmt.Sprintf("%s%s still pending at the end\n", style.Paint(r.Scaler+": ", Yellow), report.Count(int(r.Left), "transaction"))
		}
	}
	text += style.Table(rows, "ACTIONS", "MAX LAG", "MAX AGE", "P99 AGE", "OVER LAG") + style.wrapLines(left)
	return style.print(w, text+s.charts(style))
}

// head is the trace, the workers and the objectives.
func (s Simulation) head(style Style) string {
	origin := "recorded from " + s.Trace.Start.Format(time.RFC3339)
	if s.Seed != nil {
		origin = fmt.Sprintf("seed %d", *s.Seed)
	}
	text := fmt.Sprintf("%s, %s: %s, %s, %s transactions\n", style.Paint(s.Trace.Name, Bold), origin, Brief(s.Trace.Duration()),
		report.Count(s.Trace.Partitions, "partition"), compact(float64(s.Trace.Transactions())))
	if s.Seeds > 1 {
		text += fmt.Sprintf("means of %d replays, from that seed on; the charts are of the first\n", s.Seeds)
	}
	text += fmt.Sprintf("workers: %.4g transactions/s a replica, start-up %s\n", s.Workers.Throughput, Brief(s.Workers.StartUp))
	text += fmt.Sprintf("objectives: a lag of %d, an age of %s\n", s.Objective.Lag, Brief(s.Objective.Age))
	if s.Guessed > 0 {
		text += fmt.Sprintf("for %s no arrival rate was recorded: the last one before is used\n", Brief(s.Guessed))
	}
	return text + "\n"
}

func overColor(d time.Duration) string {
	if d > 0 {
		return Yellow
	}
	return Green
}

// charts draws lag and replicas over time, with one scale for all policies.
func (s Simulation) charts(style Style) (text string) {
	height := 8 // of a lag; that of the replicas is half of it
	if len(s.Results) > 1 {
		height = 4
	}
	end := s.Trace.Start.Add(s.Trace.Duration())
	lag := Plot{Height: height, From: s.Trace.Start, To: end, Style: style}
	replicas := Plot{Height: height / 2, From: s.Trace.Start, To: end, Style: style}
	for _, r := range s.Results {
		for _, p := range r.Series {
			lag.Top, replicas.Top = max(lag.Top, float64(p.Lag)), max(replicas.Top, float64(p.Desired))
		}
	}
	for _, r := range s.Results {
		lag.Title, lag.Points, replicas.Title, replicas.Points = r.Scaler+": lag", nil, r.Scaler+": replicas", nil
		for _, p := range r.Series {
			at := s.Trace.Start.Add(p.At)
			lag.Points, replicas.Points = append(lag.Points, Point{at, float64(p.Lag)}), append(replicas.Points, Point{at, float64(p.Desired)})
		}
		text += "\n" + lag.String() + replicas.String()
	}
	return text
}
