package tablestore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

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
		if body, err := runtime.Payload(refusal.RawResponse); err == nil {
			got.status, got.code = readBatch(body, got)
		}
	}
	return got, true
}

// readBatch finds the status and code of a failed transaction: they are in an HTTP response within
// two nested multipart messages.
func readBatch(body []byte, otherwise answer) (status int, code string) {
	start := bytes.Index(body, []byte("HTTP/1.1 "))
	if start < 0 {
		return otherwise.status, otherwise.code
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(body[start:])), nil)
	if err != nil {
		return otherwise.status, otherwise.code
	}
	defer func() { _ = response.Body.Close() }() // in memory, so that closing cannot fail
	var refusal struct {
		Error struct {
			Code string `json:"code"`
		} `json:"odata.error"`
	}
	// The end of the multipart message follows the JSON. Where there is no code, the status is
	// enough.
	_ = json.NewDecoder(response.Body).Decode(&refusal)
	return response.StatusCode, refusal.Error.Code
}

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
