package tablestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/connectionstring"
)

// The key of the row that a probe writes. No processor can have that name, and no row of an outbox
// has that key.
const (
	probePartition = "~check"
	probeRow       = "probe"
)

// Probe writes a row, reads it and deletes it, in a partition that no processor has. It creates the
// table where it is missing, as the first Commit does; created reports that. The error is a
// *Refusal where the service answered, and says what to do in every case.
func (s *Store) Probe(ctx context.Context) (created bool, err error) {
	row, err := json.Marshal(aztables.EDMEntity{Entity: aztables.Entity{PartitionKey: probePartition, RowKey: probeRow}})
	if err != nil {
		return false, err
	}
	write := func() error {
		_, err := s.client.UpsertEntity(ctx, row, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
		return err
	}
	err = write()
	if refused, ok := answerOf(err); ok && refused.missingTable() {
		if _, err := s.client.CreateTable(ctx, nil); err != nil && !exists(err) {
			return false, s.unproved("create the table", true, err)
		}
		created, err = true, write()
	}
	if err != nil {
		return created, s.unproved("write a row", false, err)
	}
	if _, err := s.query(ctx, fmt.Sprintf("PartitionKey eq '%s'", probePartition)); err != nil {
		return created, s.unproved("read a row", false, err)
	}
	_, err = s.client.DeleteEntity(ctx, probePartition, probeRow, nil)
	if refused, ok := answerOf(err); ok && refused.missingRow() { // another probe has deleted it
		return created, nil
	}
	if err != nil {
		return created, s.unproved("delete a row", false, err)
	}
	return created, nil
}

// exists reports whether the table was not created because it exists.
func exists(err error) bool {
	refused, ok := answerOf(err)
	return ok && refused.code == string(aztables.TableAlreadyExists)
}

func (s *Store) unproved(what string, creating bool, err error) error {
	explained := s.explain(err)
	if refused, ok := errors.AsType[*Refusal](explained); ok && creating && refused.Status == http.StatusForbidden {
		refused.advice, refused.command = "create it", azurecli.Command("storage table create", "--name", s.table, "--account-name", azurecli.Table.Resource(s.host), "--auth-mode", "login")
	}
	return fmt.Errorf("state table %s: %s: %w", s.table, what, explained)
}

// Endpoint returns the URL of the Table service in a storage connection string, without
// credentials. The error says what is wrong with the string and contains no value of it.
func Endpoint(connectionString string) (string, error) {
	parsed, err := connectionstring.ParseStorage(connectionString)
	if err != nil {
		return "", fmt.Errorf("the storage connection string %w", err)
	}
	return parsed.Endpoint, nil
}
