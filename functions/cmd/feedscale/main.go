// Command feedscale measures how far behind Azure Cosmos DB change feed processors are, decides how
// many replicas each needs, and publishes the decisions. It has every command, the demo and the
// stand-ins. The handler that is deployed to Azure Functions is package functions.
package main

import (
	"slices"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/program"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/containerapp"
	"github.com/feedscale/feedscale/pkg/actions/webhook"
)

// release is the version of a released build, set by the linker.
var release = ""

// commands are all commands.
func commands() []program.Command {
	kinds := slices.Concat(actions.Kinds{actions.StdoutKind(), webhook.Kind()}, clusterKinds(), actions.Kinds{containerapp.Kind()})
	return []program.Command{
		cli.Serve, cli.Run(newScaler), cli.Poll, cli.Status, cli.History, cli.Inspect, cli.Explain, cli.Report, cli.Simulate,
		cli.Consume(kinds), cli.Scaler(newScaler), cli.Check(kinds), cli.Leases, cli.Init(kinds), importFiles, showDemo, emulate, program.Completion, cli.Schema, program.Version,
	}
}

func main() { program.Run(release, commands(), "") }
