//go:build demo

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/config"
)

// The build of make run leaves out client-go and gRPC, which are half of the tool's size and are
// not used by the demo (docs/architecture.md).

func clusterKinds() actions.Kinds { return nil }

func newScaler(config.Scaler, app.Record, time.Duration, *slog.Logger) (func(context.Context, net.Listener) error, error) {
	return nil, errors.New("the build of make run has no external scaler: go build ./functions/cmd/feedscale has it")
}
