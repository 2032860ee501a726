package containerapp

import (
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
	current := bounds{0, defaultMaxReplicas}
	if n := r.Properties.Template.Scale.MinReplicas; n != nil {
		current.MinReplicas = *n
	}
	if n := r.Properties.Template.Scale.MaxReplicas; n != nil {
		current.MaxReplicas = *n
	}
	return current
}

// hasFailed reports whether the last change failed: the template has its bounds, but they are not
// in effect.
func (r resource) hasFailed() bool {
	return r.isIn("Failed", "Canceled")
}

// isChanging reports whether the last change is still in progress.
func (r resource) isChanging() bool {
	return !r.hasFailed() && !r.isIn("Succeeded", "")
}

func (r resource) isIn(states ...string) bool {
	return slices.ContainsFunc(states, func(state string) bool { return strings.EqualFold(state, r.Properties.ProvisioningState) })
}

// bounds are the replica bounds of an app.
type bounds struct {
	MinReplicas int `json:"minReplicas"`
	MaxReplicas int `json:"maxReplicas"`
}

func boundsFor(desired int) bounds { return bounds{desired, max(desired, 1)} }

// patch is the body of a PATCH, which is merged into an app.
type patch struct {
	Properties struct {
		Template struct {
			// Null lets the service name the new revision. With the suffix of the old one it would
			// refuse it.
			RevisionSuffix *string `json:"revisionSuffix"`
			Scale          bounds  `json:"scale"`
		} `json:"template"`
	} `json:"properties"`
}

func newPatch(want bounds) patch {
	var p patch
	p.Properties.Template.Scale = want
	return p
}
