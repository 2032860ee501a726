package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

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
		Triggers []struct {
			Type     string            `json:"type"`
			Metadata map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// rivals is Action.Rivals for a cluster that may not be configured. cluster is not called where the
// labels name nothing.
func rivals(ctx context.Context, cluster func() (*Action, error), labels map[string]string) (actions.Seen, error) {
	w, err := targetOf(labels, metav1.NamespaceDefault)
	if err != nil {
		return actions.Seen{}, nil // as in Action.Rivals
	}
	a, err := cluster()
	if err == nil {
		return a.Rivals(ctx, labels)
	}
	w.namespace = labels[labelNamespace]
	if clientcmd.IsEmptyConfig(errors.Unwrap(err)) {
		err = errors.New("no cluster is configured here: try it in a pod of the cluster, or with a kubeconfig")
	}
	return actions.Seen{Target: w.String()}, err
}

// Rivals returns the HPAs and ScaledObjects that act on what labels name. It only lists. An error
// says which permission is missing, or what else keeps it from knowing.
func (a *Action) Rivals(ctx context.Context, labels map[string]string) (actions.Seen, error) {
	w, err := targetOf(labels, a.namespace)
	if err != nil {
		return actions.Seen{}, nil // an event with these labels is dead-lettered: nothing is acted on
	}
	seen := actions.Seen{Target: w.String(), Where: "cluster " + a.server}
	seen.Rivals, err = a.rivalsOf(ctx, w)
	return seen, err
}

func (a *Action) rivalsOf(ctx context.Context, w workload) ([]actions.Rival, error) {
	objects, err := a.scalers(ctx, scaledObjects, w)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) && a.withoutKEDA(ctx) {
		err = nil
	}
	if err != nil {
		return nil, explainList(scaledObjects, w.namespace, err)
	}
	hpas, err := a.scalers(ctx, autoscalers, w)
	if err != nil {
		return nil, explainList(autoscalers, w.namespace, err)
	}
	var found []actions.Rival
	for _, o := range objects {
		r := rival("ScaledObject", "scaledobject", o)
		r.Paused = o.paused()
		for _, t := range o.Spec.Triggers {
			r.Triggers = append(r.Triggers, actions.Trigger{Type: t.Type, Metadata: t.Metadata})
		}
		found = append(found, r)
	}
	for _, hpa := range hpas {
		if !slices.ContainsFunc(objects, func(o scaler) bool { return hpa.belongsTo(o.Name) }) {
			found = append(found, rival("HPA", "hpa", hpa))
		}
	}
	return found, nil
}

// rival is what an object is to others. resource is its name to kubectl.
func rival(kind, resource string, s scaler) actions.Rival {
	return actions.Rival{Name: kind + " " + s.Name, Remove: fmt.Sprintf("kubectl delete %s %s -n %s", resource, s.Name, s.Namespace)}
}

// scalers returns the objects of a resource that act on w.
func (a *Action) scalers(ctx context.Context, resource schema.GroupVersionResource, w workload) ([]scaler, error) {
	list, err := a.objects.Resource(resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var found []scaler
	for _, item := range list.Items {
		var s scaler
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &s); err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.GetName(), err)
		}
		if resource == scaledObjects {
			s.defaults()
		}
		if s.actsOn(w) {
			found = append(found, s)
		}
	}
	return found, nil
}

// defaults sets what KEDA takes where a ScaledObject does not say what it scales (ParseGVKR in
// apis/keda/v1alpha1 of github.com/kedacore/keda).
func (s *scaler) defaults() {
	ref := &s.Spec.ScaleTargetRef
	if ref.APIVersion == "" {
		ref.APIVersion = "apps/v1"
	}
	if ref.Kind == "" {
		ref.Kind = "Deployment"
	}
}

// actsOn reports whether w is what it scales, in whatever version: all versions are one object.
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

// paused reports whether KEDA leaves the replicas alone. With a count in the annotations it does not:
// it sets that count again whenever it finds another one.
func (s scaler) paused() bool {
	value, ok := s.Annotations[kedaPaused]
	if _, holds := s.Annotations[kedaPausedReplicas]; !ok || holds {
		return false
	}
	paused, err := strconv.ParseBool(value)
	return paused || err != nil // as KEDA reads it
}

// withoutKEDA reports whether the cluster has no ScaledObjects. Who may not list them gets the same
// refusal from a cluster that does not know them, since the API server looks at permissions first.
func (a *Action) withoutKEDA(ctx context.Context) bool {
	_, err := a.found.ServerResourcesForGroupVersionWithContext(ctx, scaledObjects.GroupVersion().String())
	return apierrors.IsNotFound(err)
}
