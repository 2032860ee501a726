//go:build !handler

package main

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
)

// newKubernetes makes the action that client-go carries out.
func newKubernetes(kubeconfig, contextName string, log *slog.Logger) (actions.Action, error) {
	klog.SetSlogLogger(slog.New(clientGoLog{log.Handler()})) // which is else no JSON
	return kubernetes.New(kubernetes.Options{Kubeconfig: kubeconfig, Context: contextName})
}

// clientGoLog takes what client-go logs of its own accord, at debug: what fails
// for it fails an action, whose warning carries the cause.
type clientGoLog struct{ slog.Handler }

func (l clientGoLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.Handler.Enabled(ctx, min(level, slog.LevelDebug))
}

func (l clientGoLog) Handle(ctx context.Context, r slog.Record) error {
	r.Level = min(r.Level, slog.LevelDebug)
	return l.Handler.Handle(ctx, r)
}

func (l clientGoLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return clientGoLog{l.Handler.WithAttrs(attrs)}
}

func (l clientGoLog) WithGroup(name string) slog.Handler {
	return clientGoLog{l.Handler.WithGroup(name)}
}
