package containerapp

import (
	"cmp"
	"slices"
	"strings"
)

// defaultMaxReplicas is maxReplicas of an app that does not set it.
const defaultMaxReplicas = 10

// resource has the properties of a Container App that are read.
type resource struct {
	Properties struct {
		ProvisioningState string `json:"provisioningState"`
		Configuration     struct {
			ActiveRevisionsMode string `json:"activeRevisionsMode"`
		} `json:"configuration"`
		Template struct {
			Scale struct {
				MinReplicas *int `json:"minReplicas"`
				MaxReplicas *int `json:"maxReplicas"`
			} `json:"scale"`
		} `json:"template"`
	} `json:"properties"`
}

// bounds returns the bounds in the template, whether they are in effect or not.
func (r resource) bounds() bounds {
	scale, least, most := r.Properties.Template.Scale, 0, defaultMaxReplicas
	return bounds{*cmp.Or(scale.MinReplicas, &least), *cmp.Or(scale.MaxReplicas, &most)}
}

// hasFailed reports whether the last change failed: its bounds are in the template, and not in effect.
func (r resource) hasFailed() bool { return r.isIn("Failed", "Canceled") }

// isChanging reports whether the last change is still in progress.
func (r resource) isChanging() bool { return !r.hasFailed() && !r.isIn("Succeeded", "") }

func (r resource) isIn(states ...string) bool {
	return slices.ContainsFunc(states, func(state string) bool { return strings.EqualFold(state, r.Properties.ProvisioningState) })
}

// bounds are the replica bounds of an app.
type bounds struct {
	MinReplicas int `json:"minReplicas"`
	MaxReplicas int `json:"maxReplicas"`
}

func boundsFor(desired int) bounds { return bounds{desired, max(desired, 1)} }

// patch returns the body of a PATCH, which is merged into an app. A null suffix lets the service name the new
// revision: with the suffix of the old one it would refuse it.
func (b bounds) patch() any {
	type object = map[string]any
	return object{"properties": object{"template": object{"revisionSuffix": nil, "scale": b}}}
}
