// Package tablestore is a state.Store in one table of Azure Table storage, for any number of
// processes (docs/operate.md, State).
//
// It knows the Table service, its limits and its answers, and nothing of what a State means. A
// processor is a partition of the table; its State is the row `state`, each event of its outbox a
// row `outbox-<sequence>`, and each hour of its history a row `history-<hour>`. Start with [Store]
// (the operations). row.go and history.go have the layout, open.go the ways to sign in, refusal.go the
// errors of the service.
//
// The package is internal to the program: its API may change in any release.
package tablestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"golang.org/x/sync/errgroup"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/state"
)

// Store is a state.Store in one table of Azure Table storage.
type Store struct {
	client *aztables.Client
	table  string
	host   string
	signIn signIn
}

var errStrangeAnswer = errors.New("the answer is not that of a Table service: look for a proxy in between")

var _ state.Store = (*Store)(nil)

// Load implements state.Store, with one request for each 1,000 events in the outbox, a page of the service.
func (s *Store) Load(ctx context.Context, processor string) (stored state.Entry, err error) {
	// The rows `outbox-...` and `state` are adjacent in a partition: one range of keys has them and
	// leaves out the history.
	rows, err := s.query(ctx, fmt.Sprintf("PartitionKey eq %s and RowKey ge '%s' and RowKey le '%s'",
		quoted(processor), outboxPrefix, stateRow))
	if err != nil {
		return state.Entry{}, s.failed("load", processor, err)
	}
	var outbox []state.Event
	for _, row := range rows {
		switch {
		case row.RowKey == stateRow:
			stored, err = readState(row)
		case strings.HasPrefix(row.RowKey, outboxPrefix):
			var event state.Event
			event, err = readEvent(row)
			outbox = append(outbox, event)
		}
		if err != nil {
			return state.Entry{}, s.failed("load", processor, err)
		}
	}
	stored.Outbox = outbox
	return stored, nil
}

// Commit implements state.Store, with one entity group transaction. If the answer is lost, the SDK repeats
// the commit, which then conflicts with itself: the next tick goes on from what it stored.
func (s *Store) Commit(ctx context.Context, version state.Version, next state.State, event *state.Event) error {
	actions, err := actions(version, next, event)
	if err == nil {
		err = s.first(ctx, version, func() error { return s.submit(ctx, actions) })
	}
	return s.written(next.Processor, err)
}

// written makes the error of a commit or of a Put.
func (s *Store) written(name string, err error) error {
	if answerOf(err).isConflict() {
		err = state.ErrConflict
	}
	return s.failed("commit", name, err)
}

// first writes, and creates the table if it is missing and nothing was committed yet.
func (s *Store) first(ctx context.Context, version state.Version, write func() error) error {
	err := write()
	if version == "" && answerOf(err).is(aztables.TableNotFound) {
		if err = s.createTable(ctx); err == nil {
			err = write()
		}
	}
	return err
}

// Documents implements state.Store.
func (s *Store) Documents(ctx context.Context, prefix string) ([]state.Document, error) {
	end := prefix[:len(prefix)-1] + string(prefix[len(prefix)-1]+1) // above all names with the prefix
	rows, err := s.query(ctx, fmt.Sprintf("PartitionKey ge %s and PartitionKey lt %s and RowKey eq '%s'", quoted(prefix), quoted(end), stateRow))
	found := make([]state.Document, len(rows))
	for i, row := range rows {
		text, unread := encodedState(row)
		err = cmp.Or(err, unread)
		found[i] = state.Document{Name: row.PartitionKey, Version: state.Version(row.ETag), Text: text}
	}
	if err != nil {
		return nil, s.failed("load", prefix, err)
	}
	return found, nil
}

