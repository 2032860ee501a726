// Package discover finds the processors that keep leases in a container or an account, and makes
// the entries of the processors file that watch them. It prints nothing.
//
// Start with [Leases] for a container, and with [Account] for an account. origin.go finds the
// container that a prefix of lease ids means; entry.go makes the entry.
//
// The package is internal to feedscale: its API may change in any release.
package discover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// survey is one look into a lease container.
type survey struct {
	account    *cosmos.Account
	connection config.CosmosConnection
	container  cosmos.Container
}

// Leases finds the processors with leases in a container of an account.
func Leases(ctx context.Context, account *cosmos.Account, connection config.CosmosConnection, container cosmos.Container, now func() time.Time) (Report, error) {
	return survey{account: account, connection: connection, container: container}.look(ctx, make(map[string]bool), now)
}

// look reads all leases of the container. taken are names of entries; look adds those that it
// gives.
func (s survey) look(ctx context.Context, taken map[string]bool, now func() time.Time) (Report, error) {
	documents, usage, err := s.account.Leases(ctx, s.container, nil)
	if errors.Is(err, cosmos.ErrMissing) {
		return Report{}, fmt.Errorf("container %s does not exist in account %s: correct --database and --container", s.container, s.connection.Host)
	}
	if err != nil {
		return Report{}, err
	}
	report := Report{LeaseContainer: s.container.String(), Account: s.connection.Host, Processors: []Processor{}}
	for _, f := range changefeed.Sorted(documents, now()).Inventory() {
		report.Processors = append(report.Processors, s.report(s.origin(ctx, f, &usage), now()))
	}
	s.suggest(report.Processors, taken)
	report.RequestCharge, report.Requests = usage.Charge, usage.Requests
	return report, nil
}
