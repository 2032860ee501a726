// Package actions defines what a consumer does about a scale event: it sets the replicas of a target to
// the decided number, or forwards the event.
//
// It knows no queue: servicebus.Consumer delivers events, and settles them by the errors of an
// action. Start with Action. Each action that needs a client of its own is in a subpackage, so that
// a program links only those that it offers: webhook, containerapp and kubernetes, which is big
// (docs/decisions/0010-consumer-without-client-go-in-the-handler.md).
//
// The package and its subpackages are internal to the program: their API may change in any release.
package actions

import (
	"context"
	"errors"

	"github.com/feedscale/feedscale/pkg/events"
)

// Action is one way to act on scale events. Both methods are safe for concurrent use.
//
// An error that wraps events.ErrDeadLetter says that another try would fail as well, for example because
// the event's target labels name nothing that can be scaled. One that wraps ErrRival says that the target
// was left alone. After any other error another try may succeed.
type Action interface {
	// Target returns a name, for people, of what an event is to change. It makes no request.
	Target(e events.ScaleEvent) (string, error)

	// Act sets the target to the event's desiredReplicas, or forwards the event. It is idempotent: if the
	// target has that number already, it changes nothing and changed is false.
	Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error)
}

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
