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

// History implements state.Store.
func (s *Store) History(ctx context.Context, processor string, from, to time.Time) ([]state.Sample, error) {
	return between[state.Sample](ctx, s, processor, historyPrefix, sampleProperty, from, to)
}

// Summaries implements state.Store.
func (s *Store) Summaries(ctx context.Context, processor string, from, to time.Time) ([]state.Summary, error) {
	return between[state.Summary](ctx, s, processor, summaryPrefix, func(time.Time) string { return summaryProperty }, from, to)
}

// between returns what the rows of some hours have with from <= time < to, by time. A prefix names the kind of
// row, and a property has the time that it is named for.
func between[T state.HistoryEntry](ctx context.Context, s *Store, processor, prefix string, property func(time.Time) string, from, to time.Time) (found []T, err error) {
	if !from.Before(to) {
		return nil, nil
	}
	rows, err := s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey le '%s'",
		quoted(processor), hourRow(prefix, from), hourRow(prefix, to.Add(-1))))
	for _, row := range rows {
		for name, value := range row.Properties {
			var one T
			text, _ := value.(string)
			wrong := json.Unmarshal([]byte(text), &one)
			if at := one.At(); wrong == nil && (hourRow(prefix, at) != row.RowKey || property(at) != name) {
				wrong = fmt.Errorf("it is of %s", at)
			}
			if wrong != nil {
				err = cmp.Or(err, unreadable(row.Entity, fmt.Errorf("property %s: %w", name, wrong)))
			} else if !one.At().Before(from) && one.At().Before(to) {
				found = append(found, one)
			}
		}
	}
	slices.SortFunc(found, func(a, b T) int { return a.At().Compare(b.At()) })
	return found, s.failed("read the history", processor, err)
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
