//go:build demo

package main

import (
	"context"
	"errors"
	"net"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/pkg/actions"
)

// The build of make run goes without client-go and gRPC, which are half of what the tool is made of
// and no part of the demo (docs/architecture.md).

func clusterKinds() actions.Kinds { return nil }

func newScaler(cli.ScalerOptions) (func(context.Context, net.Listener) error, error) {
	return nil, errors.New("the build of make run has no external scaler: go build ./functions/cmd/feedscale has it")
}
