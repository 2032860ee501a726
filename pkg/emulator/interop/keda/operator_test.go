package keda_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	scalefake "k8s.io/client-go/scale/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers/authentication"
	"github.com/kedacore/keda/v2/pkg/scaling"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const namespace, deployment = "shop", "orders"

// operator is KEDA with one ScaledObject, and the Deployment that it scales.
type operator struct {
	scaling.ScaleHandler
	cluster client.Client
	object  *kedav1alpha1.ScaledObject
	scaled  chan scaled // what KEDA set
}

// scaled is a count that KEDA set, and when.
type scaled struct {
	replicas int32
	at       time.Time
}

// operate has KEDA act on a ScaledObject, whose Deployment has some replicas. others are what else
// the cluster has.
func operate(t *testing.T, replicas int32, spec kedav1alpha1.ScaledObjectSpec, others ...client.Object) *operator {
	t.Helper()
	known := runtime.NewScheme()
	testworld.Must(t, scheme.AddToScheme(known))
	testworld.Must(t, kedav1alpha1.AddToScheme(known))
	spec.ScaleTargetRef = &kedav1alpha1.ScaleTarget{Name: deployment}
	o := &operator{scaled: make(chan scaled, 100), object: &kedav1alpha1.ScaledObject{
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace, UID: types.UID(t.Name()), Generation: 1, CreationTimestamp: metav1.Now()},
		Spec:       spec,
		Status: kedav1alpha1.ScaledObjectStatus{
			ScaleTargetKind: "apps/v1.Deployment", ScaleTargetGVKR: &kedav1alpha1.GroupVersionKindResource{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments"},
		},
	}}
	o.cluster = fake.NewClientBuilder().WithScheme(known).WithStatusSubresource(o.object).WithObjects(o.object, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
	}).WithObjects(others...).Build()
	scales := &scalefake.FakeScaleClient{}
	scales.AddReactor("get", "deployments", func(kubetesting.Action) (bool, runtime.Object, error) {
		replicas, err := o.replicas(context.Background())
		return true, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: deployment, Namespace: namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}, err
	})
	scales.AddReactor("update", "deployments", func(action kubetesting.Action) (bool, runtime.Object, error) {
		scale := action.(kubetesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
		o.scaled <- scaled{scale.Spec.Replicas, time.Now()}
		return true, scale, o.set(context.Background(), scale.Spec.Replicas)
	})
	o.ScaleHandler = scaling.NewScaleHandler(o.cluster, scales, known, 3*time.Second, 3*time.Second, events.NewFakeRecorder(10_000), &authentication.AuthClientSet{})
	// What the controller does with a ScaledObject: the names of its metrics go to its status, and
	// then it is handled.
	ctx, cancel := context.WithCancel(context.Background())
	specs, err := o.specs(ctx)
	testworld.Must(t, err)
	testworld.Eventually(t, "a metric spec", func() bool {
		if len(specs) == 0 {
			testworld.Must(t, o.ClearScalersCache(ctx, o.object))
			specs, err = o.specs(ctx)
			testworld.Must(t, err)
		}
		return len(specs) > 0
	})
	for _, s := range specs {
		o.object.Status.ExternalMetricNames = append(o.object.Status.ExternalMetricNames, s.External.Metric.Name)
	}
	testworld.Must(t, o.cluster.Status().Update(ctx, o.object))
	testworld.Must(t, o.HandleScalableObject(ctx, o.object))
	t.Cleanup(func() {
		testworld.Must(t, o.DeleteScalableObject(ctx, o.object))
		cancel()
	})
	return o
}

func (o *operator) specs(ctx context.Context) ([]autoscalingv2.MetricSpec, error) {
	cache, err := o.GetScalersCache(ctx, o.object)
	if err != nil {
		return nil, err
	}
	return cache.GetMetricSpecForScaling(ctx), nil
}

// metricName is that of the only trigger.
func (o *operator) metricName() string { return o.object.Status.ExternalMetricNames[0] }

func (o *operator) replicas(ctx context.Context) (int32, error) {
	var d appsv1.Deployment
	err := o.cluster.Get(ctx, types.NamespacedName{Namespace: namespace, Name: deployment}, &d)
	if err != nil || d.Spec.Replicas == nil {
		return 0, err
	}
	return *d.Spec.Replicas, nil
}

func (o *operator) set(ctx context.Context, replicas int32) error {
	var d appsv1.Deployment
	if err := o.cluster.Get(ctx, types.NamespacedName{Namespace: namespace, Name: deployment}, &d); err != nil {
		return err
	}
	d.Spec.Replicas = &replicas
	return o.cluster.Update(ctx, &d)
}

// await returns when KEDA set a count.
func (o *operator) await(t *testing.T, replicas int32) time.Time {
	t.Helper()
	late := time.After(3 * testworld.Deadline)
	for {
		select {
		case s := <-o.scaled:
			if s.replicas == replicas {
				return s.at
			}
		case <-late:
			t.Fatalf("KEDA never set %d replicas", replicas)
		}
	}
}

// hpa returns the count that an HPA computes from KEDA's metric: AverageValue, without tolerance,
// windows and bounds.
func (o *operator) hpa(ctx context.Context) (int, error) {
	list, err := o.GetScaledObjectMetrics(ctx, deployment, namespace, o.metricName())
	if err != nil {
		return 0, err
	}
	specs, err := o.specs(ctx)
	if err != nil {
		return 0, err
	}
	if len(list.Items) != 1 || len(specs) != 1 || specs[0].External.Target.Type != autoscalingv2.AverageValueMetricType {
		return 0, fmt.Errorf("%d values for %d metrics", len(list.Items), len(specs))
	}
	return int(math.Ceil(list.Items[0].Value.AsApproximateFloat64() / specs[0].External.Target.AverageValue.AsApproximateFloat64())), nil
}

// fallingBack reports whether KEDA says that a fallback applies.
func (o *operator) fallingBack(t *testing.T) bool {
	t.Helper()
	conditions := o.conditions(t)
	condition := conditions.GetFallbackCondition()
	return condition.IsTrue()
}

// inactive reports whether KEDA asked and says that there is nothing to do.
func (o *operator) inactive(t *testing.T) bool {
	t.Helper()
	conditions := o.conditions(t)
	condition := conditions.GetActiveCondition()
	return condition.IsFalse()
}

func (o *operator) conditions(t *testing.T) kedav1alpha1.Conditions {
	t.Helper()
	var current kedav1alpha1.ScaledObject
	testworld.Must(t, o.cluster.Get(t.Context(), client.ObjectKeyFromObject(o.object), &current))
	return current.Status.Conditions
}
