package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/simulate"
)

// recorded makes the trace of what was recorded.
func (r *flagReader) recorded(s *console.Simulation) {
	for _, name := range []string{"seed", "duration", "rate", "skew"} {
		if r.given(name) {
			r.mistakes.add("--%s is for the synthetic traces; leave it out with what was recorded", name)
		}
	}
	partitions := 0
	if r.given("partitions") {
		partitions = int(r.whole("partitions", 1, maxPartitions))
	}
	name, samples, ok := r.samples()
	if !ok {
		return
	}
	recording, err := simulate.FromSamples(name, samples, partitions)
	if err != nil {
		r.mistakes.add("--trace: %v", err)
		return
	}
	s.Trace, s.Guessed = recording.Trace, recording.Guessed
	if !r.given("throughput") && recording.Drain != nil {
		s.Workers.Throughput = *recording.Drain
	}
}

// samples reads what was recorded: from the state, or from a file.
func (r *flagReader) samples() (name string, samples []simulate.Sample, ok bool) {
	processor, stored := strings.CutPrefix(r.text("trace"), "history:")
	if !stored {
		r.notSince()
		return r.filed(r.text("trace"))
	}
	if processor == "" {
		r.mistakes.add("--trace history: names no processor; allowed is, for example, history:orders")
	}
	since := r.duration("since", time.Second, 365*24*time.Hour)
	if len(r.mistakes) > 0 {
		return "", nil, false
	}
	recorded, err := r.history(processor, since)
	if err == nil && len(recorded) == 0 {
		err = fmt.Errorf("nothing is recorded of processor %q in the last %s", processor, console.Brief(since))
	}
	if err != nil {
		r.unread = err
		return "", nil, false
	}
	for _, s := range recorded {
		samples = append(samples, simulate.Sample{
			Time: s.Time, Lag: s.Lag, Age: s.Age, Arrival: s.Arrival, Drain: s.DrainPerReplica, Partitions: s.PartitionCount, Incomplete: !s.Complete,
		})
	}
	return processor, samples, true
}

// notSince holds that --since is not given with another trace.
func (r *flagReader) notSince() {
	if r.given("since") {
		r.mistakes.add("--since is for --trace history:PROCESSOR; leave it out with another trace")
	}
}

// filed reads a file that feedscale history wrote.
func (r *flagReader) filed(file string) (name string, samples []simulate.Sample, ok bool) {
	text, err := bounded.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		r.mistakes.add("--trace is %q; allowed are %s, history:PROCESSOR, or a file that is there", file, strings.Join(simulate.Names(), ", "))
		return "", nil, false
	} else if err != nil {
		r.mistakes.add("--trace: %v; allowed is a file that can be read", err)
		return "", nil, false
	}
	if name, samples, err = readHistory(file, text); err != nil {
		r.mistakes.add("--trace: %v", err)
		return "", nil, false
	}
	return name, samples, true
}

// recordedSample is what a replay needs of a sample that `history` printed.
type recordedSample struct {
	Time            time.Time `json:"time"`
	Lag             *int64    `json:"lag"`
	Age             *int64    `json:"changeAgeSeconds"`
	Complete        *bool     `json:"complete"`
	PartitionCount  *int      `json:"partitionCount"`
	Arrival         *float64  `json:"arrivalPerSecond"`
	DrainPerReplica *float64  `json:"drainPerReplica"`
}

// readHistory reads what `feedscale history` printed, as JSON or as CSV, and
// whose it is: of CSV only the file's name can tell.
func readHistory(file string, text []byte) (name string, samples []simulate.Sample, err error) {
	name = filepath.Base(file)
	var recorded []recordedSample
	if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("{")) {
		history := struct {
			Processor string           `json:"processor"`
			Samples   []recordedSample `json:"samples"`
		}{Processor: name}
		if err := json.Unmarshal(text, &history); err != nil {
			return "", nil, fmt.Errorf("%s is not the JSON of feedscale history (%w); write it anew with --output json", file, err)
		}
		name, recorded = history.Processor, history.Samples
	} else if recorded, err = readHistoryCSV(file, text); err != nil {
		return "", nil, err
	}
	for i, s := range recorded {
		if s.Time.IsZero() {
			return "", nil, fmt.Errorf("%s: sample %d has no time; write the file anew with feedscale history", file, i+1)
		}
		samples = append(samples, simulate.Sample{
			Time: s.Time, Lag: s.Lag, Age: s.Age, Arrival: s.Arrival, Drain: s.DrainPerReplica, Partitions: s.PartitionCount,
			Incomplete: s.Complete != nil && !*s.Complete,
		})
	}
	return name, samples, nil
}

// readHistoryCSV reads lines whose columns the first line names, in any order.
func readHistoryCSV(file string, text []byte) ([]recordedSample, error) {
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s is neither JSON nor CSV of feedscale history (%w); write it anew with --output json or csv", file, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s is empty; allowed is what feedscale history prints with --output json or csv", file)
	}
	header := lines[0]
	for _, name := range []string{"time", "lag", "arrivalPerSecond"} {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("%s has no column %s; allowed is what feedscale history prints with --output json or csv", file, name)
		}
	}
	var samples []recordedSample
	for i, line := range lines[1:] {
		c := csvLine{place: fmt.Sprintf("%s: sample %d", file, i+1), header: header, fields: line}
		s := recordedSample{
			Lag:             optionalField(&c, "lag", parseWhole),
			Age:             optionalField(&c, "changeAgeSeconds", parseWhole),
			Complete:        optionalField(&c, "complete", strconv.ParseBool),
			PartitionCount:  optionalField(&c, "partitionCount", strconv.Atoi),
			Arrival:         optionalField(&c, "arrivalPerSecond", parseNumber),
			DrainPerReplica: optionalField(&c, "drainPerReplica", parseNumber),
		}
		if at := optionalField(&c, "time", parseTime); at != nil {
			s.Time = *at
		}
		if c.err != nil {
			return nil, c.err
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// csvLine is one line, and the first thing that is wrong with it.
type csvLine struct {
	place          string
	header, fields []string
	err            error
}

// optionalField reads a field; nil where it is empty, or there is no such column.
func optionalField[T any](c *csvLine, name string, parse func(string) (T, error)) *T {
	i := slices.Index(c.header, name)
	if i < 0 || c.fields[i] == "" || c.err != nil {
		return nil
	}
	value, err := parse(c.fields[i])
	if err != nil {
		c.err = fmt.Errorf("%s: %s is %q, which cannot be read; write the file anew with feedscale history", c.place, name, c.fields[i])
		return nil
	}
	return &value
}

func parseWhole(text string) (int64, error)    { return strconv.ParseInt(text, 10, 64) }
func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
func parseTime(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) }
