package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/feedscale/feedscale/pkg/actions"
)

// What sets the replicas of something in a cluster.
var (
	autoscalers   = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
)

// Names of KEDA's, as in apis/keda/v1alpha1/scaledobject_types.go of github.com/kedacore/keda.
const (
	kedaOwner          = "scaledobject.keda.sh/name"           // label of an HPA: the ScaledObject that it belongs to
	kedaPaused         = "autoscaling.keda.sh/paused"          // annotation of a ScaledObject
	kedaPausedReplicas = "autoscaling.keda.sh/paused-replicas" // annotation too: KEDA sets this count
)

// scaler is what an HPA and a ScaledObject have in common, and the triggers of the latter.
type scaler struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Name       string `json:"name"`
		} `json:"scaleTargetRef"`
		Triggers []actions.Trigger `json:"triggers"`
	} `json:"spec"`
}

// rivals is Action.Rivals for a cluster that may not be configured. It does not call cluster if the labels
// name nothing.
func rivals(ctx context.Context, cluster func() (*Action, error), labels map[string]string) (actions.Survey, error) {
	w, err := targetOf(labels, metav1.NamespaceDefault)
	if err != nil {
		return actions.Survey{}, nil // as in Action.Rivals
	}
	a, err := cluster()
	if err == nil {
		return a.Rivals(ctx, labels)
	}
	w.namespace = labels[labelNamespace]
	if clientcmd.IsEmptyConfig(errors.Unwrap(err)) {
		err = errors.New("no cluster is configured here: try it in a pod of the cluster, or with a kubeconfig")
	}
	return actions.Survey{Target: w.String()}, err
}

// Rivals returns the HPAs and ScaledObjects that act on what labels name. It only lists. The error says which
// permission is missing, or what else failed.
func (a *Action) Rivals(ctx context.Context, labels map[string]string) (actions.Survey, error) {
	w, err := targetOf(labels, a.namespace)
	if err != nil {
		return actions.Survey{}, nil // an event with these labels is dead-lettered: nothing is acted on
	}
	all, err := a.scalersIn(ctx, w.namespace)
	return actions.Survey{Target: w.String(), Where: "cluster " + a.server, Rivals: all.actingOn(w)}, err
}

// yield returns an error that wraps actions.ErrRival if something else sets the replicas of w, and nil if
// that cannot be seen.
func (a *Action) yield(ctx context.Context, w workload) error {
	all, err := a.remember(ctx, w.namespace)
	if err != nil {
		return nil
	}
	rivals := slices.DeleteFunc(all.actingOn(w), func(r actions.Rival) bool { return r.Paused })
	if len(rivals) == 0 {
		return nil
	}
	names, remove := make([]string, len(rivals)), make([]string, len(rivals))
	for i, r := range rivals {
		names[i], remove[i] = r.Name, r.Remove
	}
	return fmt.Errorf("%w, since it has its replicas from %s, and each would undo the other's changes for ever: %s, or have no consumer act on it",
		actions.ErrRival, strings.Join(names, " and "), strings.Join(remove, " && "))
}

// sighting is what scaled in a namespace some time ago.
type sighting struct {
	mu   sync.Mutex // held during a look, so that several events look once
	at   time.Time  // zero = never
	all  scalers
	err  error
	said bool
}

// remember is scalersIn, from memory for a time: many events of a namespace cost two requests a minute. A
// failure is logged once.
func (a *Action) remember(ctx context.Context, namespace string) (scalers, error) {
	a.mu.Lock()
	m := a.lists[namespace]
	if m == nil {
		m = &sighting{}
		a.lists[namespace] = m
	}
	a.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.at.IsZero() && time.Since(m.at) < a.rivalsFor {
		return m.all, m.err
	}
	all, err := a.scalersIn(ctx, namespace)
	if ctx.Err() != nil {
		return scalers{}, ctx.Err() // which says nothing about the cluster
	}
	m.at, m.all, m.err = time.Now(), all, err
	if err != nil && !m.said {
		a.log.Warn("whether something else sets replicas cannot be seen: they are set all the same", "namespace", namespace, "error", err.Error())
	}
	m.said = err != nil
	return all, err
}

