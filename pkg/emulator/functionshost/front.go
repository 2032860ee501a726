package functionshost

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// serve is the host's front: /admin, the functions' routes, and a page that says the host is up.
func (h *Host) serve(w http.ResponseWriter, request *http.Request) {
	path := strings.TrimSuffix(strings.ToLower(request.URL.Path), "/")
	switch name, isFunction := strings.CutPrefix(path, "/admin/functions/"); {
	case path == "/admin/host/ping" && (request.Method == http.MethodGet || request.Method == http.MethodPost):
		// No key, and no question to the handler
		// (WebJobs.Script.WebHost/Controllers/HostController.cs, Ping).
	case isFunction && request.Method == http.MethodPost:
		h.serveAdmin(w, request, name)
	default:
		h.serveFunction(w, request)
	}
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

// authorized compares the key of a request with those of the level.
func (h *Host) authorized(request *http.Request, f *function, level string) bool {
	key := requestKey(request)
	switch level {
	case "anonymous":
		return true
	case "function":
		return key == h.keys[f.name] || key == h.master
	}
	return key == h.master
}

// requestKey is the key of a request. The header wins over the query, also where it is wrong.
func requestKey(request *http.Request) string {
	if header, ok := request.Header["X-Functions-Key"]; ok {
		return header[0]
	}
	return request.URL.Query().Get("code")
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

// forward sends the original request to the handler, and its answer back as it is, whatever its
// status. The host rewrites the query, and forwards only a body whose length is announced, with
// its headers (Extensions/HttpRequestExtensions.cs, ToHttpRequestMessage). A client that goes does
// not end the request to the handler (Workers/Http/DefaultHttpWorkerService.cs:128).
func (h *Host) forward(w http.ResponseWriter, request *http.Request, f *function) {
	var (
		id       = newGUID()
		response *http.Response
		answer   []byte
	)
	err := h.timed(h.background, f, id, func(ctx context.Context) error {
		forwarded, err := http.NewRequestWithContext(ctx, request.Method, h.worker.url(request.URL.EscapedPath()), nil)
		if err != nil {
			return err
		}
		forwarded.URL.RawQuery = rewriteQuery(request.URL.RawQuery)
		copyHeader(forwarded.Header, request.Header)
		if request.ContentLength > 0 {
			forwarded.Body, forwarded.ContentLength = request.Body, request.ContentLength
		} else {
			maps.DeleteFunc(forwarded.Header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Content-") })
		}
		forwarded.Host = request.Host
		signRequest(forwarded.Header, id)
		response, err = h.worker.client.Do(forwarded)
		if err != nil {
			return h.unanswered(err)
		}
		defer response.Body.Close()
		if answer, err = readAll(response.Body); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		return nil
	})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	copyHeader(w.Header(), response.Header)
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(answer) // the client may have gone
}

// serveAdmin runs a function by hand. The host answers before the function has run. A key that is
// not the master key, but one of the app's, is forbidden rather than unknown (seen on host 4.1037).
func (h *Host) serveAdmin(w http.ResponseWriter, request *http.Request, name string) {
	f := h.find(name)
	switch key := requestKey(request); {
	case key != h.master && slices.Contains(slices.Collect(maps.Values(h.keys)), key):
		w.WriteHeader(http.StatusForbidden)
		return
	case key != h.master:
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
		p = f.timerPayload(h.clock.Now(), Tick{})
	case f.trigger.is("serviceBusTrigger"):
		p = f.messagePayload(h.clock.Now(), Message{Body: []byte(body.Input), DeliveryCount: 1})
	default:
		http.Error(w, "this stand-in runs no "+f.trigger.kind+" by hand", http.StatusNotImplemented)
		return
	}
	go func() { _, _ = h.invoke(h.background, f, p) }() // the log says how it ended
	w.WriteHeader(http.StatusAccepted)
}
