package kubernetes

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			// klog writes lines that are no JSON. What fails there fails the action, too, and is in its error.
			klog.SetSlogLogger(slog.New(slog.DiscardHandler))
			return New(Options{Kubeconfig: o.Flag("kubeconfig"), Context: o.Flag("context"), Log: o.Log})
		},
		Rivals: func(ctx context.Context, target map[string]string) (actions.Survey, error) {
			w, err := targetOf(target, metav1.NamespaceDefault)
			if err != nil {
				return actions.Survey{}, nil // as in Action.Rivals
			}
			a, err := cluster()
			if err == nil {
				return a.Rivals(ctx, target)
			}
			w.namespace = target["namespace"]
			return actions.Survey{Target: w.String()}, err
		},
	}
}
