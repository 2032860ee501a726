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

// answer is a refusal of the service.
type answer struct {
	status  int
	code    string // of the Table service; "" where it gave none
	request string // id under which Azure's support finds the request
}

// answerOf returns the refusal that err stands for; false where it is none.
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
	if got.status == http.StatusAccepted { // what a failed transaction is answered with
		if body, err := runtime.Payload(refusal.RawResponse); err == nil {
			got.status, got.code = readBatch(body, got)
		}
	}
	return got, true
}

// readBatch finds the one answer of a failed transaction: an HTTP response in a
// multipart message in a multipart message.
func readBatch(body []byte, otherwise answer) (status int, code string) {
	start := bytes.Index(body, []byte("HTTP/1.1 "))
	if start < 0 {
		return otherwise.status, otherwise.code
	}
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(body[start:])), nil)
	if err != nil {
		return otherwise.status, otherwise.code
	}
	defer func() { _ = response.Body.Close() }() // it is in memory
	var refusal struct {
		Error struct {
			Code string `json:"code"`
		} `json:"odata.error"`
	}
	// What follows the JSON is the end of the multipart message. Without a
	// code, the status says enough.
	_ = json.NewDecoder(response.Body).Decode(&refusal)
	return response.StatusCode, refusal.Error.Code
}

// conflict tells whether a commit was refused because of what is stored: a row
// that is not the version's, not there, or there already.
func (a answer) conflict() bool {
	switch aztables.TableErrorCode(a.code) {
	case aztables.EntityAlreadyExists, aztables.UpdateConditionNotSatisfied:
		return true
	}
	return a.status == http.StatusPreconditionFailed || a.missingRow()
}

// missingRow tells whether the table is there and the row is not.
func (a answer) missingRow() bool {
	switch aztables.TableErrorCode(a.code) {
	case aztables.ResourceNotFound, aztables.EntityNotFound:
		return true
	}
	return false
}

// missingTable tells whether there is no table yet.
func (a answer) missingTable() bool {
	return aztables.TableErrorCode(a.code) == aztables.TableNotFound
}
