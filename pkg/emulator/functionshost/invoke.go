package functionshost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Invocation is the host's view of one answer of the handler.
type Invocation struct {
	ID string // X-Azure-Functions-InvocationId
	// by output binding: string, []byte, bool, float64, map[string]any, []any
	Outputs     map[string]any
	ReturnValue any      // of the same types; nil if the answer has none, or no binding takes it
	Logs        []string // what the answer asked the host to log
}

// invoke sends a payload to the handler and judges its answer.
func (h *Host) invoke(ctx context.Context, f *function, p payload) (Invocation, error) {
	invocation := Invocation{ID: newGUID()}
	err := h.timed(ctx, f, invocation.ID, func(ctx context.Context) error {
		answer, err := h.send(ctx, f, invocation.ID, p)
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

func (h *Host) send(ctx context.Context, f *function, id string, p payload) (answer, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return answer{}, fmt.Errorf("encoding the payload: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.worker.url("/"+f.name), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.ContentLength = -1 // the host sends it in chunks, seen on host 4.1037
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	signRequest(request.Header, id)
	response, err := h.worker.client.Do(request)
	if err != nil {
		return answer{}, h.unanswered(err)
	}
	defer response.Body.Close()
	return readAnswer(response)
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

// killDelay is what the host gives to a function beyond functionTimeout before it kills the
// handler (the SDK's grace period, seen on host 4.1037).
const killDelay = 2 * time.Second

// timed runs an invocation under functionTimeout and logs it as the host does. At the timeout the
// invocation has failed, and unless the handler answers within the kill delay the host kills it,
// with everything else it is doing, and starts another
// (WebJobs.Script.WebHost/WebScriptHostExceptionHandler.cs:28-65).
func (h *Host) timed(ctx context.Context, f *function, id string, run func(context.Context) error) error {
	h.inFlight.Add(1)
	defer h.inFlight.Add(-1)
	h.log.add(Information, CategoryHost, "Executing 'Functions.%s' (Id=%s)", f.name, id)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.background, cancel)()
	// The waits are registered on the clock before anybody can see the invocation: a test moves the
	// clock as soon as the handler has it, or the log has its failure.
	var timeout <-chan time.Time
	if h.app.functionTimeout != 0 {
		reached, stop := h.clock.after(h.app.functionTimeout)
		defer stop()
		timeout = reached
	}
	done := make(chan error, 1)
	go func() {
		err := run(ctx)
		if errors.Is(err, errNothing) {
			<-ctx.Done()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return h.ended(f, id, err)
	case <-timeout:
	}
	killAt, stop := h.clock.after(h.killDelay)
	defer stop()
	err := h.ended(f, id, fmt.Errorf("timeout value of %s was exceeded", h.app.functionTimeout))
	select {
	case <-done:
	case <-killAt:
		h.log.add(Warning, CategoryHost, "A function timeout has occurred. Restarting worker process executing invocationId '%s'.", id)
		h.worker.kill(true)
		cancel()
		if nothing := <-done; errors.Is(nothing, errNothing) {
			err = fmt.Errorf("%w: %w", err, nothing)
		}
	}
	return err
}

// ended logs the end of an invocation.
func (h *Host) ended(f *function, id string, err error) error {
	if err != nil {
		err = fmt.Errorf("executing function %q: %w", f.name, err)
		h.log.add(Error, CategoryHost, "Executed 'Functions.%s' (Failed, Id=%s): %v", f.name, id, err)
		return err
	}
	h.log.add(Information, CategoryHost, "Executed 'Functions.%s' (Succeeded, Id=%s)", f.name, id)
	return nil
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
	return h.invoke(ctx, f, f.messagePayload(h.clock.Now(), m))
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
