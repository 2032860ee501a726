package servicebusfake

import (
	"errors"
	"fmt"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// Error conditions, as the service sends them.
const (
	conditionNotFound          amqp.Symbol = "amqp:not-found"
	conditionUnauthorized      amqp.Symbol = "amqp:unauthorized-access"
	conditionNotAllowed        amqp.Symbol = "amqp:not-allowed"
	conditionNotImplemented    amqp.Symbol = "amqp:not-implemented"
	conditionInternal          amqp.Symbol = "amqp:internal-error"
	conditionDecode            amqp.Symbol = "amqp:decode-error"
	conditionForced            amqp.Symbol = "amqp:connection:forced"
	conditionFraming           amqp.Symbol = "amqp:connection:framing-error"
	conditionHandleInUse       amqp.Symbol = "amqp:session:handle-in-use"
	conditionUnattachedHandle  amqp.Symbol = "amqp:session:unattached-handle"
	conditionTransferLimit     amqp.Symbol = "amqp:link:transfer-limit-exceeded"
	conditionMessageSize       amqp.Symbol = "amqp:link:message-size-exceeded"
	conditionUnknownID         amqp.Symbol = "amqp:transaction:unknown-id"
	conditionRollback          amqp.Symbol = "amqp:transaction:rollback"
	conditionArgument          amqp.Symbol = "com.microsoft:argument-error"
	conditionAlreadyExists     amqp.Symbol = "com.microsoft:entity-already-exists"
	conditionTimeout           amqp.Symbol = "com.microsoft:timeout"
	conditionMessageLockLost   amqp.Symbol = "com.microsoft:message-lock-lost"
	conditionMessageNotFound   amqp.Symbol = "com.microsoft:message-not-found"
	conditionSessionLockLost   amqp.Symbol = "com.microsoft:session-lock-lost"
	conditionSessionNotLocked  amqp.Symbol = "com.microsoft:session-cannot-be-locked"
	conditionSessionNotFound   amqp.Symbol = "com.microsoft:session-not-found"
	conditionAuthorizationFail amqp.Symbol = "com.microsoft:auth-failed"
)

func refuse(condition amqp.Symbol, format string, args ...any) *amqp.Error {
	return &amqp.Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

// wrongKind refuses a link that its entity does not take. The service has this condition where
// client and entity do not fit (https://github.com/Azure/amqpnetlite/issues/427: "Cannot open a
// Topic client for entity type Subscriber."); its words for a receiver of a topic and a sender to a
// subscription are published nowhere, and these are not the service's.
func wrongKind(use, kind string, a address) *amqp.Error {
	return refuse(conditionNotAllowed, "%q cannot be %s: it is %s.", a.entity, use, kind)
}

// refusalOf is how the service puts a refusal of the broker, on links and in management answers
// alike.
func refusalOf(err error) (refusal *amqp.Error, status int) {
	condition, status := conditionInternal, 500
	switch {
	case errors.Is(err, broker.ErrLockLost):
		condition, status = conditionMessageLockLost, 410
	case errors.Is(err, broker.ErrSessionLockLost):
		condition, status = conditionSessionLockLost, 410
	case errors.Is(err, broker.ErrMessageNotFound):
		condition, status = conditionMessageNotFound, 404
	case errors.Is(err, broker.ErrSessionLocked):
		condition, status = conditionSessionNotLocked, 409
	case errors.Is(err, broker.ErrNoSession):
		condition, status = conditionTimeout, 408
	case errors.Is(err, broker.ErrSessionIDMissing), errors.Is(err, broker.ErrSessionRequired),
		errors.Is(err, broker.ErrSessionNotSupported), errors.Is(err, broker.ErrDeadLetterTwice):
		condition, status = conditionNotAllowed, 400
	}
	return refuse(condition, "%s", err), status
}
