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

// stateProperties are those of a State and its encoding: text that people can read, if it fits into a
// property, else compressed.
func stateProperties(s state.State, encoded []byte) (map[string]any, error) {
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

// readState returns what is in a row, with the row's ETag as the version.
func readState(row aztables.EDMEntity) (state.Entry, error) {
	if row.ETag == "" {
		return state.Entry{}, errors.New("the service gave no ETag")
	}
	encoded, err := encodedState(row)
	if err != nil {
		return state.Entry{}, err
	}
	stored, err := state.Decode(encoded)
	stored.Version = state.Version(row.ETag)
	return stored, err
}

func encodedState(row aztables.EDMEntity) ([]byte, error) {
	if text, ok := row.Properties[stateProperty].(string); ok {
		return []byte(text), nil
	}
	text, err := join(row.Properties, stateProperty)
	return text, unreadable(row.Entity, err)
}

// eventProperties are those of an event: its exact bytes.
func eventProperties(event state.Event) (map[string]any, error) {
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
	return state.Event{Processor: row.PartitionKey, Sequence: sequence, Body: body}, unreadable(row.Entity, err)
}

func entity(processor, row string, properties map[string]any) ([]byte, error) {
	return json.Marshal(aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: processor, RowKey: row},
		Properties: properties,
	})
}

// unreadable returns the error of a row that cannot be read, nil where it can.
func unreadable(row aztables.Entity, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("row %s of partition %s was not written by this version of feedscale (%w): delete it, or use another table",
		row.RowKey, row.PartitionKey, err)
}

// The limits of the service: 64 KiB per property, which is 32 Ki UTF-16 code units of a string, and
// 1 MiB per entity with its keys and names
// (https://learn.microsoft.com/rest/api/storageservices/understanding-the-table-service-data-model).
// One chunk of 64 KiB is left for the keys, the names and the columns that people read.
const (
	maxStringUnits = 32_000
	maxChunkBytes  = 64 << 10
	maxChunks      = 15
	// maxRows is the most that a query reads.
	maxRows = 100_000
)

// split stores content in the properties name0, name1 and so on, at least one. The error has the greatest
// number of bytes.
func split(properties map[string]any, name string, content []byte) error {
	if len(content) > maxChunks*maxChunkBytes {
		return fmt.Errorf("it takes %d bytes, of %d", len(content), maxChunks*maxChunkBytes)
	}
	for i := 0; i == 0 || len(content) > 0; i++ {
		chunk := content[:min(len(content), maxChunkBytes)]
		properties[chunkName(name, i)] = aztables.EDMBinary(chunk)
		content = content[len(chunk):]
	}
	return nil
}

// join is the inverse of split.
func join(properties map[string]any, name string) ([]byte, error) {
	var content []byte
	for i := 0; ; i++ {
		chunk, ok := properties[chunkName(name, i)].(aztables.EDMBinary)
		switch {
		case ok:
			content = append(content, chunk...)
		case i == 0:
			return nil, fmt.Errorf("it has no %s", chunkName(name, 0))
		default:
			return content, nil
		}
	}
}

func chunkName(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }
