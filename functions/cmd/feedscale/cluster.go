//go:build !demo

package main

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/feedscale/feedscale/functions/internal/app"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/scaler"
)

// clusterKinds are the actions that need client-go.
func clusterKinds() actions.Kinds { return actions.Kinds{kubernetes.Kind()} }

// newScaler makes KEDA's external scaler, for the commands that serve it.
func newScaler(s config.Scaler, record app.Record, interval time.Duration, log *slog.Logger) (func(context.Context, net.Listener) error, error) {
	server, err := scaler.New(scaler.Options{
		Source: record, Interval: interval, Log: log,
		TLS: scaler.TLS{CertFile: s.CertFile, KeyFile: s.KeyFile, ClientCAFile: s.ClientCAFile},
	})
	if err != nil {
		return nil, err
	}
	return server.Serve, nil
}
