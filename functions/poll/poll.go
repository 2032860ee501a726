// Package poll is the timer function of the Functions app: one invocation is one tick. It speaks
// the custom handler protocol and leaves the tick to its caller. function.json beside it is what
// the host reads.
package poll

import (
	"context"
	"io"
	"log/slog"
	"net/http"
)

// Route is where the host sends an invocation: the name of this folder.
const Route = "POST /poll"

// Handler answers timer invocations. It reads no payload, which only says whether the host is late.
type Handler struct {
	Tick func(context.Context) error
	Base context.Context // ends with the process; the host never cancels an invocation
	Log  *slog.Logger
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	// The request's context says nothing: the host keeps an invocation open until its timeout, and
	// then kills the process.
	if err := h.Tick(h.Base); err != nil {
		// The host shows only the status of a failed invocation.
		h.Log.Error("the tick failed", "invocation", r.Header.Get("X-Azure-Functions-InvocationId"), "error", err.Error())
		status = http.StatusInternalServerError
	}
	Answer(w, status, h.Log)
}

// Answer ends an invocation of a function without outputs.
func Answer(w http.ResponseWriter, status int, log *slog.Logger) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An empty body, or another content type, would let the invocation hang or fail.
	if _, err := io.WriteString(w, `{"Outputs":{},"Logs":[],"ReturnValue":null}`); err != nil {
		log.Warn("the host did not take the answer of an invocation", "error", err.Error())
	}
}
