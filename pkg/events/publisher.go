package events

import (
	"context"
	"errors"
)

var (
	// ErrUnreachable is in the error of a Publish that got no answer at all. The next event would fare
	// no better, and wait as long: leave the rest for later.
	ErrUnreachable = errors.New("the broker is out of reach")

	// ErrTooLarge is in the error of a Publish that the broker refused for the size of this event. Another
	// try would end the same, the next event may pass: drop this one, and say so.
	ErrTooLarge = errors.New("the event is larger than the broker takes")

	// ErrDeadLetter, in the error of whoever acts on an event, says that another try would end the
	// same: the event belongs in the dead-letter queue at once.
	ErrDeadLetter = errors.New("the scale event cannot be acted upon")
)

// Publisher delivers encoded scale events. All methods are safe for concurrent use; events of one
// subject arrive in the order of the calls, if each call waits for the one before.
type Publisher interface {
	// Publish delivers the exact bytes of an encoded event, or says what to do. After an error the
	// event may have been delivered all the same: publish the same bytes again, and their id lets the
	// queue drop the repetition. The error is ErrUnreachable where nobody answered, and ErrTooLarge where
	// it is for this event alone.
	Publish(ctx context.Context, body []byte) error

	// Close releases what is held open. It waits for nothing that a broker would have to answer.
	Close(ctx context.Context) error
}
