package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// Settled payments are written to a container with throughput of its own, so small that several
// replicas use it up.
const (
	ledger           = "ledger"
	ledgerKey        = "/accountId"
	ledgerThroughput = 400 // request units a second, the lowest possible
)

// openContainer returns a client of a container, with an SDK instance of its own.
func openContainer(endpoint, id string) (*azcosmos.ContainerClient, error) {
	key, err := azcosmos.NewKeyCredential(cosmosfake.WellKnownKey)
	if err != nil {
		return nil, err
	}
	client, err := azcosmos.NewClientWithKey(endpoint, key, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: bounded.NewClient()}})
	if err != nil {
		return nil, err
	}
	return client.NewContainer(database, id)
}

// settle writes a payment to the ledger. If the request units are used up, the SDK waits and tries
// again as the service says. If that is not enough, settle tries again.
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
