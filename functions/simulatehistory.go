package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/feedscale/feedscale/pkg/simulate"
)

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
