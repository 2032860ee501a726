package leasefake

import (
	"context"
	"encoding/json"
	"maps"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// Lose deletes a lease, as the SDKs sometimes do (azure-sdk-for-java, PR #44648), and returns it
// without an owner, so that it can be restored. container is the id of a lease container with the
// partition key /id. If there is no such lease, the error is that of azcosmos.
func (p Processor) Lose(ctx context.Context, account *cosmosfake.Server, container, id string) (map[string]any, error) {
	client, err := azcosmos.NewClientFromConnectionString(account.ConnectionString(), nil)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	leases, err := client.NewContainer(p.Database, container)
	if err != nil {
		return nil, err
	}
	read, err := leases.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil {
		return nil, err
	}
	var lost map[string]any
	if err := json.Unmarshal(read.Value, &lost); err != nil {
		return nil, err
	}
	// the account's own
	maps.DeleteFunc(lost, func(name string, _ any) bool { return strings.HasPrefix(name, "_") })
	lost["Owner"] = nil
	return lost, account.Delete(p.Database, container, id, id)
}

// elsewhere is a position beyond the feeds of all stand-ins.
const elsewhere = 1_000_000_000

// FromElsewhere returns a PK-range lease as it is after it was restored from another account, or
// from an older container of the name: its position is one that its feed has not come to.
func FromElsewhere(lease map[string]any) map[string]any {
	lease = maps.Clone(lease)
	lease["ContinuationToken"], lease["Owner"] = *At(elsewhere), nil
	return lease
}
