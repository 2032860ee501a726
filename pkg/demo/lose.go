package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// loseLease deletes the lease of a partition of payments, as the SDKs lose one at times, and returns it;
// given a lease that was lost, it puts that back where it stood and returns nil. The error says why nothing
// was done, with the lease as it was given.
func (w *World) loseLease(partition string, lost map[string]any) (map[string]any, error) {
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
	if lost, err = of.Lose(ctx, w.account, leaseContainer, of.DotNetPrefix()+".."+partition); err != nil {
		return nil, fmt.Errorf("payments has no lease of partition %s: %w", partition, err)
	}
	return lost, nil
}

// replaceLease has a lease of payments restored from elsewhere, as after a failover without its data; given
// the lease that it was, it puts that back.
func (w *World) replaceLease(was map[string]any) (map[string]any, error) {
	lost, err := w.loseLease("1", was)
	if err == nil && lost != nil {
		err = w.account.Upsert(database, leaseContainer, leasefake.FromElsewhere(lost))
	}
	return lost, err
}
