package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// explain returns an error that says what failed about a workload and what to do. resource is empty if it is
// not known yet.
func explain(w workload, resource schema.GroupResource, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no kind %s in %s: install it, or correct the target labels of the processor: %w", w.kind.Kind, w.kind.GroupVersion(), err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist, or cannot be scaled: create it, or correct the target labels of the processor: %w", w, err)
	case isDenied(err, "get", "update"):
		return fmt.Errorf("this account may not scale %s: bind it to a role with the verbs get and update on %s/scale in apiGroup %q: %w", w, resource.Resource, resource.Group, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the cluster refuses to scale %s, as an admission policy, a webhook or a quota may: %w", w, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not accept the credentials for %s: renew those of the kubeconfig or the service account: %w", w, err)
	}
	return fmt.Errorf("scaling %s: %w", w, err)
}

// explainList is explain for a list of what else scales.
func explainList(resource schema.GroupVersionResource, namespace string, err error) error {
	switch {
	case isDenied(err, "list"):
		return fmt.Errorf("this account may not list %s in namespace %s: bind it to a role with the verb list on %[1]s in apiGroup %[3]q: %[4]w", resource.Resource, namespace, resource.Group, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not accept the credentials: renew those of the kubeconfig or the service account: %w", err)
	}
	return fmt.Errorf("listing %s in namespace %s: %w", resource.Resource, namespace, err)
}

// isDenied reports whether a role is missing for one of some verbs. An admission policy or a quota
// answers 403, too; only authorization says `User "x" cannot update resource "deployments/scale"`
// (staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go of
// github.com/kubernetes/kubernetes).
func isDenied(err error, verbs ...string) bool {
	return apierrors.IsForbidden(err) && slices.ContainsFunc(verbs, func(verb string) bool {
		return strings.Contains(err.Error(), " cannot "+verb+" resource ")
	})
}
