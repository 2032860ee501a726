package servicebusfake

import (
	"errors"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

// managementNode answers the operations that clients do not do on links
// (https://learn.microsoft.com/azure/service-bus-messaging/service-bus-amqp-request-response).
type managementNode struct {
	responder
	entity *entity
}

func (n managementNode) take(d *delivery) (amqp.State, error) {
	if _, transactional := d.state.(*amqp.Transactional); transactional {
		return &amqp.Rejected{Error: refuse(conditionNotImplemented, "Management operations are not part of transactions here.")}, nil
	}
	return n.respond(d, statusKeys{code: "statusCode", description: "statusDescription", condition: "errorCondition"}, n.handle)
}

// operation answers one request about a queue.
type operation func(arguments, *broker.Queue, time.Time) (response, error)

func operationNamed(name string) operation {
	switch name {
	case "com.microsoft:renew-lock":
		return renewLock
	case "com.microsoft:peek-message":
		return peekMessage
	case "com.microsoft:schedule-message":
		return scheduleMessage
	case "com.microsoft:cancel-scheduled-message":
		return cancelScheduledMessage
	case "com.microsoft:receive-by-sequence-number":
		return receiveBySequenceNumber
	case "com.microsoft:update-disposition":
		return updateDisposition
	case "com.microsoft:batch-delete-messages":
		return batchDeleteMessages
	case "com.microsoft:renew-session-lock":
		return renewSessionLock
	case "com.microsoft:get-session-state":
		return getSessionState
	case "com.microsoft:set-session-state":
		return setSessionState
	case "com.microsoft:get-message-sessions":
		return getMessageSessions
	default:
		return nil
	}
}

func (n managementNode) handle(r *request) (response, error) {
	name, _ := r.properties.Get("operation").(string)
	v, err := n.conn.intercept(Request{Op: OpManage, Entity: n.entity.name, Operation: name})
	if err != nil {
		return response{}, err
	}
	if v.refusal != nil {
		return response{status: v.status, description: v.refusal.Description, condition: v.refusal.Condition}, nil
	}
	answer := n.answer(name, r)
	answer.silent = v.silent
	return answer, nil
}

func (n managementNode) answer(name string, r *request) response {
	run := operationNamed(name)
	if run == nil {
		run = n.entity.rules.operationNamed(name)
	}
	if run == nil {
		return response{status: 501, description: "The operation is not implemented.", condition: conditionNotImplemented}
	}
	body, ok := r.value.(amqp.Map)
	if !ok {
		return response{status: 400, description: "The body of the request is not a map.", condition: conditionArgument}
	}
	var answer response
	var err error
	n.conn.server.namespace.update(n.entity, func(q *broker.Queue, now time.Time) { answer, err = run(arguments{body}, q, now) })
	var bad badArgument
	switch {
	case errors.As(err, &bad):
		return response{status: 400, description: bad.Error(), condition: conditionArgument}
	case err != nil:
		refusal, status := refusalOf(err)
		return response{status: status, description: refusal.Description, condition: refusal.Condition}
	}
	return answer
}

func ok(value any) (response, error) {
	return response{status: 200, description: "OK", value: value}, nil
}

func noContent(condition amqp.Symbol) (response, error) {
	return response{status: 204, description: "NoContent", condition: condition}, nil
}

func body(key string, value any) amqp.Map { return amqp.Map{{Key: key, Value: value}} }
