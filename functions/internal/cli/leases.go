package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Leases prints every processor that keeps its leases in a container, and the lines that make
// feedscale watch it.
func Leases(env Env) *cobra.Command {
	c := &cobra.Command{
		Use: "leases", Short: "list the processors that keep leases in a container",
		Example:     "feedscale leases --connection COSMOS --database shop\nfeedscale leases --connection COSMOS --database shop --container my-leases --output json",
		Annotations: Settings("NO_COLOR", "COLUMNS"),
	}
	f := c.Flags()
	setting := f.String("connection", "", "the setting that connects to the account of the lease container, as in the processors file")
	database := f.String("database", "", "the database of the lease container")
	container := f.String("container", "leases", "the lease container")
	output := addOutput(c, "table", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var mistakes flagMistakes
		if *setting == "" || *database == "" || *container == "" {
			mistakes.add("--connection and --database are needed, as in --connection COSMOS --database shop")
		}
		mistakes.choice("output", *output, "table", "json")
		if err := mistakes.refuse(env.Stderr, "leases"); err != nil {
			return err
		}
		return leases(c.Context(), env, *setting, cosmos.Container{Database: *database, ID: *container}, *output)
	}
	return c
}

func leases(ctx context.Context, env Env, setting string, container cosmos.Container, output string) error {
	found, err := lookInto(ctx, env, setting,
		func(account *cosmos.Account, connection config.CosmosConnection) (discover.Report, error) {
			return discover.Leases(ctx, account, connection, container, env.Now)
		})
	if err != nil {
		return err
	}
	if output == "json" {
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
