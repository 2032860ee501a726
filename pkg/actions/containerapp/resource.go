package containerapp

import "strings"

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

// has tells whether the app has the bounds already. After a change that failed
// the template says so, and yet no replica follows it.
func (r resource) has(want bounds) bool {
	current := bounds{0, defaultMaxReplicas}
	if n := r.Properties.Template.Scale.MinReplicas; n != nil {
		current.MinReplicas = *n
	}
	if n := r.Properties.Template.Scale.MaxReplicas; n != nil {
		current.MaxReplicas = *n
	}
	return current == want && !strings.EqualFold(r.Properties.ProvisioningState, "Failed")
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