// Put implements state.Store. It may conflict with itself, as Commit.
func (s *Store) Put(ctx context.Context, d state.Document) (state.Version, error) {
	var tag azcore.ETag
	before, properties := azcore.ETag(d.Version), map[string]any{}
	err := putText(properties, d.Text)
	row, wrong := entity(d.Name, stateRow, properties)
	switch err = cmp.Or(err, wrong); {
	case err != nil:
	case d.Text == nil:
		_, err = s.client.DeleteEntity(ctx, d.Name, stateRow, &aztables.DeleteEntityOptions{IfMatch: &before})
	case d.Version == "":
		err = s.first(ctx, "", func() error {
			answer, err := s.client.AddEntity(ctx, row, nil)
			tag = answer.ETag
			return err
		})
	default:
		var answer aztables.UpdateEntityResponse
		answer, err = s.client.UpdateEntity(ctx, row, &aztables.UpdateEntityOptions{IfMatch: &before, UpdateMode: aztables.UpdateModeReplace})
		tag = answer.ETag
	}
	if err == nil && tag == "" && d.Text != nil {
		err = errStrangeAnswer
	}
	return state.Version(tag), s.written(d.Name, err)
}

// actions returns the actions of a commit's transaction. The ETag of the first, the State, decides whether
// there is a conflict.
func actions(version state.Version, next state.State, event *state.Event) (all []aztables.TransactionAction, failed error) {
	write, err := state.NewWrite(next, event, maxStringUnits)
	if err != nil {
		return nil, err
	}
	add := func(kind aztables.TransactionType, row string, properties map[string]any, err error) {
		text, wrong := entity(next.Processor, row, properties)
		failed = cmp.Or(failed, err, wrong)
		all = append(all, aztables.TransactionAction{ActionType: kind, Entity: text})
	}
	properties, err := stateProperties(next, write.State)
	add(aztables.TransactionTypeAdd, stateRow, properties, err)
	if version != "" {
		all[0].ActionType, all[0].IfMatch = aztables.TransactionTypeUpdateReplace, new(azcore.ETag(version))
	}
	if event != nil {
		properties, err := eventProperties(*event)
		add(aztables.TransactionTypeAdd, outboxRow(event.Sequence), properties, err)
	}
	if at := next.AttemptedAt; write.Sample != nil {
		add(aztables.TransactionTypeInsertMerge, hourRow(historyPrefix, at), map[string]any{sampleProperty(at): string(write.Sample)}, nil)
	}
	if write.Summary != nil {
		add(aztables.TransactionTypeInsertReplace, hourRow(summaryPrefix, next.Finished.Hour), map[string]any{summaryProperty: string(write.Summary)}, nil)
	}
	return all, failed
}

// createTable creates the table. Call it only if the table is missing: the credential may be allowed to use
// a table and not to create one.
func (s *Store) createTable(ctx context.Context) error {
	_, err := s.client.CreateTable(ctx, nil)
	switch a := answerOf(err); {
	case a.is(aztables.TableAlreadyExists): // another process has created it
		return nil
	case a.status == http.StatusForbidden:
		r := s.refusal(a)
		r.Meaning, r.Remedy = fmt.Sprintf("there is no such table, and the %s may not create it", s.signIn.name), "create the table, or allow it"
		r.Command = azurecli.Command("storage table create", "--name", s.table, "--account-name", azurecli.Table.Resource(s.host), "--auth-mode", "login")
		return r
	}
	return err
}

// submit sends a transaction and checks that the service confirms every action. A proxy may answer what the
// SDK cannot read, which it takes for a success, or nothing, on which it panics.
func (s *Store) submit(ctx context.Context, actions []aztables.TransactionAction) (err error) {
	defer func() {
		if recover() != nil {
			err = errStrangeAnswer
		}
	}()
	var answer *http.Response
	if _, err := s.client.SubmitTransaction(policy.WithCaptureResponse(ctx, &answer), actions, nil); err != nil {
		return err
	}
	body, err := runtime.Payload(answer)
	if err != nil {
		return err
	}
	if confirmed := bytes.Count(body, []byte("HTTP/1.1 20")); confirmed != len(actions) {
		return errStrangeAnswer
	}
	return nil
}

