package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// loseLease deletes a lease of payments, as the SDKs lose one at times, and returns it; given a lease that
// was lost, it puts that back where it stood and returns nil. The error says why nothing was done, with the
// lease as it was given.
func (w *World) loseLease(lost map[string]any) (map[string]any, error) {
	if lost != nil {
		return nil, w.account.Upsert(database, leaseContainer, lost)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	at := strings.Index(w.account.Endpoint(), "//")
	host, _, _ := strings.Cut(w.account.Endpoint()[at+2:], ":")
	of, err := leasefake.Processor{Name: "payment-settlement", Host: host, Database: database, Container: "payments"}.In(ctx, w.account)
	if err != nil {
		return nil, err
	}
	container, err := openContainer(w.account.Endpoint(), leaseContainer)
	if err != nil {
		return nil, err
	}
	id := of.DotNetPrefix() + "..0"
	read, err := container.ReadItem(ctx, azcosmos.NewPartitionKeyString(id), id, nil)
	if err != nil {
		return nil, fmt.Errorf("payments has no lease yet: %w", err)
	}
	if err := json.Unmarshal(read.Value, &lost); err != nil {
		return nil, err
	}
	for name := range lost {
		if strings.HasPrefix(name, "_") { // the account's own
			delete(lost, name)
		}
	}
	lost["Owner"] = nil
	return lost, w.account.Delete(database, leaseContainer, id, id)
}
