package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// loseLease deletes the lease of a partition of payments, as the SDKs sometimes do, and returns it.
// If a lost lease is given, loseLease restores it and returns nil. On an error nothing was changed,
// and the given lease is returned.
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

// replaceLease replaces a lease of payments by one from elsewhere, as after a failover without its
// data, and returns the old one. If an old lease is given, replaceLease restores it.
func (w *World) replaceLease(was map[string]any) (map[string]any, error) {
	lost, err := w.loseLease("1", was)
	if err == nil && lost != nil {
		err = w.account.Upsert(database, leaseContainer, leasefake.FromElsewhere(lost))
	}
	return lost, err
}
