package tablestore

import (
	"cmp"
	"context"
	"encoding/json"
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

func readSample(row, property string, value any) (sample state.Sample, err error) {
	text, _ := value.(string)
	err = json.Unmarshal([]byte(text), &sample)
	if err == nil && (hourRow(historyPrefix, sample.Time) != row || sampleProperty(sample.Time) != property) {
		err = fmt.Errorf("it is of %s", sample.Time)
	}
	return sample, err
}

// hours has read read the rows of the hours from <= hour < to, and no other, of a kind that a prefix names.
func (s *Store) hours(ctx context.Context, processor, prefix string, from, to time.Time, read func(aztables.EDMEntity) error) error {
	if !from.Before(to) {
		return nil
	}
	rows, err := s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey le '%s'",
		quoted(processor), hourRow(prefix, from), hourRow(prefix, to.Add(-1))))
	for _, row := range rows {
		if wrong := read(row); wrong != nil {
			err = cmp.Or(err, unreadable(row.Entity, wrong))
		}
	}
	return s.failed("read the history", processor, err)
}

// History implements state.Store.
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) (samples []state.Sample, err error) {
	err = s.hours(ctx, processor, historyPrefix, from, to, func(row aztables.EDMEntity) error {
		for property, value := range row.Properties {
			sample, err := readSample(row.RowKey, property, value)
			if err != nil {
				return fmt.Errorf("property %s: %w", property, err)
			}
			if !sample.Time.Before(from) && sample.Time.Before(to) {
				samples = append(samples, sample)
			}
		}
		return nil
	})
	slices.SortFunc(samples, func(a, b state.Sample) int { return a.Time.Compare(b.Time) })
	return samples, err
}

// Summaries implements state.Store.
func (s *Store) Summaries(ctx context.Context, processor string, from, to time.Time) (summaries []state.Summary, err error) {
	err = s.hours(ctx, processor, summaryPrefix, from, to, func(row aztables.EDMEntity) error {
		text, _ := row.Properties[summaryProperty].(string)
		var summary state.Summary
		err := json.Unmarshal([]byte(text), &summary)
		if err == nil && !summary.Hour.Before(from) && summary.Hour.Before(to) {
			summaries = append(summaries, summary)
		}
		return err
	})
	return summaries, err
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
