package servicebusfake

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The management API is HTTP with ATOM feeds. The service has it on port 443, and the official
// emulator on a port of its own (https://github.com/Azure/azure-service-bus-emulator-installer,
// "Choosing the right connection string"). Here it is on the port of AMQP, which a connection
// string names: clients ask the host and port of that, the Go client always with TLS
// (sdk/messaging/azservicebus/internal/atom/entity_manager.go in
// github.com/Azure/azure-sdk-for-go), the .NET one, and the JavaScript one after 7.9.5, without it
// where the string says UseDevelopmentEmulator=true
// (https://github.com/Azure/azure-sdk-for-js/pull/32771).

// speaksHTTP tells whether the peer's first bytes are an HTTP request. AMQP begins with its name.
func (c *conn) speaksHTTP() bool {
	first, err := c.reader.Peek(4)
	if err != nil {
		return false
	}
	switch string(first) {
	case "GET ", "PUT ", "POST", "HEAD", "DELE", "PATC", "OPTI":
		return true
	}
	return false
}

// idleHTTP is how long a connection of HTTP may stand idle.
const idleHTTP = 2 * time.Minute

// serveHTTP answers requests until the connection ends.
func (c *conn) serveHTTP(logger *slog.Logger) {
	for {
		if err := c.socket.SetDeadline(time.Now().Add(idleHTTP)); err != nil {
			return
		}
		request, err := http.ReadRequest(c.reader)
		if err != nil {
			return
		}
		answer, err := c.answerHTTP(request)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		if err := answer.response(request).Write(c.socket); err != nil {
			logger.Info("an answer was not written", slog.Any("error", err))
			return
		}
		if request.Close || request.Host == "" || c.dropNext {
			return
		}
	}
}

// httpAnswer is the answer to a request to the management API.
type httpAnswer struct {
	status int
	kind   string // content type
	body   []byte
}

func (a httpAnswer) response(request *http.Request) *http.Response {
	return &http.Response{
		StatusCode: a.status, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: request.Close,
		Header:        http.Header{"Content-Type": {a.kind}, "Server": {"Microsoft-HTTPAPI/2.0"}},
		ContentLength: int64(len(a.body)), Body: io.NopCloser(bytes.NewReader(a.body)),
	}
}

// problem is an error in the service's form, such as those in
// https://github.com/kedacore/keda/issues/4656 and in internal/atom/entity_manager.go.
func (c *conn) problem(status int, format string, args ...any) httpAnswer {
	detail := fmt.Sprintf(format, args...)
	return httpAnswer{status, "application/xml; charset=utf-8", fmt.Appendf(nil, "<Error><Code>%d</Code><Detail>%s TrackingId:00000000-0000-0000-0000-000000000000_G0, SystemTracker:NoSystemTracker, Timestamp:%s</Detail></Error>",
		status, detail, c.now().UTC().Format("2006-01-02T15:04:05"))}
}

func (c *conn) answerHTTP(r *http.Request) (httpAnswer, error) {
	path := strings.Trim(r.URL.Path, "/")
	if r.Host == "" {
		// RFC 9112, 3.2
		return c.problem(http.StatusBadRequest, "Bad Request - Invalid Hostname."), nil
	}
	v, err := c.intercept(Request{Op: OpHTTP, Entity: path, Operation: r.Method})
	if err != nil {
		return httpAnswer{}, err
	}
	if v.refusal != nil {
		return c.problem(v.status, "%s", v.refusal.Description), nil
	}
	if refused := c.unauthorizedHTTP(r, path); refused != nil {
		return *refused, nil
	}
	switch {
	case r.Method != http.MethodGet:
		return c.problem(http.StatusNotImplemented, "This stand-in reads queues, topics and subscriptions; create them with methods of Server, or with `feedscale emulate`."), nil
	case strings.EqualFold(path, "$Resources/Queues"):
		return c.list(r.Host, path, "Queues", r.URL.Query(), c.server.namespace.ofKind(queueEntity)), nil
	case strings.EqualFold(path, "$Resources/Topics"):
		return c.list(r.Host, path, "Topics", r.URL.Query(), c.server.namespace.ofKind(topicEntity)), nil
	case strings.HasPrefix(path, "$"):
		return c.problem(http.StatusNotImplemented, "This stand-in knows queues, topics and subscriptions only."), nil
	}
	if answer, ok := c.ofSubscriptions(r.Host, path, r.URL.Query()); ok {
		return answer, nil
	}
	return c.getEntity(r.Host, path), nil
}

// unauthorizedHTTP checks the token of a request: a shared access signature over its URL, or a
// bearer token. The Go client sends bearer tokens without the word
// (internal/atom/per_retry_auth_policy.go).
func (c *conn) unauthorizedHTTP(r *http.Request, path string) *httpAnswer {
	refuse := func(format string, args ...any) *httpAnswer {
		answer := c.problem(http.StatusUnauthorized, format, args...)
		return &answer
	}
	token := r.Header.Get("Authorization")
	if token == "" {
		return refuse("MissingToken: The token is missing.")
	}
	o := c.server.options
	if isSAS(token) {
		sas, err := parseSAS(token)
		if err != nil {
			return refuse("MalformedToken: %s.", err)
		}
		if err := sas.check(o.KeyName, o.Key, hostOf(r.Host), strings.ToLower(path), c.now()); err != nil {
			return refuse("claim is empty or token is invalid. %s.", err)
		}
		return nil
	}
	if err := o.Token(strings.TrimPrefix(token, "Bearer ")); err != nil {
		return refuse("claim is empty or token is invalid. InvalidToken: %s.", err)
	}
	return nil
}

// withoutQuery is a signed resource without the query of the request that it was signed for: the Go
// client signs the whole URL.
func withoutQuery(resource string) string {
	if u, err := url.Parse(resource); err == nil {
		u.RawQuery = ""
		return u.String()
	}
	return resource
}
