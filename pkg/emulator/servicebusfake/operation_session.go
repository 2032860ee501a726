package servicebusfake

import (
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/amqp"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake/internal/broker"
)

func renewSessionLock(a arguments, q *broker.Queue, now time.Time) (response, error) {
	id, err := a.text("session-id")
	if err != nil {
		return response{}, err
	}
	until, err := q.RenewSession(now, id)
	if err != nil {
		return response{}, err
	}
	return ok(body("expiration", amqp.NewTimestamp(until)))
}

func getSessionState(a arguments, q *broker.Queue, now time.Time) (response, error) {
	id, err := a.text("session-id")
	if err != nil {
		return response{}, err
	}
	state, err := q.SessionState(now, id)
	if err != nil {
		return response{}, err
	}
	if state == nil {
		return ok(body("session-state", nil))
	}
	return ok(body("session-state", state))
}

func setSessionState(a arguments, q *broker.Queue, now time.Time) (response, error) {
	id, err := a.text("session-id")
	if err != nil {
		return response{}, err
	}
	state, isBinary := a.body.Get("session-state").([]byte)
	if !isBinary && a.body.Get("session-state") != nil {
		return response{}, badArgument{"session-state"}
	}
	if err := q.SetSessionState(now, id, state); err != nil {
		return response{}, err
	}
	return ok(nil)
}

// endOfTime: clients that ask for all sessions give an instant on the last day that .NET can
// express, or behind it.
const endOfTime amqp.Timestamp = 253_402_214_400_000

func getMessageSessions(a arguments, q *broker.Queue, now time.Time) (response, error) {
	updatedAfter, err := a.instant("last-updated-time")
	if err != nil {
		return response{}, err
	}
	skip, err := a.integer("skip")
	if err != nil {
		return response{}, err
	}
	top, err := a.integer("top")
	if err != nil {
		return response{}, err
	}
	if !updatedAfter.Before(endOfTime.Time()) {
		updatedAfter = time.Time{}
	}
	ids, err := q.Sessions(now, updatedAfter)
	if err != nil {
		return response{}, err
	}
	skip = max(0, min(skip, int64(len(ids))))
	ids = ids[skip:min(int64(len(ids)), skip+max(0, top))]
	if len(ids) == 0 {
		return noContent(conditionSessionNotFound)
	}
	page := make(amqp.Array, len(ids))
	for i, id := range ids {
		page[i] = id
	}
	return ok(append(body("skip", int32(skip)), amqp.Pair{Key: "sessions-ids", Value: page}))
}