// Outbox implements state.Store. A query without a partition key would scan the whole table with its
// histories. So it makes one query for each gap between the sorted names in except, which has only
// processors that were removed, and mostly none.
func (s *Store) Outbox(ctx context.Context, except []string) ([]state.Event, error) {
	filters := outboxFilters(except)
	found := make([][]state.Event, len(filters))
	err := each(ctx, len(filters), func(ctx context.Context, i int) error {
		rows, err := s.query(ctx, filters[i])
		if err != nil {
			return err
		}
		for _, row := range rows {
			event, err := readEvent(row)
			if err != nil {
				return err
			}
			found[i] = append(found[i], event)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", s.explain(err))
	}
	return slices.Concat(found...), nil
}

// outboxFilters returns the filters for the events before, between and after the processors in
// except, in this order. One filter with `or` would scan the whole table.
func outboxFilters(except []string) []string {
	names := slices.Compact(slices.Sorted(slices.Values(except)))
	filters := make([]string, 0, len(names)+1)
	after := ""
	for _, name := range names {
		filters = append(filters, fmt.Sprintf("%sPartitionKey lt %s and %s", after, quoted(name), anyEvent))
		after = fmt.Sprintf("PartitionKey gt %s and ", quoted(name))
	}
	return append(filters, after+anyEvent)
}

// Remove implements state.Store. A transaction would fail as a whole if one of the events were gone.
func (s *Store) Remove(ctx context.Context, processor string, sequences ...int64) error {
	err := each(ctx, len(sequences), func(ctx context.Context, i int) error {
		return s.remove(ctx, processor, outboxRow(sequences[i]))
	})
	return s.failed(fmt.Sprintf("remove events %d", sequences), processor, err)
}

// remove deletes a row. A row that does not exist is no error.
func (s *Store) remove(ctx context.Context, processor, row string) error {
	_, err := s.client.DeleteEntity(ctx, processor, row, nil)
	if a := answerOf(err); a.isMissingRow() || a.is(aztables.TableNotFound) {
		return nil
	}
	return err
}

// Close implements state.Store. It has nothing to release.
func (s *Store) Close() error { return nil }

// query reads all pages of the rows that a filter selects, in the order of their keys, with the
// selected properties or, without any, with all. A table that does not exist has no rows.
func (s *Store) query(ctx context.Context, filter string, selected ...string) ([]aztables.EDMEntity, error) {
	var rows []aztables.EDMEntity
	options := aztables.ListEntitiesOptions{Filter: &filter}
	if len(selected) > 0 {
		options.Select = new(strings.Join(selected, ","))
	}
	pages := s.client.NewListEntitiesPager(&options)
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if answerOf(err).is(aztables.TableNotFound) {
			return nil, nil // nothing was committed yet
		}
		if err != nil {
			return nil, err
		}
		for _, entity := range page.Entities {
			var row aztables.EDMEntity
			if err := json.Unmarshal(entity, &row); err != nil {
				return nil, fmt.Errorf("read a row: %w", err)
			}
			rows = append(rows, row)
		}
		if len(rows) > maxRows {
			return nil, fmt.Errorf("there are more than %d rows of it", maxRows)
		}
	}
	// The service sorts them so; an emulator may not.
	slices.SortFunc(rows, func(a, b aztables.EDMEntity) int {
		return cmp.Or(strings.Compare(a.PartitionKey, b.PartitionKey), strings.Compare(a.RowKey, b.RowKey))
	})
	return rows, nil
}

// failed returns the error of an operation, nil where it did not fail.
func (s *Store) failed(what, processor string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of processor %q: %w", what, processor, s.explain(err))
}

// parallel is the greatest number of requests that one call has in flight.
const parallel = 16

// each calls do for 0..n-1, at most parallel at once, and waits for all. The first error cancels
// the context of the others and is returned.
func each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(parallel)
	for i := range n {
		calls.Go(func() error { return do(ctx, i) })
	}
	return calls.Wait()
}
