// Package actions is what a consumer does about a scale event: it brings what
// is scaled to the replicas that were decided, or hands the event on.
//
// It knows no queue: servicebus.Consumer delivers, and settles by the errors of an
// action. Start with Action. Each action that needs a client of its own stands
// in a subpackage, so that a program links only those it offers:
// webhook, containerapp and, the heavy one, kubernetes.
package actions

import (
	"context"

	"github.com/feedscale/feedscale/pkg/events"
)

// Action is one way to act on scale events. Both methods are safe for
// concurrent use.
//
// An error that wraps events.ErrDeadLetter says that another try would end the
// same, as where the event's target labels name nothing that can be scaled. Any
// other is worth another try.
type Action interface {
	// Target names, for people, what an event is to change, by the event alone:
	// no request is made.
	Target(e events.ScaleEvent) (string, error)

	// Act brings the target to the event's desiredReplicas, or hands the event
	// on. A target that is there already is left alone, and changed is false, so
	// that an event may be acted on any number of times.
	Act(ctx context.Context, e events.ScaleEvent) (changed bool, err error)
}
