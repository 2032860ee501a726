package tablestore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// role is the Azure role that an identity needs on the storage account or the table.
const role = "Storage Table Data Contributor"

// signIn describes, for messages, how the store signs in.
type signIn struct {
	name    string // as in "the account key"
	advice  string // what to do if it is refused or lacks a permission
	command string // of the Azure CLI, for that
}

// answer is an error answer of the service; zero if there was none.
type answer struct {
	status  int    // of HTTP
	code    string // of the Table service; "" if it gave none
	request string // id by which Azure support finds the request; "" if there is none
}

// answerOf returns the answer that an error was made from.
func answerOf(err error) answer {
	from, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return answer{}
	}
	a := answer{from.StatusCode, from.ErrorCode, from.RawResponse.Header.Get("x-ms-request-id")}
	if a.status == http.StatusAccepted { // the status of a failed transaction's answer as a whole
		body, _ := runtime.Payload(from.RawResponse)
		if failed := failedAction.FindSubmatch(body); failed != nil {
			a.status, _ = strconv.Atoi(string(failed[1])) // of three digits
			a.code = string(failed[2])
		}
	}
	return a
}

// failedAction finds the status of a failed transaction, and its code if there is one. They are in an HTTP
// response within two nested multipart messages, which the SDK does not pass on.
var failedAction = regexp.MustCompile(`HTTP/1\.1 (\d{3})(?s:.*?"code":"(\w+)")?`)

// is reports whether the service answered with one of some codes.
func (a answer) is(codes ...aztables.TableErrorCode) bool {
	return slices.Contains(codes, aztables.TableErrorCode(a.code))
}

// isMissingRow reports whether the table exists and the row does not.
func (a answer) isMissingRow() bool {
	return a.is(aztables.ResourceNotFound, aztables.EntityNotFound)
}

// isConflict reports whether a commit was refused because of what is stored: a row has another ETag,
// does not exist, or exists already.
func (a answer) isConflict() bool {
	return a.status == http.StatusPreconditionFailed || a.isMissingRow() || a.is(aztables.EntityAlreadyExists, aztables.UpdateConditionNotSatisfied)
}

// refusal returns the error of an answer. It leaves out the text of the service, which may contain a signature.
func (s *Store) refusal(a answer) *refusal.Error {
	r := &refusal.Error{Kind: refusal.Kind(a.code), Status: a.status, Of: s.String(), Effect: changefeed.Unread}
	r.Given = strings.TrimSpace(fmt.Sprintf("%d %s", a.status, a.code))
	if a.request != "" {
		r.Given += ", request " + a.request
	}
	r.Meaning, r.Remedy, r.Command = s.meaning(a)
	return r
}

// String names the table for people.
func (s *Store) String() string { return "state table " + s.table + " at " + s.host }

// explain turns an error into one that names the table and says what to do: a *refusal.Error if the service
// answered. It leaves out the URL, which may contain a signature.
func (s *Store) explain(err error) error {
	if a := answerOf(err); a.status != 0 {
		return s.refusal(a)
	}
	request, ok := errors.AsType[*url.Error](err)
	switch {
	case errors.As(err, new(*refusal.Error)): // of createTable
		return err
	case !ok && errors.Is(err, context.DeadlineExceeded): // it ended between two tries
		request = &url.Error{Err: err}
	case !ok:
		return fmt.Errorf("%s: %w", s, err)
	}
	host := s.host
	if u, err := url.Parse(request.URL); err == nil && u.Host != "" {
		host = u.Host // which may be that of the identity's authority
	}
	err = fmt.Errorf("%s: no answer from %s: check its name, the DNS of its private endpoint if it has one, and the network between: %w", s, host, request.Err)
	if errors.Is(err, context.Canceled) {
		return err
	}
	return refusal.Unanswered(err, changefeed.Cause{Of: s.String(), Says: "does not answer", Effect: changefeed.Unread,
		Remedy: "run feedscale check: it tries the name, the connection and the permission"})
}

// meaning says what an answer means, and what to do, with a command for that if there is one.
func (s *Store) meaning(a answer) (meaning, remedy, command string) {
	denied, command := "it does not let the "+s.signIn.name+" do this", s.signIn.command
	switch {
	case a.is("KeyBasedAuthenticationNotPermitted"):
		return "it takes no account keys", "set FEEDSCALE_STATE=https://" + s.host + "/" + s.table + ", with an identity that has the role " + role, ""
	case a.is("AuthenticationFailed", "InvalidAuthenticationInfo"):
		return "it does not accept the " + s.signIn.name, s.signIn.advice + ", and check the clock of this machine", command
	case a.is("AuthorizationFailure"): // Azurite says so of a wrong key, too
		if azurecli.Table.Hosts(s.host) {
			command = azurecli.InGroup("storage account network-rule add", "--account-name", azurecli.Table.Resource(s.host), "--ip-address", azurecli.Address)
		}
		return denied, s.signIn.advice + "; or let this machine through the account's network rules", command
	case a.is(aztables.TableNotFound):
		return "the table is gone", "the next tick creates it", ""
	case a.is(aztables.TableBeingDeleted):
		return "the table is still being deleted", "wait a minute, or name another one", ""
	case a.is("RequestBodyTooLarge", aztables.EntityTooLarge, aztables.PropertyValueTooLarge):
		return "the state is too big for a table", "keep it in a file, with bolt:PATH", ""
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return denied, s.signIn.advice, command
	case a.status == http.StatusNotFound:
		return "there is no such table", "check the names of the account and of the table", ""
	case a.status == http.StatusTooManyRequests, a.status >= http.StatusInternalServerError:
		return "it is busy or out of order", "the next tick tries again", ""
	}
	return "it refuses the request", "the next tick tries again; https://learn.microsoft.com/rest/api/storageservices/table-service-error-codes lists the codes", ""
}
