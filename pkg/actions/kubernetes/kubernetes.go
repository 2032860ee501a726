// Package kubernetes is the action that sets the replicas of a Deployment, a StatefulSet or any
// other object with a scale subresource, through client-go (docs/consume.md).
//
// It knows nothing of queues. It is the only package that imports client-go, which the deployed
// handler does not link (docs/decisions/0010-consumer-without-client-go-in-the-handler.md). Start
// with Action; target.go says which object an event is about, and rivals.go what else scales it.
//
// The package is internal to the program: its API may change in any release.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/feedscale/feedscale/pkg/actions"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/events"
)

// Options say which cluster to use, and with which credentials. The zero value does as kubectl does: the
// files of KUBECONFIG, ~/.kube/config or, without these, the service account of the pod.
type Options struct {
	Kubeconfig string       // path of a file; "" = as above
	Context    string       // of the kubeconfig; "" = its current one
	Log        *slog.Logger // nil = nothing is logged
}

// requestTimeout bounds each request: an API server that does not answer must not hold up an event.
const requestTimeout = 15 * time.Second

// Action sets spec.replicas of the scale subresource, unless something else scales the same object, such as
// an HPA: the two would undo each other's changes for ever. Without the permission to see that, it acts
// (rivals.go).
type Action struct {
	server    string // URL of the API server
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	scales    scale.ScalesGetter
	objects   dynamic.Interface
	namespace string // for targets without the label namespace
	log       *slog.Logger
	unseen    bounded.Notes // by namespace: why rivals cannot be seen
}

// New returns an Action for a cluster. It makes no request; an error is about the configuration.
func New(o Options) (*Action, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster, run in a pod of it or name a kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace of the kubeconfig: %w", err)
	}
	config.UserAgent = "feedscale"
	config.Timeout = requestTimeout
	config.QPS = -1 // no limit: the API server has its own, and client-go's 5 per second would delay many events
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(bounded.Bodies)
	found, err := discovery.NewDiscoveryClientForConfig(config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	scales, scalesErr := scale.NewForConfig(rest.CopyConfig(config), mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	objects, objectsErr := dynamic.NewForConfig(config)
	if err := cmp.Or(err, scalesErr, objectsErr); err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	return &Action{
		server: config.Host, mapper: mapper, scales: scales, objects: objects, namespace: namespace,
		log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
	}, nil
}

// Target returns the name of the object in the event's target labels.
func (a *Action) Target(e events.ScaleEvent) (string, error) {
	w, err := a.target(e)
	if err != nil {
		return "", err
	}
	return w.String(), nil
}

func (a *Action) target(e events.ScaleEvent) (workload, error) {
	if e.DesiredReplicas > math.MaxInt32 {
		return workload{}, fmt.Errorf("desiredReplicas is %d; allowed are up to %d: %w", e.DesiredReplicas, math.MaxInt32, events.ErrDeadLetter)
	}
	return targetOf(e.Data.Target, a.namespace)
}

// Act sets the replicas. After a conflict with another writer it reads and writes the object once more. The
// error wraps actions.ErrRival if something else sets them.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	w, err := a.target(e)
	if err != nil {
		return false, err
	}
	mapping, err := a.mapper.RESTMappingWithContext(ctx, w.kind.GroupKind(), w.kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset() // so that the next try finds a kind that is installed by then
		return false, fmt.Errorf("the cluster has no kind %s in %s: install it, or correct the target labels of the processor: %w", w.kind.Kind, w.kind.GroupVersion(), err)
	}
	if err != nil {
		return false, explain("scale "+w.String(), "", "", err)
	}
	namespace := w.namespace
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	resource := mapping.Resource.GroupResource()
	scales := a.scales.Scales(namespace)
	err = retry.RetryOnConflict(wait.Backoff{Steps: 2}, func() error {
		current, err := scales.Get(ctx, resource, w.name, metav1.GetOptions{})
		if err != nil || current.Spec.Replicas == int32(e.DesiredReplicas) {
			return err
		}
		if namespace != "" { // what scales is in the namespace of what it scales
			if err := a.yield(ctx, w); err != nil {
				return err
			}
		}
		current.Spec.Replicas = int32(e.DesiredReplicas)
		_, err = scales.Update(ctx, resource, current, metav1.UpdateOptions{FieldManager: "feedscale"})
		changed = err == nil
		return err
	})
	switch {
	case err == nil || errors.Is(err, actions.ErrRival):
		return changed, err
	case apierrors.IsNotFound(err):
		return false, fmt.Errorf("%s does not exist, or cannot be scaled: create it, or correct the target labels of the processor: %w", w, err)
	}
	return false, explain("scale "+w.String(), "verbs get and update on "+resource.Resource+"/scale", resource.Group, err)
}

// explain returns an error that says what failed and what to do. act is what was tried, such as "scale
// Deployment shop/orders"; verbs of an API group are the permission that it needs.
func explain(act, verbs, group string, err error) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster refuses to %s: bind this account to a role with the %s in apiGroup %q, or change what refuses it, such as an admission policy, a webhook or a quota: %w", act, verbs, group, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not accept the credentials: renew those of the kubeconfig or the service account: %w", err)
	}
	return fmt.Errorf("cannot %s: %w", act, err)
}
