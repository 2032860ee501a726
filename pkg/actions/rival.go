package actions

import "errors"

// Survey is what a Kind finds out about the target of a processor or a group.
type Survey struct {
	Target string  // what the labels name, such as Deployment shop/orders; "" = nothing that the kind acts on
	Where  string  // where it was looked for, such as cluster https://10.0.0.1:443; "" = nowhere
	Rivals []Rival // what else sets its replicas
}

// Rival is something else that sets the replicas of a target: it and feedscale would undo each other's
// changes for ever.
type Rival struct {
	Name     string    // with its kind, such as HPA orders
	Paused   bool      // it leaves the replicas alone until it is resumed
	Triggers []Trigger // of a ScaledObject, which may ask feedscale; none for anything else
	Remove   string    // the command that removes it
}

// Trigger is a trigger of a KEDA ScaledObject.
type Trigger struct {
	Type     string            `json:"type"` // such as metrics-api
	Metadata map[string]string `json:"metadata"`
}

// ErrRival is wrapped by the error of an Act that left the target alone, since something else sets its
// replicas. Another try would find the same; the next event looks again.
var ErrRival = errors.New("left alone")
