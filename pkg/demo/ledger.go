package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// The payments that were settled are written to a container with throughput of its own, which several
// replicas use up.
const (
	ledger           = "ledger"
	ledgerKey        = "/accountId"
	ledgerThroughput = 400 // request units a second, the least there is
)

// openContainer returns a container by an SDK of its own.
func openContainer(endpoint, id string) (*azcosmos.ContainerClient, error) {
	key, err := azcosmos.NewKeyCredential(cosmosfake.WellKnownKey)
	if err != nil {
		return nil, err
	}
	client, err := azcosmos.NewClientWithKey(endpoint, key, nil)
	if err != nil {
		return nil, err
	}
	return client.NewContainer(database, id)
}

// settle writes a payment to the ledger. Where request units are used up the SDK waits and tries again, as
// the service says; where that does not do, so does this.
func settle(ctx context.Context, to *azcosmos.ContainerClient, change json.RawMessage) error {
	var p payment
	if err := json.Unmarshal(change, &p); err != nil {
		return fmt.Errorf("reading a payment: %w", err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	for {
		_, err = to.UpsertItem(ctx, azcosmos.NewPartitionKeyString(p.AccountID), text, nil)
		refused, ok := errors.AsType[*azcore.ResponseError](err)
		if !ok || refused.StatusCode != http.StatusTooManyRequests || ctx.Err() != nil {
			return err
		}
	}
}
