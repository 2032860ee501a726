// Package discover finds out which processors keep their leases where, as values: what `feedscale leases`
// prints, with the entries of the processors file that would watch them.
//
// It prints nothing. Start with [Leases], or with [Account] for all lease containers of an account; origin.go asks the account which container a prefix of lease
// ids means, entry.go writes the entry.
//
// The package is internal to the program: its API may change in any release.
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

// Leases looks into a lease container of the account that a connection leads to.
func Leases(ctx context.Context, account *cosmos.Account, connection config.CosmosConnection, container cosmos.Container, now func() time.Time) (Report, error) {
	return survey{account: account, connection: connection, container: container}.look(ctx, make(map[string]bool), now)
}

// look reads all leases of the container. The entries get names that are not taken.
func (s survey) look(ctx context.Context, taken map[string]bool, now func() time.Time) (Report, error) {
	documents, usage, err := s.account.FindLeases(ctx, s.container)
	if errors.Is(err, cosmos.ErrMissing) {
		return Report{}, fmt.Errorf("container %s does not exist in account %s: correct --database and --container", s.container, s.connection.Host)
	}
	if err != nil {
		return Report{}, err
	}
	for i := range documents {
		documents[i].LimitTime(now())
	}
	report := Report{LeaseContainer: s.container.String(), Account: s.connection.Host, Processors: []Processor{}}
	for _, origin := range s.origins(ctx, changefeed.Inventory(documents), &usage) {
		report.Processors = append(report.Processors, s.report(origin, now()))
	}
	s.suggest(report.Processors, taken)
	report.RequestCharge, report.Requests = usage.Charge, usage.Requests
	return report, nil
}
