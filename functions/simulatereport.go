package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// simulationReport is what --output json prints. Every field is always present.
type simulationReport struct {
	Trace struct {
		Name           string    `json:"name"`
		Seed           *uint64   `json:"seed"` // null for a recorded trace
		Start          time.Time `json:"start"`
		Seconds        int64     `json:"seconds"`
		Partitions     int       `json:"partitions"`
		Transactions   int64     `json:"transactions"`
		GuessedSeconds int64     `json:"guessedSeconds"`
	} `json:"trace"`
	Workers struct {
		Throughput       float64 `json:"throughputPerReplica"`
		StartUpSeconds   float64 `json:"startUpSeconds"`
		RebalanceSeconds float64 `json:"rebalanceSeconds"`
		PollDelaySeconds float64 `json:"pollDelaySeconds"`
	} `json:"workers"`
	Objectives struct {
		Lag        int64   `json:"lag"`
		AgeSeconds float64 `json:"ageSeconds"`
	} `json:"objectives"`
	Results []simulationResult `json:"results"`
}

type simulationResult struct {
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
	Series         []simulationPoint `json:"series"`
}

// simulationPoint has the greatest of each value from its second to the next.
type simulationPoint struct {
	Second  int64 `json:"second"`
	Lag     int64 `json:"lag"`
	Age     int64 `json:"changeAgeSeconds"`
	Desired int   `json:"desiredReplicas"`
	Working int   `json:"workingReplicas"`
}

func (s simulation) report() simulationReport {
	var r simulationReport
	r.Trace.Name, r.Trace.Seed, r.Trace.Start = s.trace.Name, s.seed, s.trace.Start
	r.Trace.Seconds, r.Trace.Partitions = whole(s.trace.Duration()), s.trace.Partitions
	r.Trace.Transactions, r.Trace.GuessedSeconds = s.trace.Transactions(), whole(s.guessed)
	r.Workers.Throughput, r.Workers.StartUpSeconds, r.Workers.RebalanceSeconds = s.workers.Throughput, s.workers.StartUp.Seconds(), s.workers.Rebalance.Seconds()
	r.Workers.PollDelaySeconds = s.workers.PollDelay.Seconds()
	r.Objectives.Lag, r.Objectives.AgeSeconds = s.objective.Lag, s.objective.Age.Seconds()
	for _, of := range s.results {
		result := simulationResult{
			Policy: of.Scaler, ReplicaHours: of.ReplicaHours, SecondsOverLag: whole(of.OverLag), SecondsOverAge: whole(of.OverAge),
			Actions: of.Actions(), ScaleOuts: of.Out, ScaleIns: of.In,
			MaxLag: of.MaxLag, MaxAgeSeconds: whole(of.MaxAge), P99AgeSeconds: whole(of.P99Age),
			Arrived: of.Arrived, Processed: of.Processed, Left: of.Left,
		}
		for _, p := range of.Series {
			result.Series = append(result.Series, simulationPoint{whole(p.At), p.Lag, whole(p.Age), p.Desired, p.Working})
		}
		r.Results = append(r.Results, result)
	}
	return r
}

// whole is a duration of whole seconds as their number.
func whole(d time.Duration) int64 { return int64(d / time.Second) }

func (s simulation) print(p program, output string, charts bool) error {
	switch output {
	case "json":
		return writeJSON(p.stdout, s.report())
	case "csv":
		return s.writeCSV(p.stdout)
	}
	var b strings.Builder
	colors := colored(p.stdout, p.getenv("NO_COLOR"))
	s.writeHead(&b, colors)
	s.writeTable(&b, colors)
	if charts {
		s.writeCharts(&b, terminalWidth(p.stdout), colors)
	}
	_, err := io.WriteString(p.stdout, b.String())
	return err
}

