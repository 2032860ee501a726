package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// leases prints every processor that keeps its leases in a container, and the
// lines that make feedscale watch it.
func (p program) leases(ctx context.Context, args []string) int {
	f := p.flags("leases", "--connection SETTING --database ID [--container ID] [--output table|json]")
	setting := f.String("connection", "", "the setting that connects to the account of the lease container, as in the processors file")
	database := f.String("database", "", "the database of the lease container")
	container := f.String("container", "leases", "the lease container")
	output := f.String("output", "table", "table or json")
	if status, done := p.parse(f, args); done {
		return status
	}
	var mistakes flagMistakes
	if *setting == "" || *database == "" || *container == "" {
		mistakes.add("--connection and --database are needed, as in --connection COSMOS --database shop")
	}
	mistakes.choice("output", *output, "table", "json")
	if p.refuse("leases", mistakes) {
		return exitUsage
	}
	settings, err := config.ReadSettings(p.environ)
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitUsage
	}
	connection, err := config.ParseCosmosConnection(config.Lookup(p.environ), *setting)
	if err != nil {
		return p.fail(exitUsage, err)
	}
	w := wiring{accounts: make(map[accountKey]*cosmos.Account), identities: make(map[config.Identity]azcore.TokenCredential), settings: settings}
	account, err := w.account(connection)
	if err != nil {
		return p.fail(exitUsage, err)
	}
	survey := survey{account: account, connection: connection, container: cosmos.Container{Database: *database, ID: *container}}
	report, err := survey.run(ctx, time.Now)
	if err != nil {
		return p.fail(exitIncomplete, err)
	}
	if err := p.printLeases(*output, report); err != nil {
		return p.fail(exitIncomplete, err)
	}
	if !report.complete() {
		return exitIncomplete
	}
	return exitOK
}

func (p program) printLeases(output string, report leaseReport) error {
	if output == "table" {
		return writeLeases(p.stdout, report, colored(p.stdout, p.getenv("NO_COLOR")))
	}
	return writeJSON(p.stdout, report)
}

// survey is one look into a lease container.
type survey struct {
	account    *cosmos.Account
	connection config.CosmosConnection
	container  cosmos.Container
}

func (s survey) run(ctx context.Context, now func() time.Time) (leaseReport, error) {
	documents, usage, err := s.account.FindLeases(ctx, s.container)
	if errors.Is(err, cosmos.ErrMissing) {
		return leaseReport{}, fmt.Errorf("container %s does not exist in account %s: correct --database and --container", s.container, s.connection.Host)
	}
	if err != nil {
		return leaseReport{}, err
	}
	report := leaseReport{LeaseContainer: s.container.String(), Account: s.connection.Host, Processors: []foundProcessorReport{}}
	for _, origin := range s.origins(ctx, changefeed.Inventory(documents), &usage) {
		report.Processors = append(report.Processors, s.report(origin, now()))
	}
	s.suggest(report.Processors)
	report.RequestCharge, report.Requests = usage.Charge, usage.Requests
	return report, nil
}
