//go:build !handler

package main

import (
	"log/slog"

	"k8s.io/klog/v2"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/actions/kubernetes"
)

// newKubernetes makes the action that client-go carries out.
func newKubernetes(kubeconfig, context string, log *slog.Logger) (actions.Action, error) {
	klog.SetSlogLogger(log) // client-go's own log, which is else no JSON
	return kubernetes.New(kubernetes.Options{Kubeconfig: kubeconfig, Context: context})
}
