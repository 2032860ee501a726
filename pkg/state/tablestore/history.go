package tablestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/state"
)

// The rows of the history, one an hour (UTC), and their properties, one a
// sample: so a commit adds its sample without reading the others. A row may
// have 252 properties and 1 MiB; 240 samples of the length that Sample.Encode
// allows come to 0.92 MiB.
const (
	historyPrefix = "history-"
	hourFormat    = "2006010215"
)

func historyRow(hour time.Time) string { return historyPrefix + hour.UTC().Format(hourFormat) }

// sampleProperty is t and the second of the hour at which the sample's interval
// begins: t0000 to t3585.
func sampleProperty(at time.Time) string {
	at = at.UTC().Truncate(state.SampleInterval)
	return fmt.Sprintf("t%04d", 60*at.Minute()+at.Second())
}

// sampleEntity is to be merged into the row of its hour.
func sampleEntity(processor string, sample state.Sample) ([]byte, error) {
	text, err := sample.Encode()
	if err != nil {
		return nil, err
	}
	return entity(processor, historyRow(sample.Time), map[string]any{sampleProperty(sample.Time): string(text)})
}

func readSample(row, property string, value any) (state.Sample, error) {
	text, ok := value.(string)
	if !ok {
		return state.Sample{}, errors.New("it is not text")
	}
	var sample state.Sample
	if err := json.Unmarshal([]byte(text), &sample); err != nil {
		return state.Sample{}, err
	}
	if historyRow(sample.Time) != row || sampleProperty(sample.Time) != property {
		return state.Sample{}, fmt.Errorf("it is of %s", sample.Time)
	}
	return sample, nil
}

// History implements state.Store. It reads the hours that are asked for, and no
// other row.
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	if !from.Before(to) {
		return nil, nil
	}
	rows, err := s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey le '%s'",
		quoted(processor), historyRow(from), historyRow(to.Add(-1))))
	if err != nil {
		return nil, s.failed("read the history", processor, err)
	}
	var samples []state.Sample
	for _, row := range rows {
		for property, value := range row.Properties {
			sample, err := readSample(row.RowKey, property, value)
			if err != nil {
				return nil, s.failed("read the history", processor, unreadable(row, fmt.Errorf("property %s: %w", property, err)))
			}
			if !sample.Time.Before(from) && sample.Time.Before(to) {
				samples = append(samples, sample)
			}
		}
	}
	slices.SortFunc(samples, func(a, b state.Sample) int { return a.Time.Compare(b.Time) })
	return samples, nil
}

// Prune implements state.Store, with a query of the keys and a request for each
// hour: in a transaction, an hour that another process has removed would keep
// the others.
func (s *Store) Prune(ctx context.Context, processor string, before time.Time) error {
	rows, err := s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey lt '%s'",
		quoted(processor), historyPrefix, historyRow(before)), "PartitionKey", "RowKey")
	if err == nil {
		err = each(ctx, len(rows), func(ctx context.Context, i int) error {
			return s.remove(ctx, processor, rows[i].RowKey)
		})
	}
	if err != nil {
		return s.failed("prune the history", processor, err)
	}
	return nil
}

// quoted is a text in a filter.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
