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

// targetOf reads the labels of a processor's target. It ignores labels that it does not know.
func targetOf(labels map[string]string, defaultNamespace string) (workload, error) {
	w, err := named(labels)
	if err != nil {
		return workload{}, err
	}
	w.namespace = defaultNamespace
	if namespace, ok := labels[labelNamespace]; ok {
		w.namespace = namespace
	}
	if wrong := validation.IsDNS1123Label(w.namespace); len(wrong) > 0 {
		return workload{}, fmt.Errorf("target label %s is %q; allowed is the name of a namespace: %s: %w", labelNamespace, w.namespace, strings.Join(wrong, ", "), events.ErrDeadLetter)
	}
	return w, nil
}

// named reads the object without its namespace. The labels of the general form (apiVersion, kind, name) are
// common words: they count only without deployment and statefulset.
func named(labels map[string]string) (workload, error) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	deployment, isDeployment := labels[labelDeployment]
	statefulSet, isStatefulSet := labels[labelStatefulSet]
	switch {
	case isDeployment && isStatefulSet:
		return workload{}, fmt.Errorf("target labels %s and %s are both there; allowed is one of them: %w", labelDeployment, labelStatefulSet, events.ErrDeadLetter)
	case isDeployment:
		return object(labelDeployment, apps.WithKind("Deployment"), deployment)
	case isStatefulSet:
		return object(labelStatefulSet, apps.WithKind("StatefulSet"), statefulSet)
	}
	for _, label := range []string{labelAPIVersion, labelKind, labelName} {
		if labels[label] == "" {
			return workload{}, fmt.Errorf("target label %s is missing; allowed are %s, %s, or %s with %s and %s: %w",
				label, labelDeployment, labelStatefulSet, labelAPIVersion, labelKind, labelName, events.ErrDeadLetter)
		}
	}
	version, err := schema.ParseGroupVersion(labels[labelAPIVersion])
	if err != nil {
		return workload{}, fmt.Errorf("target label %s is %q; allowed is VERSION or GROUP/VERSION, such as apps/v1: %w", labelAPIVersion, labels[labelAPIVersion], events.ErrDeadLetter)
	}
	return object(labelName, version.WithKind(labels[labelKind]), labels[labelName])
}

func object(label string, kind schema.GroupVersionKind, name string) (workload, error) {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return workload{}, fmt.Errorf("target label %s is %q; allowed is the name of an object: %s: %w", label, name, strings.Join(wrong, ", "), events.ErrDeadLetter)
	}
	return workload{kind: kind, name: name}, nil
}
