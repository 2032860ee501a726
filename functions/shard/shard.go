// Package shard is the queue-triggered function of the Functions app: one invocation polls one part
// of a tick, which the timer function handed over (docs/scale.md). It speaks the custom handler
// protocol and leaves the polling to its caller. function.json beside it is what the host reads;
// `make dist FANOUT=1` alone stages it.
package shard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/feedscale/feedscale/functions/poll"
	"github.com/feedscale/feedscale/pkg/poller"
)

// Route is where the host sends an invocation: the name of this folder.
const Route = "POST /shard"

// maxPayload bounds what is read of an invocation: a message of 256 KB, as text within text.
const maxPayload = 4 << 20

// Handler answers invocations with a message of the queue.
type Handler struct {
	Poll func(context.Context, poller.Shard) error // its error is that nothing at all could be committed
	Base context.Context                           // ends with the process; the host never cancels an invocation
	Log  *slog.Logger
}

// ServeHTTP answers 200 when the message is done with, so that the host completes it. After any
// other answer the host abandons it (Azure/azure-sdk-for-net,
// Microsoft.Azure.WebJobs.Extensions.ServiceBus/src/Primitives/ MessageProcessor.cs), and the queue
// delivers it again, to this process or to another one.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	s, again, err := read(r)
	if err != nil {
		h.Log.Error("a shard cannot be read: the queue keeps it among its dead letters", "error", err.Error())
		status = http.StatusInternalServerError
	} else if err := h.Poll(h.Base, s); err != nil {
		h.Log.Error("the shard failed", "invocation", r.Header.Get("X-Azure-Functions-InvocationId"), "processors", len(s.Names), "error", err.Error())
		if !again {
			status = http.StatusInternalServerError // once, since another process may reach what this one cannot
		}
	} else if h.Base.Err() != nil {
		status = http.StatusServiceUnavailable // this process ends: another one polls what is left
	}
	poll.Answer(w, status, h.Log)
}

// read takes the shard out of an invocation, and reports whether it is delivered again. The host
// writes text as JSON within a JSON string (Azure/azure-functions-host,
// ScriptInvocationContextExtensions.cs).
func read(r *http.Request) (s poller.Shard, again bool, err error) {
	var payload struct {
		Data     struct{ Shard string }
		Metadata struct{ DeliveryCount any }
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, maxPayload)).Decode(&payload); err != nil {
		return s, false, fmt.Errorf("the payload: %w", err)
	}
	text := payload.Data.Shard
	if inner := ""; json.Unmarshal([]byte(text), &inner) == nil {
		text = inner
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, false, fmt.Errorf("the message: %w", err)
	}
	if s.Tick.IsZero() || s.Of < 1 || len(s.Names) == 0 {
		return s, false, errors.New("the message names no tick, or no processors")
	}
	return s, fmt.Sprint(payload.Metadata.DeliveryCount) != "1", nil
}
