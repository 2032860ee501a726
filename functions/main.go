// Command functions is the handler that is deployed to Azure Functions. It measures how far behind
// Azure Cosmos DB change feed processors are, decides how many replicas each needs, and publishes
// it.
//
// The command-line tool with every command is functions/cmd/feedscale: this program does not link
// the stand-ins, the demo and client-go. Each subfolder with a function.json is one Azure Function.
package main

import (
	"os"
	"runtime/debug"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/program"
)

// release is the version of a released build, set by the linker.
var release = ""

// gcPercent is GOGC if the environment does not set it. A greater value takes less CPU and more memory; with
// this one, 100,000 leases stay a fifth below the mark of memory (docs/decisions/0022-speed.md).
const gcPercent = 50

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	program.Run(release, []program.Command{cli.Serve, cli.Poll, cli.Check(nil), program.Version},
		" in the handler of a function app; the command-line tool may have it: go build ./functions/cmd/feedscale")
}
