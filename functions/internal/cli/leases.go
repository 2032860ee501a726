package cli

import (
	"context"

	"github.com/feedscale/feedscale/functions/internal/console"
	"github.com/feedscale/feedscale/functions/internal/discover"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// Leases prints every processor with leases in a container, and the entries by which feedscale
// watches it.
func Leases(env program.Env, f *program.Flags) {
	f.Use, f.Short, f.GroupID = "leases", "list the processors that keep leases in a container", program.GroupLook
	f.Example = "feedscale leases --connection COSMOS --database shop\nfeedscale leases --connection COSMOS --database shop --container my-leases --output json"
	f.Settings("NO_COLOR", "COLUMNS")
	var setting, output string
	container := cosmos.Container{ID: "leases"}
	f.Text(&setting, "connection", "setting", "connects to the account of the lease container, as in the processors file")
	f.Text(&container.Database, "database", "name", "the database of the lease container")
	f.Text(&container.ID, "container", "name", "the lease container")
	f.Output(&output, "table", "json")
	f.Check(func([]string) {
		f.Mistake(setting == "" || container.Database == "" || container.ID == "", "--connection and --database are needed, as in --connection COSMOS --database shop")
	})
	f.Run(func(ctx context.Context, _ []string) error {
		found, err := lookInto(ctx, env, setting, func(account *cosmos.Account, connection config.CosmosConnection) (discover.Report, error) {
			return discover.Leases(ctx, account, connection, container, env.Now)
		})
		if err != nil {
			return err
		}
		err = show(env, output, found, func() error { return console.WriteLeases(env.Stdout, found, env.Style()) })
		return program.Completed(found.Complete(), err)
	})
}
