package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// loseLeases deletes the leases of some partitions of a service, as the SDKs sometimes do, and
// returns those that it deleted. On an error they can be restored as well.
func (w *World) loseLeases(processor leasefake.Processor, partitions ...string) (lost []map[string]any, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) // the account is in this process, and slow where the cores are busy
	defer cancel()
	at := strings.Index(w.account.Endpoint(), "//")
	processor.Database = database
	processor.Host, _, _ = strings.Cut(w.account.Endpoint()[at+2:], ":")
	if processor, err = processor.In(ctx, w.account); err != nil {
		return nil, err
	}
	for _, partition := range partitions {
		lease, err := processor.Lose(ctx, w.account, leaseContainer, processor.DotNetPrefix()+".."+partition)
		if err != nil {
			return lost, fmt.Errorf("%s has no lease of partition %s: %w", processor.Container, partition, err)
		}
		lost = append(lost, lease)
	}
	return lost, nil
}

// replaceLeases replaces the leases of audit by leases from elsewhere, as after a failover without
// its data, and returns the old ones. The handlers of audit hang, so that no host checkpoints a
// position of its own over them.
func (w *World) replaceLeases() (was []map[string]any, err error) {
	was, err = w.loseLeases(leasefake.Processor{Name: "audit-archive", Container: "audit"}, "0", "1")
	for _, lease := range was {
		if err == nil {
			err = w.account.Upsert(database, leaseContainer, leasefake.FromElsewhere(lease))
		}
	}
	return was, err
}

// restoreLeases writes leases as they were, and returns those that it could not write.
func (w *World) restoreLeases(lost []map[string]any) ([]map[string]any, error) {
	for i, lease := range lost {
		if err := w.account.Upsert(database, leaseContainer, lease); err != nil {
			return lost[i:], err
		}
	}
	return nil, nil
}
