package cli

import (
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
		Use: "leases", Short: "list the processors that keep leases in a container", GroupID: GroupLook,
		Example:     "feedscale leases --connection COSMOS --database shop\nfeedscale leases --connection COSMOS --database shop --container my-leases --output json",
		Annotations: Settings("NO_COLOR", "COLUMNS"),
	}
	f := flagsOf(c)
	var setting, output string
	container := cosmos.Container{ID: "leases"}
	f.text(&setting, "connection", "setting", "connects to the account of the lease container, as in the processors file")
	f.text(&container.Database, "database", "name", "the database of the lease container")
	f.text(&container.ID, "container", "name", "the lease container")
	f.output(&output, "table", "json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		f.mistake(setting == "" || container.Database == "" || container.ID == "", "--connection and --database are needed, as in --connection COSMOS --database shop")
		if err := f.mistakes(); err != nil {
			return err
		}
		found, err := lookInto(c.Context(), env, setting,
			func(account *cosmos.Account, connection config.CosmosConnection) (discover.Report, error) {
				return discover.Leases(c.Context(), account, connection, container, env.Now)
			})
		switch {
		case err != nil:
			return err
		case output == "json":
			err = console.WriteJSON(env.Stdout, found)
		default:
			err = console.WriteLeases(env.Stdout, found, env.Style())
		}
		if err == nil && !found.Complete() {
			err = Incomplete(nil)
		}
		return err
	}
	return c
}
