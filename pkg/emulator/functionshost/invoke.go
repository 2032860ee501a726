package functionshost

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Invocation is what the host made of one answer of the handler.
type Invocation struct {
	ID          string         // X-Azure-Functions-InvocationId
	Outputs     map[string]any // by output binding: string, []byte, bool, float64, map[string]any, []any
	ReturnValue any            // of the same types; nil where the answer has none, or no binding takes it
	Logs        []string       // what the answer asked the host to log
}

// invoke sends a payload to the handler and judges its answer.
func (h *Host) invoke(ctx context.Context, f *function, p payload) (Invocation, error) {
	invocation := Invocation{ID: newGUID()}
	err := h.timed(ctx, f, invocation.ID, func(ctx context.Context) error {
		body, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encoding the payload: %w", err)
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.worker.url("/"+f.name), bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json; charset=utf-8")
		signRequest(request.Header, invocation.ID)
		response, err := h.worker.client.Do(request)
		if err != nil {
			return h.unanswered(err)
		}
		defer response.Body.Close()
		answer, err := readAnswer(response)
		if err != nil {
			return err
		}
		invocation.Logs = answer.Logs
		for _, text := range answer.Logs {
			h.log.add(Information, "Function."+f.name+".User", "%s", text)
		}
		invocation.Outputs, invocation.ReturnValue = answer.bind(f)
		return nil
	})
	return invocation, err
}

// signRequest adds the headers that the host adds to every invocation.
func signRequest(header http.Header, invocationID string) {
	header.Set("X-Azure-Functions-HostVersion", Version)
	header.Set("X-Azure-Functions-InvocationId", invocationID)
	agent := "Azure-Functions-Host/" + Version
	if client := header.Get("User-Agent"); client != "" { // of a forwarded request
		agent = client + " " + agent
	}
	header.Set("User-Agent", agent)
}

// unanswered explains a request that got no answer.
func (h *Host) unanswered(err error) error {
	h.worker.mu.Lock()
	defer h.worker.mu.Unlock()
	if h.worker.stopped != nil {
		return fmt.Errorf("no answer of the handler: %w: %w", h.worker.stopped, err)
	}
	return fmt.Errorf("no answer of the handler: %w", err)
}

// timed runs an invocation under functionTimeout and logs it as the host does.
// At the timeout the host kills the handler, with everything else it is doing,
// and starts another; the request itself is not cancelled before.
func (h *Host) timed(ctx context.Context, f *function, id string, run func(context.Context) error) error {
	h.log.add(Information, CategoryHost, "Executing 'Functions.%s' (Id=%s)", f.name, id)
	stop := h.guard()
	err := run(ctx)
	if timedOut := stop(); timedOut {
		err = fmt.Errorf("timeout value of %s was exceeded, and the handler was killed", h.app.functionTimeout)
	}
	if err != nil {
		err = fmt.Errorf("executing function %q: %w", f.name, err)
		h.log.add(Error, CategoryHost, "Executed 'Functions.%s' (Failed, Id=%s): %v", f.name, id, err)
		return err
	}
	h.log.add(Information, CategoryHost, "Executed 'Functions.%s' (Succeeded, Id=%s)", f.name, id)
	return nil
}

// guard kills the handler at functionTimeout unless it is stopped before, which
// tells whether it was too late. It is then also too late for the old process.
func (h *Host) guard() (stop func() (timedOut bool)) {
	if h.app.functionTimeout == 0 {
		return func() bool { return false }
	}
	killed := make(chan struct{})
	timer := time.AfterFunc(h.app.functionTimeout, func() {
		h.worker.kill(true)
		close(killed)
	})
	return func() bool {
		if timer.Stop() {
			return false
		}
		<-killed
		return true
	}
}

// Deliver hands a message to a function with a Service Bus trigger. An error is
// an invocation that the host would count as failed: it would abandon the message.
func (h *Host) Deliver(ctx context.Context, name string, m Message) (Invocation, error) {
	f := h.find(name)
	switch {
	case f == nil || !f.trigger.is("serviceBusTrigger"):
		return Invocation{}, fmt.Errorf("there is no Service Bus function %q", name)
	case f.disabled:
		return Invocation{}, fmt.Errorf("the function %q is disabled", name)
	}
	return h.invoke(ctx, f, f.messagePayload(h.now(), m))
}

// readAll reads a body that a test is expected to keep small.
func readAll(body io.Reader) ([]byte, error) {
	const limit = 64 << 20
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && len(raw) > limit {
		return nil, fmt.Errorf("the body is larger than %d bytes", limit)
	}
	return raw, err
}
