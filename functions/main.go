// Command functions is the handler that is deployed to Azure Functions. It measures how far behind
// Azure Cosmos DB change feed processors are, decides how many replicas each needs, and publishes it.
//
// The command-line tool with every command is functions/cmd/feedscale: this program goes without the
// stand-ins, the demo and client-go. Each subfolder with a function.json is one Azure Function.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/functions/internal/program"
)

// release is set by the linker: the version of a released build.
var release = ""

// gcPercent is GOGC where the environment does not say it: a handler idles between ticks, and is billed for
// its memory rather than for the milliseconds that a collection takes (docs/decisions/0022-speed.md).
const gcPercent = 25

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(program.Main(ctx, program.OS(release), []program.Command{cli.Serve, cli.Poll, cli.Check(nil), program.Version},
		" in the handler of a function app; the command-line tool may have it: go build ./functions/cmd/feedscale"))
}
