package cosmosfake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is the result of a handler.
type reply struct {
	status int
	header map[string]string
	body   []byte
	charge float64 // request units
}

func (r *reply) set(name, value string) {
	if r.header == nil {
		r.header = map[string]string{}
	}
	r.header[name] = value
}

// setHeader writes a name as it stands. The service's own are in lower case
// (azure-cosmos-dotnet-v3, HttpConstants.HttpHeaders), and there are clients that look them up as
// they were sent; http.Header.Set would make X-Ms-Continuation of x-ms-continuation.
func setHeader(h http.Header, name, value string) { h[name] = []string{value} }

// wireName is the form in which the service sends a header that a control function named in any
// case.
func wireName(name string) string {
	canonical := http.CanonicalHeaderKey(name)
	if strings.HasPrefix(canonical, "X-Ms-") || canonical == "Etag" || canonical == "Lsn" {
		return strings.ToLower(name)
	}
	return canonical
}

// jsonReply answers with a value that always has a JSON form.
func jsonReply(status int, v any, charge float64) *reply {
	body, err := json.Marshal(v)
	if err != nil {
		return (&fault{status: http.StatusInternalServerError, message: "the answer has no JSON form"}).reply("")
	}
	return &reply{status: status, body: body, charge: charge}
}

// listReply answers with a list on one page.
func listReply(rid, name string, items []any, charge float64) *reply {
	r := jsonReply(http.StatusOK, map[string]any{"_rid": rid, name: items, "_count": len(items)}, charge)
	r.setCount(len(items))
	return r
}

// setCount tells how many items an answer lists. Every list has it, also one of nothing and a 304:
// azure-cosmos-dotnet-v3 reads it with int.Parse (Headers.ItemCount, ChangeFeedPage) and throws
// where it is missing.
func (r *reply) setCount(n int) { r.set("x-ms-item-count", strconv.Itoa(n)) }

// Substatus codes of the service, together with the status they come with.
const (
	substatusKeyMismatch         = 1001 // 400
	substatusNeedsPlan           = 1004 // 400
	substatusOtherContainer      = 1024 // 400
	substatusSessionNotReached   = 1002 // 404
	substatusRangeGone           = 1002 // 410
	substatusCompletingSplit     = 1007 // 410
	substatusWriteForbidden      = 3    // 403
	substatusIdentityForbidden   = 5300 // 403
	substatusMetadataForbidden   = 5301 // 403
	substatusDataForbidden       = 5302 // 403
	substatusNameStale           = 1000 // 410
	substatusCompletingMigration = 1008 // 410
	substatusOverBudget          = 3200 // 429
)

// fault is an answer that reports a failure.
type fault struct {
	status, substatus int
	message           string
	plain             bool // the message stands as it is, as those of the gateway's own checks do
	retryAfter        time.Duration
	extra             string  // additionalErrorInfo: the query plan of a query that needs one
	charge            float64 // request units
}

func (f *fault) Error() string { return f.message }

func badRequest(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func notFound() *fault {
	return &fault{status: http.StatusNotFound, message: "Resource Not Found. The resource of this name or id does not exist.", charge: 1}
}

func conflict() *fault {
	return &fault{status: http.StatusConflict, message: "Entity with the specified id already exists in the system.", charge: 1}
}

func preconditionFailed() *fault {
	return &fault{status: http.StatusPreconditionFailed, message: "One of the specified pre-condition is not met.", charge: 1}
}

func rangeGone(id string) *fault {
	return &fault{status: http.StatusGone, substatus: substatusRangeGone, message: fmt.Sprintf("The requested partition key range %s is gone.", id)}
}

// code is the word for a status in the body of an error.
func (f *fault) code() string {
	switch f.status {
	case http.StatusRequestEntityTooLarge:
		return "RequestEntityTooLarge"
	case http.StatusPreconditionFailed:
		return "PreconditionFailed"
	default:
		return strings.ReplaceAll(http.StatusText(f.status), " ", "")
	}
}

func (f *fault) reply(activity string) *reply {
	message := f.message
	if !f.plain && !strings.HasPrefix(message, "Message: ") {
		quoted, _ := json.Marshal(message) // a string always has a JSON form
		message = fmt.Sprintf(`Message: {"Errors":[%s]}`, quoted)
	}
	r := jsonReply(f.status, struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Extra   string `json:"additionalErrorInfo,omitempty"`
	}{f.code(), message + "\r\nActivityId: " + activity + ", Microsoft.Azure.Documents.Common/2.14.0", f.extra}, f.charge)
	if f.substatus != 0 {
		r.set("x-ms-substatus", strconv.Itoa(f.substatus))
	}
	if f.retryAfter > 0 {
		r.set("x-ms-retry-after-ms", strconv.FormatInt(f.retryAfter.Milliseconds()+1, 10))
	}
	return r
}