// scalers are the ScaledObjects and HPAs of a namespace.
type scalers struct{ objects, hpas []scaler }

// scalersIn lists them. A cluster without KEDA has no ScaledObjects.
func (a *Action) scalersIn(ctx context.Context, namespace string) (scalers, error) {
	objects, err := a.list(ctx, scaledObjects, namespace)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && a.withoutKEDA(ctx) {
		err = nil
	}
	if err != nil {
		return scalers{}, explainList(scaledObjects, namespace, err)
	}
	hpas, err := a.list(ctx, autoscalers, namespace)
	if err != nil {
		return scalers{}, explainList(autoscalers, namespace, err)
	}
	return scalers{objects, hpas}, nil
}

// actingOn returns those that act on w, without the HPAs that KEDA keeps for ScaledObjects.
func (all scalers) actingOn(w workload) []actions.Rival {
	var objects []scaler
	var found []actions.Rival
	for _, o := range all.objects {
		if !o.actsOn(w) {
			continue
		}
		objects = append(objects, o)
		r := rival("ScaledObject", "scaledobject", o)
		r.Paused, r.Triggers = o.paused(), o.Spec.Triggers
		found = append(found, r)
	}
	for _, hpa := range all.hpas {
		if hpa.actsOn(w) && !slices.ContainsFunc(objects, func(o scaler) bool { return hpa.belongsTo(o.Name) }) {
			found = append(found, rival("HPA", "hpa", hpa))
		}
	}
	return found
}

// rival returns the Rival of an object. resource is its kind in kubectl.
func rival(kind, resource string, s scaler) actions.Rival {
	return actions.Rival{Name: kind + " " + s.Name, Remove: fmt.Sprintf("kubectl delete %s %s -n %s", resource, s.Name, s.Namespace)}
}

// list returns the objects of a resource in a namespace.
func (a *Action) list(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]scaler, error) {
	list, err := a.objects.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := make([]scaler, len(list.Items))
	for i, item := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &found[i]); err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.GetName(), err)
		}
		if resource == scaledObjects {
			found[i].defaults()
		}
	}
	return found, nil
}

// defaults sets KEDA's defaults for what a ScaledObject scales (ParseGVKR in apis/keda/v1alpha1 of
// github.com/kedacore/keda).
func (s *scaler) defaults() {
	ref := &s.Spec.ScaleTargetRef
	ref.APIVersion, ref.Kind = cmp.Or(ref.APIVersion, "apps/v1"), cmp.Or(ref.Kind, "Deployment")
}

// actsOn reports whether it scales w. All versions of a kind are one object.
func (s scaler) actsOn(w workload) bool {
	ref := s.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && version.Group == w.kind.Group && ref.Kind == w.kind.Kind && ref.Name == w.name
}

// belongsTo reports whether an HPA is one that KEDA keeps for a ScaledObject.
func (s scaler) belongsTo(scaledObject string) bool {
	return s.Labels[kedaOwner] == scaledObject || slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "ScaledObject" && o.Name == scaledObject
	})
}

// paused reports whether KEDA leaves the replicas alone. With a count in the annotations it does not: it
// keeps that count.
func (s scaler) paused() bool {
	value, ok := s.Annotations[kedaPaused]
	if _, holds := s.Annotations[kedaPausedReplicas]; !ok || holds {
		return false
	}
	paused, err := strconv.ParseBool(value)
	return paused || err != nil // as KEDA reads it
}

// withoutKEDA reports whether the cluster does not know ScaledObjects. The API server looks at permissions
// first, so that an account that may not list them gets the same refusal without KEDA.
func (a *Action) withoutKEDA(ctx context.Context) bool {
	_, err := a.found.ServerResourcesForGroupVersionWithContext(ctx, scaledObjects.GroupVersion().String())
	return apierrors.IsNotFound(err)
}
