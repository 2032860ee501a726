// Command feedscale measures how far behind Azure Cosmos DB change feed processors are, decides how
// many replicas each needs, and publishes it. It has every command, the demo and the stand-ins among
// them; what is deployed to Azure Functions is the package functions.
package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	_ "time/tzdata" // schedules name IANA time zones, which a small image does not have

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/containerapp"
	"github.com/feedscale/feedscale/pkg/actions/webhook"
)

// release is set by the linker: the version of a released build.
var release = ""

// commands are all that there are.
func commands() []cli.Command {
	kinds := slices.Concat(actions.Kinds{actions.StdoutKind(), webhook.Kind()}, clusterKinds(), actions.Kinds{containerapp.Kind()})
	return []cli.Command{
		cli.Serve, cli.Run(newScaler), cli.Poll, cli.Status, cli.History, cli.Inspect, cli.Explain, cli.Report, cli.Simulate,
		cli.Consume(kinds), cli.Scaler(newScaler), cli.Check(kinds), cli.Leases, cli.Init(kinds), importFiles, showDemo, emulate, cli.Completion, cli.Schema, cli.Version,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(cli.Main(ctx, cli.OS(release), commands(), ""))
}
