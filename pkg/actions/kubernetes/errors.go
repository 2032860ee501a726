package kubernetes

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// explain returns an error that says what failed about a workload and what to do. resource is empty
// where it is not known yet.
func explain(w workload, resource schema.GroupResource, err error) error {
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster has no kind %s in %s: install it, or correct the target labels of the processor: %w", w.kind.Kind, w.kind.GroupVersion(), err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s does not exist, or cannot be scaled: create it, or correct the target labels of the processor: %w", w, err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("this account may not scale %s: bind it to a role with the verbs get and update on %s/scale in apiGroup %q: %w", w, resource.Resource, resource.Group, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster does not accept the credentials for %s: renew those of the kubeconfig or the service account: %w", w, err)
	}
	return fmt.Errorf("scaling %s: %w", w, err)
}
