package kubernetes

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/feedscale/feedscale/pkg/events"
)

// workload names an object that has a scale subresource.
type workload struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// String leaves out a namespace that is not known.
func (w workload) String() string {
	if w.namespace == "" {
		return w.kind.Kind + " " + w.name
	}
	return fmt.Sprintf("%s %s/%s", w.kind.Kind, w.namespace, w.name)
}

// targetOf reads the labels of a processor's target: deployment or statefulset or, without these,
// apiVersion, kind and name together; and optionally namespace. It ignores labels that it does not know.
// Those of the general form are common words, which other labels of a target may be.
func targetOf(labels map[string]string, defaultNamespace string) (workload, error) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	w, named := workload{namespace: defaultNamespace}, "name"
	_, isDeployment := labels["deployment"]
	_, isStatefulSet := labels["statefulset"]
	switch {
	case isDeployment && isStatefulSet:
		return w, fmt.Errorf("target labels deployment and statefulset are both there; allowed is one of them: %w", events.ErrDeadLetter)
	case isDeployment:
		w.kind, named = apps.WithKind("Deployment"), "deployment"
	case isStatefulSet:
		w.kind, named = apps.WithKind("StatefulSet"), "statefulset"
	default:
		for _, label := range []string{"apiVersion", "kind", "name"} {
			if labels[label] == "" {
				return w, fmt.Errorf("target label %s is missing; allowed are deployment, statefulset, or apiVersion with kind and name: %w", label, events.ErrDeadLetter)
			}
		}
		version, err := schema.ParseGroupVersion(labels["apiVersion"])
		if err != nil {
			return w, fmt.Errorf("target label apiVersion is %q; allowed is VERSION or GROUP/VERSION, such as apps/v1: %w", labels["apiVersion"], events.ErrDeadLetter)
		}
		w.kind = version.WithKind(labels["kind"])
	}
	w.name = labels[named]
	if wrong := validation.IsDNS1123Subdomain(w.name); len(wrong) > 0 {
		return w, fmt.Errorf("target label %s is %q; allowed is the name of an object: %s: %w", named, w.name, strings.Join(wrong, ", "), events.ErrDeadLetter)
	}
	if namespace, ok := labels["namespace"]; ok {
		w.namespace = namespace
	}
	if wrong := validation.IsDNS1123Label(w.namespace); len(wrong) > 0 {
		return w, fmt.Errorf("target label namespace is %q; allowed is the name of a namespace: %s: %w", w.namespace, strings.Join(wrong, ", "), events.ErrDeadLetter)
	}
	return w, nil
}
