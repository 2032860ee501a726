package console

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/report"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// Simulation is one trace, replayed against some policies.
type Simulation struct {
	Trace     simulate.Trace
	Seed      *uint64       // nil for a recorded trace
	Guessed   time.Duration // of a recorded trace, without a recorded arrival rate
	Seeds     int           // replays of which the results are means
	Workers   simulate.Workers
	Objective simulate.Objective
	Results   []simulate.Result
}

// SimulationReport is what --output json prints. Every field is always present.
type SimulationReport struct {
	Trace struct {
		Name           string    `json:"name"`
		Seed           *uint64   `json:"seed"` // null for a recorded trace
		Start          time.Time `json:"start"`
		Seconds        int64     `json:"seconds"`
		Partitions     int       `json:"partitions"`
		Transactions   int64     `json:"transactions"`
		GuessedSeconds int64     `json:"guessedSeconds"`
		Seeds          int       `json:"seeds"` // replays, of which the results are means
	} `json:"trace"`
	Workers struct {
		Throughput     float64 `json:"throughputPerReplica"`
		StartUpSeconds float64 `json:"startUpSeconds"`
	} `json:"workers"`
	Objectives struct {
		Lag        int64   `json:"lag"`
		AgeSeconds float64 `json:"ageSeconds"`
	} `json:"objectives"`
	Results []SimulationResult `json:"results"`
}

// SimulationResult is what a policy made of the trace.
type SimulationResult struct {
	Policy         string            `json:"policy"`
	ReplicaHours   float64           `json:"replicaHours"`
	SecondsOverLag int64             `json:"secondsOverLag"`
	SecondsOverAge int64             `json:"secondsOverAge"`
	Actions        int               `json:"actions"`
	ScaleOuts      int               `json:"scaleOuts"`
	ScaleIns       int               `json:"scaleIns"`
	MaxLag         int64             `json:"maxLag"`
	MaxAgeSeconds  int64             `json:"maxAgeSeconds"`
	P99AgeSeconds  int64             `json:"p99AgeSeconds"`
	Arrived        int64             `json:"arrived"`
	Processed      int64             `json:"processed"`
	Left           int64             `json:"left"`
	FixedReplicas  *int              `json:"fixedReplicas"` // of the best fixed count; else null
	Series         []SimulationPoint `json:"series"`
}

// SimulationPoint has the greatest of each value from its second to the next.
type SimulationPoint struct {
	Second  int64 `json:"second"`
	Lag     int64 `json:"lag"`
	Age     int64 `json:"changeAgeSeconds"`
	Desired int   `json:"desiredReplicas"`
	Working int   `json:"workingReplicas"`
}

// Report is the Simulation as JSON shows it.
func (s Simulation) Report() (r SimulationReport) {
	r.Trace.Name, r.Trace.Seed, r.Trace.Start = s.Trace.Name, s.Seed, s.Trace.Start
	r.Trace.Seconds, r.Trace.Partitions = whole(s.Trace.Duration()), s.Trace.Partitions
	r.Trace.Transactions, r.Trace.GuessedSeconds = s.Trace.Transactions(), whole(s.Guessed)
	r.Trace.Seeds = s.Seeds
	r.Workers.Throughput, r.Workers.StartUpSeconds = s.Workers.Throughput, s.Workers.StartUp.Seconds()
	r.Objectives.Lag, r.Objectives.AgeSeconds = s.Objective.Lag, s.Objective.Age.Seconds()
	for _, of := range s.Results {
		result := SimulationResult{
			Policy: of.Scaler, ReplicaHours: of.ReplicaHours,
			SecondsOverLag: whole(of.OverLag), SecondsOverAge: whole(of.OverAge),
			Actions: of.Actions(), ScaleOuts: of.Out, ScaleIns: of.In,
			MaxLag: of.MaxLag, MaxAgeSeconds: whole(of.MaxAge), P99AgeSeconds: whole(of.P99Age),
			Arrived: of.Arrived, Processed: of.Processed, Left: of.Left,
		}
		if of.Fixed > 0 {
			result.FixedReplicas = &of.Fixed
		}
		for _, p := range of.Series {
			result.Series = append(result.Series, SimulationPoint{whole(p.At), p.Lag, whole(p.Age), p.Desired, p.Working})
		}
		r.Results = append(r.Results, result)
	}
	return r
}

// whole is a duration of whole seconds as their number.
func whole(d time.Duration) int64 { return int64(d / time.Second) }

// Write prints what was simulated, a line for each policy, and charts.
func (s Simulation) Write(w io.Writer, style Style) error {
	var head, b strings.Builder
	s.writeHead(&head, style)
	b.WriteString(style.wrapLines(head.String()))
	s.writeTable(&b, style)
	style.Width = cmp.Or(style.Width, chartWidth)
	s.writeCharts(&b, style)
	return style.print(w, b.String())
}

// writeHead tells what was simulated.
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

// writeTable prints a line for each policy.
func (s Simulation) writeTable(b *strings.Builder, style Style) {
	rows := [][]Cell{Head("POLICY", ">REPLICA-HOURS", ">OVER LAG", ">OVER AGE", ">ACTIONS", ">MAX LAG", ">MAX AGE", ">P99 AGE")}
	var left strings.Builder
	for _, r := range s.Results {
		name := r.Scaler
		if r.Fixed > 0 {
			name = fmt.Sprintf("%s at %d", r.Scaler, r.Fixed)
		}
		rows = append(rows, []Cell{
			{name, Plain, false},
			{fmt.Sprintf("%.1f", r.ReplicaHours), Plain, true},
			{Brief(r.OverLag), overColor(r.OverLag), true},
			{Brief(r.OverAge), overColor(r.OverAge), true},
			{fmt.Sprint(r.Actions()), Plain, true},
			{fmt.Sprint(r.MaxLag), Plain, true},
			{Brief(r.MaxAge), Plain, true},
			{Brief(r.P99Age), Plain, true},
		})
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

// writeCharts draws lag and replicas over time, of several policies on the same
// scale.
func (s Simulation) writeCharts(b *strings.Builder, style Style) {
	lagHeight, replicasHeight := 8, 4
	if len(s.Results) > 1 {
		lagHeight, replicasHeight = 4, 2
	}
	var lags, replicas [][]float64
	most, highest := 0.0, 0.0
	for _, r := range s.Results {
		var lag, desired []float64
		for _, p := range r.Series {
			lag, desired = append(lag, float64(p.Lag)), append(desired, float64(p.Desired))
			most, highest = max(most, float64(p.Lag)), max(highest, float64(p.Desired))
		}
		lags, replicas = append(lags, lag), append(replicas, desired)
	}
	for i, r := range s.Results {
		b.WriteString("\n")
		b.WriteString(Plot{
			Title: r.Scaler + ": lag, and below it the replicas", Values: lags[i], Height: lagHeight,
			Top: most, Limit: float64(s.Objective.Lag), Style: style,
		}.String())
		b.WriteString(Plot{
			Values: replicas[i], Height: replicasHeight, Top: highest, Style: style,
			From: s.Trace.Start, To: s.Trace.Start.Add(s.Trace.Duration()),
		}.String())
	}
}
