package broker

// Error is a refusal that a caller can distinguish.
type Error string

func (e Error) Error() string { return string(e) }

const (
	// ErrLockLost: the lock has expired, was settled before, or never was.
	ErrLockLost Error = "the lock on the message is lost: it has expired, or the message was already settled"
	// ErrSessionLockLost: the lock on the session has expired or was given back.
	ErrSessionLockLost Error = "the lock on the session is lost: accept the session again"
	// ErrSessionLocked: another receiver holds the session.
	ErrSessionLocked Error = "the session is locked by another receiver"
	// ErrNoSession: no session is free and has messages.
	ErrNoSession Error = "no session is available"
	// ErrMessageNotFound: no message with that sequence number is in the state asked for.
	ErrMessageNotFound Error = "there is no such message"
	// ErrSessionIDMissing: the queue requires sessions and the message names none.
	ErrSessionIDMissing Error = "the queue requires sessions: set a session id on the message"
	// ErrSessionRequired: the queue requires sessions and the receiver holds none. In the words of
	// the service (https://github.com/Azure/azure-service-bus-dotnet/issues/628).
	ErrSessionRequired Error = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver."
	// ErrSessionNotSupported: the queue knows no sessions. In the words of the service
	// (https://github.com/danielgerlag/workflow-core/issues/1217).
	ErrSessionNotSupported Error = "A sessionful message receiver cannot be created on an entity that does not require sessions. " +
		"Ensure RequiresSession is set to true when creating a Queue or Subscription to enable sessionful behavior."
	// ErrDeadLetterTwice: a message of a dead-letter queue cannot be dead-lettered again.
	ErrDeadLetterTwice Error = "the message is in a dead-letter queue already"
)
