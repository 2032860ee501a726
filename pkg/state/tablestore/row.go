package tablestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/state"
)

// The row keys of a processor's partition. Sequences have twelve digits, so that the service, which
// sorts keys as text, sorts them as numbers.
const (
	stateRow     = "state"
	outboxPrefix = "outbox-"
	outboxEnd    = "outbox." // the smallest key above all keys with the prefix
	anyEvent     = "RowKey ge '" + outboxPrefix + "' and RowKey lt '" + outboxEnd + "'"
)

func outboxRow(sequence int64) string { return fmt.Sprintf("%s%012d", outboxPrefix, sequence) }

// The properties that are read back. The other ones of the state row are for people who look at the
// table.
const (
	stateProperty = "state"
	bodyProperty  = "body"
)

// stateProperties are those of a State: as text that people can read, if it fits into a property, else
// compressed.
func stateProperties(s state.State) (map[string]any, error) {
	properties := map[string]any{
		"processor": s.Processor,
		"sequence":  aztables.EDMInt64(s.Sequence),
	}
	if !s.PolledAt.IsZero() {
		properties["polledAt"] = aztables.EDMDateTime(s.PolledAt.UTC())
	}
	if !s.Lag.Time.IsZero() {
		properties["status"] = string(s.Lag.Status())
	}
	if lag := s.Lag.Lag(); lag != nil {
		properties["lag"] = aztables.EDMInt64(*lag)
	}
	if s.Decision != nil {
		properties["desiredReplicas"] = aztables.EDMInt64(s.Decision.Replicas)
	}

	encoded, err := state.Encode(s, maxStringUnits, maxChunks*maxChunkBytes)
	if err != nil {
		return nil, err
	}
	if err := putText(properties, encoded); err != nil {
		return nil, fmt.Errorf("its state (%d partitions) does not fit into a row of the table: %w; keep it in a file, with bolt:PATH", len(s.Lag.Partitions), err)
	}
	return properties, nil
}

// putText adds the content of a row, in the same way.
func putText(properties map[string]any, encoded []byte) error {
	if len(encoded) <= maxStringUnits && len(encoded) > 0 && encoded[0] == '{' {
		properties[stateProperty] = string(encoded)
		return nil
	}
	return split(properties, stateProperty, encoded)
}

// readState returns what is in a row, with the row's ETag as the version. explain is that of state.Decode.
func readState(row aztables.EDMEntity, explain func(error) error) (state.Entry, error) {
	if row.ETag == "" {
		return state.Entry{}, unreadable(row.Entity, errors.New("the service gave no ETag"))
	}
	encoded, err := encodedState(row)
	if err != nil {
		return state.Entry{}, err
	}
	key := row.Entity // and not the content with it
	stored, err := state.Decode(encoded, func(err error) error { return explain(unreadable(key, err)) })
	switch {
	case errors.Is(err, state.ErrNewer):
		return state.Entry{}, fmt.Errorf("row %s: %w", row.RowKey, err)
	case err != nil:
		return state.Entry{}, unreadable(row.Entity, err)
	}
	stored.Version = state.Version(row.ETag)
	return stored, nil
}

func encodedState(row aztables.EDMEntity) ([]byte, error) {
	if text, ok := row.Properties[stateProperty].(string); ok {
		return []byte(text), nil
	}
	encoded, err := join(row.Properties, stateProperty)
	if err != nil {
		return nil, unreadable(row.Entity, err)
	}
	return encoded, nil
}

// eventProperties are those of an event: its exact bytes.
func eventProperties(processor string, event state.Event) (map[string]any, error) {
	if err := event.Check(processor); err != nil {
		return nil, err
	}
	properties := map[string]any{}
	if err := split(properties, bodyProperty, event.Body); err != nil {
		return nil, fmt.Errorf("event %d does not fit into a row of the table: %w; give the processor fewer labels in target", event.Sequence, err)
	}
	return properties, nil
}

func readEvent(row aztables.EDMEntity) (state.Event, error) {
	sequence, err := strconv.ParseInt(strings.TrimPrefix(row.RowKey, outboxPrefix), 10, 64)
	if err != nil || outboxRow(sequence) != row.RowKey {
		return state.Event{}, unreadable(row.Entity, errors.New("its key names no sequence"))
	}
	body, err := join(row.Properties, bodyProperty)
	if err != nil {
		return state.Event{}, unreadable(row.Entity, err)
	}
	return state.Event{Processor: row.PartitionKey, Sequence: sequence, Body: body}, nil
}

func entity(processor, row string, properties map[string]any) ([]byte, error) {
	return json.Marshal(aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: processor, RowKey: row},
		Properties: properties,
	})
}

func unreadable(row aztables.Entity, err error) error {
	return fmt.Errorf("row %s of partition %s was not written by this version of feedscale (%w): delete it, or use another table",
		row.RowKey, row.PartitionKey, err)
}
