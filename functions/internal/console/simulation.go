package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
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
	Met       simulate.Conditions
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
		Throughput       float64 `json:"throughputPerReplica"`
		StartUpSeconds   float64 `json:"startUpSeconds"`
		RebalanceSeconds float64 `json:"rebalanceSeconds"`
		PollDelaySeconds float64 `json:"pollDelaySeconds"`
		Batch            int     `json:"batch"`
		BatchSeconds     float64 `json:"batchSeconds"`
		RUPerChange      float64 `json:"ruPerChange"` // 0 = no limit
		RUPerSecond      int     `json:"ruPerSecond"` // of the container at the start
	} `json:"workers"`
	Conditions struct {
		Acting       simulate.Acting `json:"acting"`
		DelaySeconds float64         `json:"delaySeconds"`
		FailedPolls  float64         `json:"failedPolls"`
	} `json:"conditions"`
	Objectives struct {
		Lag        int64   `json:"lag"`
		AgeSeconds float64 `json:"ageSeconds"`
	} `json:"objectives"`
	Results []SimulationResult `json:"results"`
}

// SimulationResult is what a policy made of the trace. What the bound cannot know is null.
type SimulationResult struct {
	Policy         string            `json:"policy"`
	ReplicaHours   float64           `json:"replicaHours"`
	SecondsOverLag int64             `json:"secondsOverLag"`
	SecondsOverAge int64             `json:"secondsOverAge"`
	Actions        int               `json:"actions"`
	ScaleOuts      int               `json:"scaleOuts"`
	ScaleIns       int               `json:"scaleIns"`
	MaxLag         *int64            `json:"maxLag"`
	MaxAgeSeconds  *int64            `json:"maxAgeSeconds"`
	P99AgeSeconds  *int64            `json:"p99AgeSeconds"`
	Arrived        int64             `json:"arrived"`
	Processed      *int64            `json:"processed"`
	Left           *int64            `json:"left"`
	FixedReplicas  *int              `json:"fixedReplicas"` // of the best fixed count; else null
	RUHours        *float64          `json:"ruHours"`       // RU/s-hours; null where the container has no limit
	PeakRU         *int              `json:"peakRUPerSecond"`
	Throttled      *int64            `json:"throttledSeconds"`
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
func (s Simulation) Report() SimulationReport {
	var r SimulationReport
	r.Trace.Name, r.Trace.Seed, r.Trace.Start = s.Trace.Name, s.Seed, s.Trace.Start
	r.Trace.Seconds, r.Trace.Partitions = whole(s.Trace.Duration()), s.Trace.Partitions
	r.Trace.Transactions, r.Trace.GuessedSeconds = s.Trace.Transactions(), whole(s.Guessed)
	r.Workers.Throughput, r.Workers.StartUpSeconds, r.Workers.RebalanceSeconds = s.Workers.Throughput, s.Workers.StartUp.Seconds(), s.Workers.Rebalance.Seconds()
	r.Workers.PollDelaySeconds = s.Workers.PollDelay.Seconds()
	r.Workers.Batch, r.Workers.BatchSeconds = s.Workers.Batch, s.Workers.BatchTime.Seconds()
	r.Workers.RUPerChange, r.Workers.RUPerSecond = s.Workers.Container.RUPerChange, s.Workers.Container.RUPerSecond
	r.Trace.Seeds = s.Seeds
	r.Conditions.Acting, r.Conditions.DelaySeconds, r.Conditions.FailedPolls = s.Met.Acting, s.Met.Delay.Seconds(), s.Met.FailedPolls
	r.Objectives.Lag, r.Objectives.AgeSeconds = s.Objective.Lag, s.Objective.Age.Seconds()
	for _, of := range s.Results {
		result := SimulationResult{
			Policy: of.Scaler, ReplicaHours: of.ReplicaHours, SecondsOverLag: whole(of.OverLag), SecondsOverAge: whole(of.OverAge),
			Actions: of.Actions(), ScaleOuts: of.Out, ScaleIns: of.In, Arrived: of.Arrived,
		}
		if !of.Bound {
			result.MaxLag, result.MaxAgeSeconds, result.P99AgeSeconds = &of.MaxLag, new(whole(of.MaxAge)), new(whole(of.P99Age))
			result.Processed, result.Left = &of.Processed, &of.Left
		}
		if of.Fixed > 0 {
			result.FixedReplicas = &of.Fixed
		}
		if s.Workers.Container.Limited() && !of.Bound {
			result.RUHours, result.PeakRU, result.Throttled = &of.RUHours, &of.PeakRU, new(whole(of.Throttled))
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

// Write prints what was simulated, a line for each policy, and charts where they are wanted.
func (s Simulation) Write(w io.Writer, charts bool, style Style) error {
	var b strings.Builder
	s.writeHead(&b, style)
	head := style.wrapLines(b.String())
	b.Reset()
	b.WriteString(head)
	s.writeTable(&b, style)
	if charts {
		style.Width = cmp.Or(style.Width, chartWidth)
		s.writeCharts(&b, style)
	}
	return style.print(w, b.String())
}

// WriteCSV writes a line for each policy, with the names of the JSON.
func (s Simulation) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	// An error stays with the writer until the end.
	_ = out.Write(slices.Concat([]string{"policy"}, resultColumns, containerColumns))
	for _, r := range s.Report().Results {
		_ = out.Write(slices.Concat([]string{sheet(r.Policy)}, r.columns(), []string{field(r.RUHours), field(r.PeakRU), field(r.Throttled)}))
	}
	out.Flush()
	return out.Error()
}

// resultColumns are the numbers of a result in CSV.
var resultColumns = []string{
	"replicaHours", "secondsOverLag", "secondsOverAge", "actions", "scaleOuts", "scaleIns",
	"maxLag", "maxAgeSeconds", "p99AgeSeconds", "arrived", "processed", "left", "fixedReplicas",
}

// containerColumns are those of the container, which a matrix has not.
var containerColumns = []string{"ruHours", "peakRUPerSecond", "throttledSeconds"}

// columns are those numbers, empty where the JSON has null.
func (r SimulationResult) columns() []string {
	actions, outs, ins := int64(r.Actions), int64(r.ScaleOuts), int64(r.ScaleIns)
	line := []string{strconv.FormatFloat(r.ReplicaHours, 'f', -1, 64)}
	for _, n := range []*int64{&r.SecondsOverLag, &r.SecondsOverAge, &actions, &outs, &ins, r.MaxLag, r.MaxAgeSeconds, r.P99AgeSeconds, &r.Arrived, r.Processed, r.Left} {
		if n == nil {
			line = append(line, "")
		} else {
			line = append(line, strconv.FormatInt(*n, 10))
		}
	}
	return append(line, field(r.FixedReplicas))
}

// writeHead tells what was simulated.
func (s Simulation) writeHead(b *strings.Builder, style Style) {
	origin := "recorded from " + s.Trace.Start.Format(time.RFC3339)
	if s.Seed != nil {
		origin = fmt.Sprintf("seed %d", *s.Seed)
	}
	fmt.Fprintf(b, "%s, %s: %s, %s, %s transactions\n", style.Paint(s.Trace.Name, Bold), origin, Brief(s.Trace.Duration()), report.Count(s.Trace.Partitions, "partition"), compact(float64(s.Trace.Transactions())))
	if s.Seeds > 1 {
		fmt.Fprintf(b, "means of %d replays, from that seed on; the charts are of the first\n", s.Seeds)
	}
	fmt.Fprintf(b, "workers: %.4g transactions/s a replica, start-up %s, rebalance %s, poll delay %s, batches of %d", s.Workers.Throughput, Brief(s.Workers.StartUp), Brief(s.Workers.Rebalance), Brief(s.Workers.PollDelay), s.Workers.Batch)
	if s.Workers.BatchTime > 0 {
		fmt.Fprintf(b, " that take %s", Brief(s.Workers.BatchTime))
	}
	if c := s.Workers.Container; c.Limited() {
		fmt.Fprintf(b, "\ncontainer: %d RU/s at the start, %.4g RU a change", c.RUPerSecond, c.RUPerChange)
	}
	fmt.Fprintf(b, "\nacting: %s, delay %s", s.Met.Acting, Brief(s.Met.Delay))
	if s.Met.FailedPolls > 0 {
		fmt.Fprintf(b, ", %.3g %% of the polls fail", 100*s.Met.FailedPolls)
	}
	b.WriteString("\n")
	fmt.Fprintf(b, "objectives: a lag of %d, an age of %s\n", s.Objective.Lag, Brief(s.Objective.Age))
	if s.Guessed > 0 {
		fmt.Fprintf(b, "for %s no arrival rate was recorded: the last one before stands in\n", Brief(s.Guessed))
	}
	b.WriteString("\n")
}

// writeTable prints a line for each policy.
func (s Simulation) writeTable(b *strings.Builder, style Style) {
	rows := [][]Cell{Head("POLICY", ">REPLICA-HOURS", ">OVER LAG", ">OVER AGE", ">ACTIONS", ">MAX LAG", ">MAX AGE", ">P99 AGE")}
	limited := s.Workers.Container.Limited()
	if limited {
		rows[0] = append(rows[0], Head(">RU/S-HOURS", ">PEAK RU/S", ">THROTTLED")...)
	}
	var left strings.Builder
	for _, r := range s.Results {
		name, known := r.Scaler, func(text string) string { return text }
		if r.Fixed > 0 {
			name = fmt.Sprintf("%s at %d", r.Scaler, r.Fixed)
		}
		if r.Bound {
			known = func(string) string { return "-" }
		}
		rows = append(rows, []Cell{
			{name, Plain, false},
			{fmt.Sprintf("%.1f", r.ReplicaHours), Plain, true},
			{Brief(r.OverLag), overColor(r.OverLag), true},
			{Brief(r.OverAge), overColor(r.OverAge), true},
			{fmt.Sprint(r.Actions()), Plain, true},
			{known(fmt.Sprint(r.MaxLag)), Plain, true},
			{known(Brief(r.MaxAge)), Plain, true},
			{known(Brief(r.P99Age)), Plain, true},
		})
		if limited {
			rows[len(rows)-1] = append(rows[len(rows)-1],
				Cell{known(fmt.Sprintf("%.0f", r.RUHours)), Plain, true}, Cell{known(fmt.Sprint(r.PeakRU)), Plain, true}, Cell{known(Brief(r.Throttled)), Plain, true})
		}
		if r.Left > s.Objective.Lag {
			fmt.Fprintf(&left, "%s%s still pending at the end\n", style.Paint(r.Scaler+": ", Yellow), report.Count(int(r.Left), "transaction"))
		}
	}
	b.WriteString(style.Table(rows, "THROTTLED", "PEAK RU/S", "ACTIONS", "MAX LAG", "MAX AGE", "P99 AGE", "OVER LAG"))
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
		if len(r.Series) == 0 {
			continue // the bound has no course
		}
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
