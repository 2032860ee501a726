package containerapp

import (
	"slices"
	"strings"
)

// defaultMaxReplicas is what Container Apps takes where an app names none.
const defaultMaxReplicas = 10

// resource is what is read of a Container App.
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

// bounds are those that the template says, be they in force or not.
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

// hasFailed tells whether the last change came to nothing: the template has its
// bounds, and yet no replica follows them.
func (r resource) hasFailed() bool {
	return r.isIn("Failed", "Canceled")
}

// isChanging tells whether the outcome of the last change is still to come.
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

// patch is what is merged into an app.
type patch struct {
	Properties struct {
		Template struct {
			// Null lets the service name the new revision: under the old
			// one's suffix it would refuse it.
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
