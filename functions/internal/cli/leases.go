package cli

import (
	"context"
	"fmt"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Leases prints every processor that keeps its leases in a container, and the lines that make
// feedscale watch it.
func Leases() Command {
	return Command{"leases", "list the processors that keep leases in a container", leases}
}

func leases(ctx context.Context, env Env, args []string) error {
	f := NewFlags(env, "leases", "--connection SETTING --database ID [--container ID] [--output table|json]")
	setting := f.String("connection", "", "the setting that connects to the account of the lease container, as in the processors file")
	database := f.String("database", "", "the database of the lease container")
	container := f.String("container", "leases", "the lease container")
	output := f.String("output", "table", "table or json")
	if err := f.Parse(args); err != nil {
		return err
	}
	var mistakes flagMistakes
	if *setting == "" || *database == "" || *container == "" {
		mistakes.add("--connection and --database are needed, as in --connection COSMOS --database shop")
	}
	mistakes.choice("output", *output, "table", "json")
	if err := mistakes.refuse(env.Stderr, "leases"); err != nil {
		return err
	}
	settings, err := settings(env)
	if err != nil {
		return err
	}
	connection, err := config.ParseCosmosConnection(config.Lookup(env.Environ), *setting)
	if err != nil {
		return Usage(err)
	}
	account, err := connect.New(settings).Account(connection)
	if err != nil {
		return Usage(err)
	}
	found, err := discover.Leases(ctx, account, connection, cosmos.Container{Database: *database, ID: *container}, env.Now)
	if err != nil {
		return err
	}
	if *output == "json" {
		err = console.WriteJSON(env.Stdout, found)
	} else {
		err = console.WriteLeases(env.Stdout, found, env.Style())
	}
	if err != nil {
		return err
	}
	if !found.Complete() {
		return Incomplete(nil)
	}
	return nil
}

// settings reads the settings without the processors. Their mistakes are printed, each on a line of
// its own.
func settings(env Env) (config.Settings, error) {
	s, err := config.ReadSettings(env.Environ)
	if err != nil {
		fmt.Fprintln(env.Stderr, err)
		return config.Settings{}, Usage(nil)
	}
	return s, nil
}
