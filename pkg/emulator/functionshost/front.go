package functionshost

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// handler is the host's front: the functions' routes, /admin, and a page that
// says the host is up.
func (h *Host) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /admin/functions/{name}", h.serveAdmin)
	mux.HandleFunc("/", h.serveFunction)
	return mux
}

func (h *Host) serveFunction(w http.ResponseWriter, request *http.Request) {
	r, parameters := h.route(request)
	switch {
	case r == nil && request.URL.Path == "/":
		fmt.Fprintln(w, "The function app is up and running.")
	case r == nil:
		w.WriteHeader(http.StatusNotFound)
	case !h.authorized(request, r.function, r.level):
		w.WriteHeader(http.StatusUnauthorized)
	case r.function.disabled && !h.authorized(request, r.function, "admin"):
		w.WriteHeader(http.StatusNotFound)
	case h.app.forward && r.function.isHTTPOnly():
		h.forward(w, request, r.function)
	default:
		h.wrap(w, request, r.function, parameters)
	}
}

// authorized compares the key of a request with those of the level. The header
// wins over the query, also where it is wrong.
func (h *Host) authorized(request *http.Request, f *function, level string) bool {
	key := request.URL.Query().Get("code")
	if header, ok := request.Header["X-Functions-Key"]; ok {
		key = header[0]
	}
	switch level {
	case "anonymous":
		return true
	case "function":
		return key == h.keys[f.name] || key == h.master
	}
	return key == h.master
}

// hopByHop are the headers that concern one connection only.
func hopByHop(name string) bool {
	return slices.Contains([]string{
		"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}, name)
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		if !hopByHop(name) {
			to[name] = slices.Clone(values)
		}
	}
}

// forward sends the original request to the handler, and its answer back as it
// is, whatever its status.
func (h *Host) forward(w http.ResponseWriter, request *http.Request, f *function) {
	id := newGUID()
	err := h.timed(request.Context(), f, id, func(ctx context.Context) error {
		forwarded, err := http.NewRequestWithContext(ctx, request.Method, h.worker.url(request.URL.RequestURI()), request.Body)
		if err != nil {
			return err
		}
		copyHeader(forwarded.Header, request.Header)
		forwarded.Host = request.Host
		forwarded.ContentLength = request.ContentLength
		signRequest(forwarded.Header, id)
		response, err := h.worker.client.Do(forwarded)
		if err != nil {
			return h.unanswered(err)
		}
		defer response.Body.Close()
		body, err := readAll(response.Body)
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		copyHeader(w.Header(), response.Header)
		w.WriteHeader(response.StatusCode)
		_, _ = w.Write(body) // the client may have gone
		return nil
	})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// serveAdmin runs a function by hand. The host answers before the function has
// run.
func (h *Host) serveAdmin(w http.ResponseWriter, request *http.Request) {
	f := h.find(request.PathValue("name"))
	switch {
	case !h.authorized(request, nil, "admin"):
		w.WriteHeader(http.StatusUnauthorized)
		return
	case f == nil:
		w.WriteHeader(http.StatusNotFound)
		return
	case !strings.HasPrefix(request.Header.Get("Content-Type"), "application/json"):
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	var body struct{ Input string }
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(w, `the body must be {"input":""}`, http.StatusBadRequest)
		return
	}
	var p payload
	switch {
	case f.timer != nil:
		p = f.timerPayload(h.now(), Tick{})
	case f.trigger.is("serviceBusTrigger"):
		p = f.messagePayload(h.now(), Message{Body: []byte(body.Input), DeliveryCount: 1})
	default:
		http.Error(w, "this stand-in runs no "+f.trigger.kind+" by hand", http.StatusNotImplemented)
		return
	}
	go func() { _, _ = h.invoke(h.background, f, p) }() // the log says how it ended
	w.WriteHeader(http.StatusAccepted)
}
