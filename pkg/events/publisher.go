package events

import (
	"context"
	"errors"
)

var (
	// ErrUnreachable is in the error of a Publish that got no answer. Leave the other events for later:
	// each would wait as long.
	ErrUnreachable = errors.New("the broker is out of reach")

	// ErrTooLarge is in the error of a Publish that the broker refused for the size of the event. Drop the
	// event and say so: another try would fail, too, while other events may pass.
	ErrTooLarge = errors.New("the event is larger than the broker takes")

	// ErrDeadLetter is in the error of a handler for which another try would fail in the same way: the
	// event goes to the dead-letter queue at once.
	ErrDeadLetter = errors.New("the scale event cannot be acted upon")
)

// Publisher delivers encoded scale events. All methods are safe for concurrent use; events of one
// subject arrive in the order of the calls, if each call waits for the one before.
type Publisher interface {
	// Publish delivers the exact bytes of an encoded event. The error says what to do; it wraps
	// ErrUnreachable or ErrTooLarge in these cases. The event may have been delivered in spite of an
	// error: publish the same bytes again, and the queue drops the repetition by its id.
	Publish(ctx context.Context, body []byte) error

	// Close releases what is held open, without waiting for an answer of the broker.
	Close(ctx context.Context) error
}
