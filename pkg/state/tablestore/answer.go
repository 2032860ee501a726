package tablestore

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// answer is an answer of the service that is an error.
type answer struct {
	status  int
	code    string // of the Table service; "" where it gave none
	request string // id by which Azure support finds the request
}

// answerOf returns the answer that err was made from; false where there was none.
func answerOf(err error) (answer, bool) {
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) {
		return answer{}, false
	}
	got := answer{status: refusal.StatusCode, code: refusal.ErrorCode}
	if refusal.RawResponse == nil {
		return got, true
	}
	got.request = refusal.RawResponse.Header.Get("x-ms-request-id")
	if got.status == http.StatusAccepted { // the status of a failed transaction's answer as a whole
		body, _ := runtime.Payload(refusal.RawResponse)
		if failed := failedAction.FindSubmatch(body); failed != nil {
			got.status, _ = strconv.Atoi(string(failed[1])) // of three digits
			got.code = string(failed[2])
		}
	}
	return got, true
}

// failedAction finds the status and, if there is one, the code of a failed transaction. They are in an HTTP
// response within two nested multipart messages, which the SDK reads without telling.
var failedAction = regexp.MustCompile(`HTTP/1\.1 (\d{3})(?s:.*?"code":"(\w+)")?`)

// conflict reports whether a commit was refused because of what is stored: a row has another ETag,
// does not exist, or exists already.
func (a answer) conflict() bool {
	switch aztables.TableErrorCode(a.code) {
	case aztables.EntityAlreadyExists, aztables.UpdateConditionNotSatisfied:
		return true
	}
	return a.status == http.StatusPreconditionFailed || a.missingRow()
}

// missingRow reports whether the table exists and the row does not.
func (a answer) missingRow() bool {
	switch aztables.TableErrorCode(a.code) {
	case aztables.ResourceNotFound, aztables.EntityNotFound:
		return true
	}
	return false
}

// missingTable reports whether the table does not exist.
func (a answer) missingTable() bool {
	return aztables.TableErrorCode(a.code) == aztables.TableNotFound
}
