package kubernetes

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/feedscale/feedscale/pkg/events"
)

// The target labels that name what is scaled: one of the first two or, without them, the next three
// together; and optionally the namespace.
const (
	labelDeployment  = "deployment"
	labelStatefulSet = "statefulset"
	labelAPIVersion  = "apiVersion"
	labelKind        = "kind"
	labelName        = "name"
	labelNamespace   = "namespace"
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

// targetOf reads the labels of a processor's target. It ignores labels that it does not know. Those of the
// general form (apiVersion, kind, name) are common words: they count only without deployment and statefulset.
func targetOf(labels map[string]string, defaultNamespace string) (workload, error) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	w, named := workload{namespace: defaultNamespace}, labelName
	_, isDeployment := labels[labelDeployment]
	_, isStatefulSet := labels[labelStatefulSet]
	switch {
	case isDeployment && isStatefulSet:
		return w, fmt.Errorf("target labels %s and %s are both there; allowed is one of them: %w", labelDeployment, labelStatefulSet, events.ErrDeadLetter)
	case isDeployment:
		w.kind, named = apps.WithKind("Deployment"), labelDeployment
	case isStatefulSet:
		w.kind, named = apps.WithKind("StatefulSet"), labelStatefulSet
	default:
		for _, label := range []string{labelAPIVersion, labelKind, labelName} {
			if labels[label] == "" {
				return w, fmt.Errorf("target label %s is missing; allowed are %s, %s, or %s with %s and %s: %w",
					label, labelDeployment, labelStatefulSet, labelAPIVersion, labelKind, labelName, events.ErrDeadLetter)
			}
		}
		version, err := schema.ParseGroupVersion(labels[labelAPIVersion])
		if err != nil {
			return w, fmt.Errorf("target label %s is %q; allowed is VERSION or GROUP/VERSION, such as apps/v1: %w", labelAPIVersion, labels[labelAPIVersion], events.ErrDeadLetter)
		}
		w.kind = version.WithKind(labels[labelKind])
	}
	w.name = labels[named]
	if wrong := validation.IsDNS1123Subdomain(w.name); len(wrong) > 0 {
		return w, fmt.Errorf("target label %s is %q; allowed is the name of an object: %s: %w", named, w.name, strings.Join(wrong, ", "), events.ErrDeadLetter)
	}
	if namespace, ok := labels[labelNamespace]; ok {
		w.namespace = namespace
	}
	if wrong := validation.IsDNS1123Label(w.namespace); len(wrong) > 0 {
		return w, fmt.Errorf("target label %s is %q; allowed is the name of a namespace: %s: %w", labelNamespace, w.namespace, strings.Join(wrong, ", "), events.ErrDeadLetter)
	}
	return w, nil
}
