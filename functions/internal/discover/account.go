package discover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Discovery is the change feed processors of an account.
type Discovery struct {
	Account       string
	Databases     []string // that were looked at
	Containers    int      // in them
	Candidates    int      // containers in which an SDK would keep leases
	Leases        []Report // of containers that hold leases, in the order of the account
	Skipped       []SkippedItem
	RequestCharge float64
}

// SkippedItem is a container or database that was not searched.
type SkippedItem struct {
	What string // a container, or a database
	Why  string
}

// Account finds the processors with leases in a database of an account, or in all of them if
// database is "". It searches a container that an SDK would use for leases, and whose first
// documents are leases. A container that cannot be read is skipped. It is an error if the account,
// or the given database, cannot be listed.
func Account(ctx context.Context, account *cosmos.Account, connection config.CosmosConnection, database string, now func() time.Time) (Discovery, error) {
	found := Discovery{Account: connection.Host, Databases: []string{database}}
	if database == "" {
		databases, usage, err := account.Databases(ctx)
		if err != nil {
			return found, fmt.Errorf("%w; with --database only that one is looked at", err)
		}
		found.Databases, found.RequestCharge = nil, usage.Charge
		for _, d := range databases {
			found.Databases = append(found.Databases, d.ID)
		}
	}
	var candidates []cosmos.Container
	for _, id := range found.Databases {
		containers, usage, err := account.Containers(ctx, id)
		found.RequestCharge += usage.Charge
		if err != nil && database != "" {
			return found, err
		}
		if err != nil {
			found.Skipped = append(found.Skipped, SkippedItem{id, err.Error()})
			continue
		}
		found.Containers += len(containers)
		for _, c := range containers {
			if mayHoldLeases(c.PartitionKey.Paths) {
				candidates = append(candidates, cosmos.Container{Database: id, ID: c.ID})
			}
		}
	}
	found.Candidates = len(candidates)
	taken := make(map[string]bool)
	for _, c := range candidates {
		g, usage, err := account.Glance(ctx, c)
		found.RequestCharge += usage.Charge
		report := Report{}
		switch {
		case err != nil:
		case g.Leases == 0:
			continue
		case !g.Whole && 2*g.Leases < g.Seen: // to search many other documents costs many request units
			err = fmt.Errorf("only %d of its first %d documents are leases, so it is not searched; feedscale leases --connection %s --database %s --container %s searches it",
				g.Leases, g.Seen, connection.Setting, c.Database, c.ID)
		default:
			report, err = survey{account, connection, c}.look(ctx, taken, now)
		}
		found.RequestCharge += report.RequestCharge
		if err != nil {
			found.Skipped = append(found.Skipped, SkippedItem{c.String(), err.Error()})
			continue
		}
		found.Leases = append(found.Leases, report)
	}
	return found, nil
}

// Entries counts the complete entries for a processors file.
func (d Discovery) Entries() (n int) {
	for _, r := range d.Leases {
		for _, p := range r.Processors {
			if p.Entry != nil {
				n++
			}
		}
	}
	return n
}

// mayHoldLeases reports whether an SDK accepts the partition key of a lease container: /id, for
// .NET also /partitionKey, and the service's own key of containers that were made without one
// (azure-cosmos-dotnet-v3, DocumentServiceLeaseStoreManagerBuilder.cs).
func mayHoldLeases(partitionKey []string) bool {
	return slices.Contains([]string{"", "/id", "/partitionKey", "/_partitionKey"}, strings.Join(partitionKey, ", "))
}
