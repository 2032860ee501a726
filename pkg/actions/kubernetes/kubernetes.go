// Package kubernetes sets the replicas of a Deployment, a StatefulSet or
// anything else that has a scale subresource, through client-go.
//
// It knows nothing of queues. It is the one package that links client-go, which
// the deployed handler goes without (decision 0010). Start with Action;
// target.go says which object an event means.
package kubernetes

import (
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	"github.com/feedscale/feedscale/pkg/events"
)

// Options say which cluster, and as whom. The zero value is what kubectl would
// take: the files of KUBECONFIG, ~/.kube/config or, where there are none, the
// service account of the pod.
type Options struct {
	Kubeconfig string // a file; "" = as above
	Context    string // of the kubeconfig; "" = its current one
}

// requestTimeout bounds each request: an API server that does not answer must
// not hold an event.
const requestTimeout = 15 * time.Second

// Action sets spec.replicas of the scale subresource. It does not look whether
// something else scales the same object: that would undo what it does, and it
// would do it again at the next event.
type Action struct {
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	scales    scale.ScalesGetter
	namespace string // where a target names none
}

// New returns an Action for a cluster. No request is made: an error is one of
// the configuration.
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
	config.QPS = -1 // the API server has its own fairness; client-go's 5 a second would hold back a fleet
	config.WarningHandler = rest.NoWarnings{}
	return newAction(config, namespace)
}

func newAction(config *rest.Config, namespace string) (*Action, error) {
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	scales, err := scale.NewForConfig(rest.CopyConfig(config), mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(found))
	if err != nil {
		return nil, fmt.Errorf("making a client of the cluster: %w", err)
	}
	return &Action{mapper: mapper, scales: scales, namespace: namespace}, nil
}

// Target is the object that the event's target labels name.
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

// Act sets the replicas. Where somebody else writes the object at the same time
// it is read and written once more.
func (a *Action) Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error) {
	w, err := a.target(e)
	if err != nil {
		return false, err
	}
	mapping, err := a.mapper.RESTMappingWithContext(ctx, w.kind.GroupKind(), w.kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset() // so that the next try finds a kind that was installed meanwhile
	}
	if err != nil {
		return false, explain(w, schema.GroupResource{}, err)
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
		current.Spec.Replicas = int32(e.DesiredReplicas)
		_, err = scales.Update(ctx, resource, current, metav1.UpdateOptions{FieldManager: "feedscale"})
		changed = err == nil
		return err
	})
	if err != nil {
		return false, explain(w, resource, err)
	}
	return changed, nil
}
