package functionshost

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// wrap sends the request as part of an invocation payload, and makes the
// response of the answer's outputs. A failed invocation is a 500.
func (h *Host) wrap(w http.ResponseWriter, request *http.Request, f *function, parameters map[string]any) {
	p := f.newPayload(h.clock.Now())
	wrapped, err := wrapRequest(request, parameters)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p.Data[f.trigger.name] = wrapped
	invocation, err := h.invoke(h.background, f, p)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	for _, b := range f.outputs() {
		if b.is("http") {
			writeResponse(w, invocation.Outputs[b.name])
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

func wrapRequest(request *http.Request, parameters map[string]any) (map[string]any, error) {
	query := map[string]string{}
	for name, values := range request.URL.Query() {
		query[name] = strings.Join(values, ",")
	}
	headers := map[string][]string{"Host": {request.Host}}
	for name, values := range request.Header {
		headers[name] = values
	}
	wrapped := map[string]any{
		"Url":        "http://" + request.Host + request.URL.RequestURI(),
		"Method":     request.Method,
		"Query":      query,
		"Headers":    headers,
		"Params":     parameters,
		"Identities": []any{map[string]any{"AuthenticationType": nil, "IsAuthenticated": false, "Claims": []any{}}},
	}
	// the host takes no body from a request that does not announce its length
	if request.ContentLength <= 0 {
		return wrapped, nil
	}
	body, err := readAll(request.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	media, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if media == "application/octet-stream" || strings.HasPrefix(media, "multipart/") {
		wrapped["Body"] = base64.StdEncoding.EncodeToString(body)
	} else {
		wrapped["Body"] = string(body)
	}
	return wrapped, nil
}

// writeResponse makes an HTTP response of an output: an object with body,
// status and headers, or just a body.
func writeResponse(w http.ResponseWriter, output any) {
	status, body := http.StatusOK, output
	if object, ok := output.(map[string]any); ok {
		if inner, found := member(object, "body"); found {
			body = inner
			status = statusOf(object)
			headers, _ := member(object, "headers")
			if headers, ok := headers.(map[string]any); ok {
				for name, value := range headers {
					w.Header().Set(name, fmt.Sprint(value))
				}
			}
		}
	}
	var raw []byte
	contentType := "text/plain; charset=utf-8"
	switch body := body.(type) {
	case nil:
	case string:
		raw = []byte(body)
	case []byte:
		raw, contentType = body, "application/octet-stream"
	default:
		raw, _ = json.Marshal(body) // it came out of JSON
		contentType = "application/json; charset=utf-8"
	}
	if w.Header().Get("Content-Type") == "" && len(raw) > 0 {
		w.Header().Set("Content-Type", contentType)
	}
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client may have gone
}

// member finds a field in any case.
func member(object map[string]any, name string) (any, bool) {
	for key, value := range object {
		if strings.EqualFold(key, name) {
			return value, true
		}
	}
	return nil, false
}

// statusOf is the statusCode or status of a response, as a number or as text.
func statusOf(object map[string]any) int {
	for _, name := range []string{"statusCode", "status"} {
		switch value, _ := member(object, name); value := value.(type) {
		case float64:
			return int(value)
		case string:
			if status, err := strconv.Atoi(value); err == nil {
				return status
			}
		}
	}
	return http.StatusOK
}
