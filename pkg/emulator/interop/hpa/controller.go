// Package hpa runs the HorizontalPodAutoscaler's own controller, of the module k8s.io/kubernetes,
// on a target in memory, so that step 9 of docs/decide.md can be compared with it poll by poll. It
// is a module of its own: nothing else of the project needs Kubernetes' sources.
//
// Only what the controller talks to is a stand-in: the scale subresource, the metrics API, and the
// informers, which know of no pods, since an external metric needs none. Its clock is time.Now,
// which testing/synctest sets.
package hpa

import (
	"context"
	"errors"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
)

// reconcileAutoscaler is what the controller does with one HPA, every 15 s by default: the whole of
// it, from the metric to the update of the scale subresource.
//
//go:linkname reconcileAutoscaler k8s.io/kubernetes/pkg/controller/podautoscaler.(*HorizontalController).reconcileAutoscaler
func reconcileAutoscaler(c *podautoscaler.HorizontalController, ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, key string) error

// errNoMetric is what the metrics API answers where a scaler could not measure.
var errNoMetric = errors.New("the scaler could not measure")

// cluster is what the controller sees and changes, by namespace: each holds one target with its
// HPA.
type cluster struct {
	controller *podautoscaler.HorizontalController
	targets    sync.Map // *target by namespace
	seen       sync.Map // namespaces whose HPA was reconciled
}

// target is one deployment with its HPA. Its replicas are all there at once.
type target struct {
	replicas int32
	// values of the external metrics, in thousandths; nil if it cannot be measured
	metrics map[string]*int64
}

// newCluster starts a controller. Its queue is never used: reconcile is its worker.
func newCluster(ctx context.Context) *cluster {
	c := &cluster{}
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apps})
	mapper.Add(apps.WithKind("Deployment"), meta.RESTScopeNamespace)
	shared := informers.NewSharedInformerFactory(nil, 0)
	c.controller = podautoscaler.NewHorizontalController(ctx, noEvents{}, scales{c}, statuses{}, mapper, external{c: c},
		shared.Autoscaling().V2().HorizontalPodAutoscalers(), shared.Core().V1().Pods(),
		// the defaults of kube-controller-manager
		15*time.Second, 5*time.Minute, 0.1, 5*time.Minute, 30*time.Second)
	return c
}

// reconcile lets the controller act once on an HPA, as its worker would.
func (c *cluster) reconcile(hpa *autoscalingv2.HorizontalPodAutoscaler) error {
	ctx := klog.NewContext(context.Background(), logr.Discard())
	return reconcileAutoscaler(c.controller, ctx, hpa, hpa.Namespace+"/"+hpa.Name)
}

func (c *cluster) target(namespace string) *target {
	t, _ := c.targets.Load(namespace)
	return t.(*target)
}

// scales is the scale subresource.
type scales struct{ *cluster }

func (s scales) Scales(namespace string) scale.ScaleInterface {
	return scaleOf{target: s.target(namespace)}
}

type scaleOf struct {
	scale.ScaleInterface
	*target
}

func (s scaleOf) Get(_ context.Context, _ schema.GroupResource, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: s.replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: s.replicas, Selector: "app=" + name},
	}, nil
}

func (s scaleOf) Update(_ context.Context, _ schema.GroupResource, scale *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	s.target.replicas = scale.Spec.Replicas
	return scale, nil
}

// external is the metrics API, which holds nothing but external metrics.
type external struct {
	metrics.MetricsClient
	c *cluster
}

func (e external) GetExternalMetric(name, namespace string, _ labels.Selector) ([]int64, time.Time, error) {
	value := e.c.target(namespace).metrics[name]
	if value == nil {
		return nil, time.Time{}, errNoMetric
	}
	return []int64{*value}, time.Now(), nil
}

// statuses takes the status of an HPA, which nobody reads.
type statuses struct {
	autoscalingclient.HorizontalPodAutoscalerInterface
}

func (s statuses) HorizontalPodAutoscalers(string) autoscalingclient.HorizontalPodAutoscalerInterface {
	return s
}

func (statuses) UpdateStatus(_ context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler, _ metav1.UpdateOptions) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return hpa, nil
}

// noEvents takes the events for people.
type noEvents struct{ coreclient.EventInterface }

func (e noEvents) Events(string) coreclient.EventInterface { return e }

func (noEvents) CreateWithEventNamespace(event *corev1.Event) (*corev1.Event, error) {
	return event, nil
}

func (noEvents) UpdateWithEventNamespace(event *corev1.Event) (*corev1.Event, error) {
	return event, nil
}

func (noEvents) PatchWithEventNamespace(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	return event, nil
}
