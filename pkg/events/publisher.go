package events

import (
	"context"
	"errors"
)

// ErrUnreachable is in the error of a Publish that got no answer at all. The
// next event would fare no better, and wait as long: leave the rest for later.
var ErrUnreachable = errors.New("the broker is out of reach")

// Publisher delivers encoded scale events. NewStdout and NewServiceBus make
// the two there are. All methods are safe for concurrent use; the order of one
// processor's events is that of the calls, if each waits for the one before.
type Publisher interface {
	// Publish delivers the exact bytes of an encoded event, or says what to do.
	// After an error the event may have been delivered all the same: publish the
	// same bytes again, and their id lets the queue drop the repetition.
	Publish(ctx context.Context, body []byte) error

	// Close releases what is held open. It waits for nothing that a broker
	// would have to answer.
	Close(ctx context.Context) error
}
