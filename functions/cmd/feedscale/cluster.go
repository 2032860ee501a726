//go:build !demo

package main

import (
	"context"
	"net"

	"github.com/feedscale/feedscale/functions/internal/cli"
	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
	"github.com/feedscale/feedscale/pkg/scaler"
)

// clusterKinds are the actions that need client-go.
func clusterKinds() actions.Kinds { return actions.Kinds{kubernetes.Kind()} }

// newScaler makes KEDA's external scaler, for the commands that serve it.
func newScaler(o cli.ScalerOptions) (func(context.Context, net.Listener) error, error) {
	s, err := scaler.New(scaler.Options{
		Source: o.Answers, Interval: o.Interval, Log: o.Log,
		TLS: scaler.TLS{CertFile: o.CertFile, KeyFile: o.KeyFile, ClientCAFile: o.ClientCAFile},
	})
	if err != nil {
		return nil, err
	}
	return s.Serve, nil
}
