package tablestore

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// The key of the row that a probe writes. No processor can have that name, and no row of an outbox
// has that key.
const (
	probePartition = "~check"
	probeRow       = "probe"
)

// Probe writes a row, reads it and deletes it, in a partition that no processor has. It creates a missing
// table, as the first Commit does; created reports that. The error says what to do; it is a
// *refusal.Error if the service answered.
func (s *Store) Probe(ctx context.Context) (created bool, err error) {
	row, err := entity(probePartition, probeRow, nil)
	if err != nil {
		return false, err
	}
	tries := 0
	err = s.first(ctx, "", func() error {
		tries++
		_, err := s.client.UpsertEntity(ctx, row, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		return err
	})
	doing := "write a row"
	if err == nil {
		doing = "read a row"
		_, err = s.query(ctx, fmt.Sprintf("PartitionKey eq '%s'", probePartition))
	}
	if err == nil {
		doing = "delete a row"
		err = s.remove(ctx, probePartition, probeRow) // another probe may have deleted it
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", doing, s.explain(err))
	}
	return tries > 1, err
}