// writeCSV writes a line for each policy, with the names of the JSON.
func (s simulation) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until the end.
	_ = out.Write([]string{
		"policy", "replicaHours", "secondsOverLag", "secondsOverAge", "actions", "scaleOuts", "scaleIns",
		"maxLag", "maxAgeSeconds", "p99AgeSeconds", "arrived", "processed", "left",
	})
	for _, r := range s.report().Results {
		line := []string{r.Policy, strconv.FormatFloat(r.ReplicaHours, 'f', -1, 64)}
		for _, n := range []int64{
			r.SecondsOverLag, r.SecondsOverAge, int64(r.Actions), int64(r.ScaleOuts), int64(r.ScaleIns),
			r.MaxLag, r.MaxAgeSeconds, r.P99AgeSeconds, r.Arrived, r.Processed, r.Left,
		} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// writeHead tells what was simulated.
func (s simulation) writeHead(b *strings.Builder, colors bool) {
	origin := "recorded from " + s.trace.Start.Format(time.RFC3339)
	if s.seed != nil {
		origin = fmt.Sprintf("seed %d", *s.seed)
	}
	fmt.Fprintf(b, "%s, %s: %s, %s, %s transactions\n", paint(s.trace.Name, bold, colors), origin, brief(s.trace.Duration()), count(s.trace.Partitions, "partition"), compact(float64(s.trace.Transactions())))
	fmt.Fprintf(b, "workers: %.4g transactions/s a replica, start-up %s, rebalance %s, poll delay %s\n", s.workers.Throughput, brief(s.workers.StartUp), brief(s.workers.Rebalance), brief(s.workers.PollDelay))
	fmt.Fprintf(b, "objectives: a lag of %d, an age of %s\n", s.objective.Lag, brief(s.objective.Age))
	if s.guessed > 0 {
		fmt.Fprintf(b, "for %s no arrival rate was recorded: the last one before stands in\n", brief(s.guessed))
	}
	b.WriteString("\n")
}

// writeTable prints a line for each policy.
func (s simulation) writeTable(b *strings.Builder, colors bool) {
	rows := [][]cell{{
		{"POLICY", bold, false}, {"REPLICA-HOURS", bold, true}, {"OVER LAG", bold, true}, {"OVER AGE", bold, true},
		{"ACTIONS", bold, true}, {"MAX LAG", bold, true}, {"MAX AGE", bold, true}, {"P99 AGE", bold, true},
	}}
	var left strings.Builder
	for _, r := range s.results {
		rows = append(rows, []cell{
			{r.Scaler, plain, false},
			{fmt.Sprintf("%.1f", r.ReplicaHours), plain, true},
			{brief(r.OverLag), overColor(r.OverLag), true},
			{brief(r.OverAge), overColor(r.OverAge), true},
			{fmt.Sprint(r.Actions()), plain, true},
			{fmt.Sprint(r.MaxLag), plain, true},
			{brief(r.MaxAge), plain, true},
			{brief(r.P99Age), plain, true},
		})
		if r.Left > s.objective.Lag {
			fmt.Fprintf(&left, "%s%d transactions were still pending at the end\n", paint(r.Scaler+": ", yellow, colors), r.Left)
		}
	}
	writeRows(b, rows, colors, 0)
	b.WriteString(left.String())
}

func overColor(d time.Duration) string {
	if d > 0 {
		return yellow
	}
	return green
}

// writeCharts draws lag and replicas over time, of several policies on the same
// scale.
func (s simulation) writeCharts(b *strings.Builder, width int, colors bool) {
	lagHeight, replicasHeight := 8, 4
	if len(s.results) > 1 {
		lagHeight, replicasHeight = 4, 2
	}
	var lags, replicas [][]float64
	most, highest := 0.0, 0.0
	for _, r := range s.results {
		var lag, desired []float64
		for _, p := range r.Series {
			lag, desired = append(lag, float64(p.Lag)), append(desired, float64(p.Desired))
			most, highest = max(most, float64(p.Lag)), max(highest, float64(p.Desired))
		}
		lags, replicas = append(lags, lag), append(replicas, desired)
	}
	for i, r := range s.results {
		b.WriteString("\n")
		b.WriteString(plot{
			title: r.Scaler + ": lag, and below it the replicas", values: lags[i], width: width, height: lagHeight,
			top: most, limit: float64(s.objective.Lag), colors: colors,
		}.String())
		b.WriteString(plot{
			values: replicas[i], width: width, height: replicasHeight, top: highest, colors: colors,
			from: s.trace.Start, to: s.trace.Start.Add(s.trace.Duration()),
		}.String())
	}
}

// brief is a duration to the second as people write it: 1h30m rather than
// 1h30m0s.
func brief(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
