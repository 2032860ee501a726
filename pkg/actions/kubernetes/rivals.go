package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Rivals returns the HPAs and ScaledObjects that act on what labels name. It only lists. The error says which
// permission is missing, or what else failed.
func (a *Action) Rivals(ctx context.Context, labels map[string]string) (actions.Survey, error) {
	w, err := targetOf(labels, a.namespace)
	if err != nil {
		return actions.Survey{}, nil // an event with these labels is dead-lettered: nothing is acted on
	}
	rivals, err := a.rivals(ctx, w)
	return actions.Survey{Target: w.String(), Where: "cluster " + a.server, Rivals: rivals}, err
}

// yield returns an error that wraps actions.ErrRival if something else sets the replicas of w, and nil if
// that cannot be seen, which is logged once.
func (a *Action) yield(ctx context.Context, w workload) error {
	rivals, err := a.rivals(ctx, w)
	if err != nil && ctx.Err() == nil && a.unseen.News(w.namespace, err.Error()) {
		a.log.Warn("whether something else sets replicas cannot be seen: they are set all the same", "namespace", w.namespace, "error", err.Error())
	}
	var names, remove []string
	for _, r := range rivals {
		if !r.Paused {
			names, remove = append(names, r.Name), append(remove, r.Remove)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%w, since it has its replicas from %s, and each would undo the other's changes for ever: %s, or have no consumer act on it",
		actions.ErrRival, strings.Join(names, " and "), strings.Join(remove, " && "))
}

// rivals lists what acts on w, without the HPAs that KEDA keeps for ScaledObjects. With an error, it lists what
// can be seen. A cluster without KEDA has no ScaledObjects.
func (a *Action) rivals(ctx context.Context, w workload) (found []actions.Rival, err error) {
	objects, err := a.list(ctx, scaledObjects, w)
	if apierrors.IsNotFound(err) {
		err = nil
	}
	hpas, hpasErr := a.list(ctx, autoscalers, w)
	kept := map[string]bool{} // names of ScaledObjects, whose HPAs do not count
	for _, o := range objects {
		kept[o.Name] = true
		found = append(found, actions.Rival{Name: "ScaledObject " + o.Name, Remove: o.removal("scaledobject"), Paused: o.paused(), Triggers: o.Spec.Triggers})
	}
	for _, hpa := range hpas {
		if !kept[hpa.Labels[kedaOwner]] {
			found = append(found, actions.Rival{Name: "HPA " + hpa.Name, Remove: hpa.removal("hpa")})
		}
	}
	return found, cmp.Or(err, hpasErr)
}

// list returns the objects of a resource that act on w.
func (a *Action) list(ctx context.Context, resource schema.GroupVersionResource, w workload) (found []scaler, err error) {
	list, err := a.objects.Resource(resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, explain("list "+resource.Resource+" in namespace "+w.namespace, "verb list on "+resource.Resource, resource.Group, err)
	}
	for _, item := range list.Items {
		var s scaler
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &s); err != nil {
			return nil, fmt.Errorf("reading %s: %w", item.GetName(), err)
		}
		if s.actsOn(w) {
			found = append(found, s)
		}
	}
	return found, nil
}

// removal is the command that removes the object. resource is its kind in kubectl.
func (s scaler) removal(resource string) string {
	return fmt.Sprintf("kubectl delete %s %s -n %s", resource, s.Name, s.Namespace)
}

// actsOn reports whether it scales w. All versions of a kind are one object. A ScaledObject has defaults
// (ParseGVKR in apis/keda/v1alpha1 of github.com/kedacore/keda); an HPA always says both.
func (s scaler) actsOn(w workload) bool {
	ref := s.Spec.ScaleTargetRef
	version, err := schema.ParseGroupVersion(cmp.Or(ref.APIVersion, "apps/v1"))
	return err == nil && version.Group == w.kind.Group && cmp.Or(ref.Kind, "Deployment") == w.kind.Kind && ref.Name == w.name
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
