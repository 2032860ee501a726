package kubernetes

import (
	"context"
	"log/slog"
	"sync"

	"k8s.io/klog/v2"

	"github.com/feedscale/feedscale/pkg/actions"
)

// Kind describes this action to a program that offers it.
func Kind() actions.Kind {
	cluster := sync.OnceValues(func() (*Action, error) { return New(Options{}) })
	return actions.Kind{
		Name: "kubernetes", Summary: "scale subresource",
		Flags: []actions.Flag{
			{Name: "kubeconfig", Usage: "the file that kubernetes takes the cluster from (default as kubectl, or the pod's service account)"},
			{Name: "context", Usage: "the context of the kubeconfig (default its current one)"},
		},
		New: func(o actions.Options) (actions.Action, error) {
			klog.SetSlogLogger(slog.New(clientGoLog{o.Log.Handler()})) // klog would otherwise write lines that are no JSON
			return New(Options{Kubeconfig: o.Flag("kubeconfig"), Context: o.Flag("context"), Log: o.Log})
		},
		Rivals: func(ctx context.Context, target map[string]string) (actions.Seen, error) {
			return rivals(ctx, cluster, target)
		},
	}
}

// clientGoLog lowers what client-go itself logs to debug: what fails there also fails the action,
// and the warning about that has the cause.
type clientGoLog struct{ slog.Handler }

// Enabled asks the handler about debug at most.
func (l clientGoLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.Handler.Enabled(ctx, min(level, slog.LevelDebug))
}

// Handle logs at debug at most.
func (l clientGoLog) Handle(ctx context.Context, r slog.Record) error {
	r.Level = min(r.Level, slog.LevelDebug)
	return l.Handler.Handle(ctx, r)
}

// WithAttrs keeps the wrapper.
func (l clientGoLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return clientGoLog{l.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the wrapper.
func (l clientGoLog) WithGroup(name string) slog.Handler {
	return clientGoLog{l.Handler.WithGroup(name)}
}
