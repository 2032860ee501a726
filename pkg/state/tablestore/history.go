package tablestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/state"
)

// The history has one row per hour (UTC) and in it one property per sample, so that a commit adds a
// sample without reading the others. A row may have 252 properties and 1 MiB; 240 samples of the
// greatest length that Sample.Encode allows take 0.92 MiB.
const (
	historyPrefix = "history-"
	hourFormat    = "2006010215"

	// A finished hour has a row of its own: it is read without its samples, and an earlier release does
	// not look for samples in it.
	summaryPrefix   = "summary-"
	summaryProperty = "summary"
)

func hourRow(prefix string, hour time.Time) string { return prefix + hour.UTC().Format(hourFormat) }

// sampleProperty returns the name of a sample's property: t and the second of the hour at which its
// interval begins, t0000 to t3585.
func sampleProperty(at time.Time) string {
	at = at.UTC().Truncate(state.SampleInterval)
	return fmt.Sprintf("t%04d", 60*at.Minute()+at.Second())
}

// sampleEntity returns the entity that adds a sample to the row of its hour, by insert-or-merge.
func sampleEntity(processor string, sample state.Sample) ([]byte, error) {
	text, err := sample.Encode()
	if err != nil {
		return nil, err
	}
	return entity(processor, hourRow(historyPrefix, sample.Time), map[string]any{sampleProperty(sample.Time): string(text)})
}

// summaryEntity returns the row of a finished hour.
func summaryEntity(processor string, summary state.Summary) ([]byte, error) {
	text, err := json.Marshal(summary)
	if err != nil {
		return nil, err
	}
	return entity(processor, hourRow(summaryPrefix, summary.Hour), map[string]any{summaryProperty: string(text)})
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
	if hourRow(historyPrefix, sample.Time) != row || sampleProperty(sample.Time) != property {
		return state.Sample{}, fmt.Errorf("it is of %s", sample.Time)
	}
	return sample, nil
}

// hours reads the rows of the hours from <= hour < to, and no other, of a kind that a prefix names.
func (s *Store) hours(ctx context.Context, processor, prefix string, from, to time.Time) ([]aztables.EDMEntity, error) {
	if !from.Before(to) {
		return nil, nil
	}
	return s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey le '%s'",
		quoted(processor), hourRow(prefix, from), hourRow(prefix, to.Add(-1))))
}

// History implements state.Store.
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	rows, err := s.hours(ctx, processor, historyPrefix, from, to)
	if err != nil {
		return nil, s.failed("read the history", processor, err)
	}
	var samples []state.Sample
	for _, row := range rows {
		for property, value := range row.Properties {
			sample, err := readSample(row.RowKey, property, value)
			if err != nil {
				return nil, s.failed("read the history", processor, unreadable(row.Entity, fmt.Errorf("property %s: %w", property, err)))
			}
			if !sample.Time.Before(from) && sample.Time.Before(to) {
				samples = append(samples, sample)
			}
		}
	}
	slices.SortFunc(samples, func(a, b state.Sample) int { return a.Time.Compare(b.Time) })
	return samples, nil
}

// Summaries implements state.Store.
func (s *Store) Summaries(ctx context.Context, processor string, from, to time.Time) ([]state.Summary, error) {
	rows, err := s.hours(ctx, processor, summaryPrefix, from, to)
	if err != nil {
		return nil, s.failed("read the history", processor, err)
	}
	var summaries []state.Summary
	for _, row := range rows {
		text, _ := row.Properties[summaryProperty].(string)
		var summary state.Summary
		if err := json.Unmarshal([]byte(text), &summary); err != nil {
			return nil, s.failed("read the history", processor, unreadable(row.Entity, err))
		}
		if !summary.Hour.Before(from) && summary.Hour.Before(to) {
			summaries = append(summaries, summary)
		}
	}
	return summaries, nil
}

// Prune implements state.Store, with two queries of the keys and one request per hour. A transaction would
// fail as a whole if another process had removed one of the hours.
func (s *Store) Prune(ctx context.Context, processor string, before time.Time) error {
	var rows []aztables.EDMEntity
	for _, prefix := range []string{historyPrefix, summaryPrefix} {
		found, err := s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey lt '%s'",
			quoted(processor), prefix, hourRow(prefix, before)), "PartitionKey", "RowKey")
		if err != nil {
			return s.failed("prune the history", processor, err)
		}
		rows = append(rows, found...)
	}
	err := each(ctx, len(rows), func(ctx context.Context, i int) error {
		return s.remove(ctx, processor, rows[i].RowKey)
	})
	return s.failed("prune the history", processor, err)
}

// quoted returns a text as a string literal of a filter.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
