package tablestore

import (
	"context"
	"errors"
	"fmt"
	"net"
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
)

// role is the Azure role that an identity needs on the storage account or the table.
const role = "Storage Table Data Contributor"

// signIn describes, for messages, how the store signs in.
type signIn struct {
	name    string // as in "the account key"
	advice  string // what to do if it is refused or lacks a permission
	command string // of the Azure CLI, for that
}

// Refusal is the error of a request that the service answered with an error. Its text says what to do. It
// leaves out the URL and the text of the service, which may contain a signature.
type Refusal struct {
	Status  int    // HTTP status
	Code    string // of the Table service; "" if it gave none
	Request string // id by which Azure support finds the request; "" if there is none

	table                    string // and its host
	meaning, advice, command string
}

// refusal returns the error answer of the service that err was made from, with what it means; nil if there
// was none.
func (s *Store) refusal(err error) *Refusal {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return nil
	}
	r := &Refusal{
		Status: answer.StatusCode, Code: answer.ErrorCode, table: s.table + " at " + s.host,
		Request: answer.RawResponse.Header.Get("x-ms-request-id"),
	}
	if r.Status == http.StatusAccepted { // the status of a failed transaction's answer as a whole
		body, _ := runtime.Payload(answer.RawResponse)
		if failed := failedAction.FindSubmatch(body); failed != nil {
			r.Status, _ = strconv.Atoi(string(failed[1])) // of three digits
			r.Code = string(failed[2])
		}
	}
	r.meaning, r.advice, r.command = s.meaning(r.Status, r.Code)
	return r
}

// failedAction finds the status of a failed transaction, and its code if there is one. They are in an HTTP
// response within two nested multipart messages, which the SDK does not pass on.
var failedAction = regexp.MustCompile(`HTTP/1\.1 (\d{3})(?s:.*?"code":"(\w+)")?`)

// is reports whether the service answered with one of some codes.
func (r *Refusal) is(codes ...aztables.TableErrorCode) bool {
	return r != nil && slices.Contains(codes, aztables.TableErrorCode(r.Code))
}

// isMissingRow reports whether the table exists and the row does not.
func (r *Refusal) isMissingRow() bool {
	return r.is(aztables.ResourceNotFound, aztables.EntityNotFound)
}

// isConflict reports whether a commit was refused because of what is stored: a row has another ETag,
// does not exist, or exists already.
func (r *Refusal) isConflict() bool {
	return r != nil && r.Status == http.StatusPreconditionFailed || r.isMissingRow() ||
		r.is(aztables.EntityAlreadyExists, aztables.UpdateConditionNotSatisfied)
}

// Error returns a sentence that says what the service refused and what to do.
func (r *Refusal) Error() string { return strings.TrimSuffix(r.Detail()+": "+r.advice, ": ") }

// Detail returns what the service refused.
func (r *Refusal) Detail() string {
	given := strings.TrimSpace(fmt.Sprintf("%d %s", r.Status, r.Code))
	if r.Request != "" {
		given += ", request " + r.Request
	}
	return r.meaning + " (" + given + ")"
}

// Advice returns what to do about it; "" if the next tick does it.
func (r *Refusal) Advice() string { return r.advice }

// Cause returns the table that refuses, and how.
func (r *Refusal) Cause() changefeed.Cause {
	return changefeed.Cause{
		Of: "state table " + r.table, Says: "refuses (" + strings.TrimSuffix(fmt.Sprintf("%d, %s", r.Status, r.Code), ", ") + ")",
		Effect: changefeed.Unread, Remedy: strings.TrimSuffix(r.advice+": "+r.command, ": "),
	}
}

// Command returns the command of the Azure CLI for the advice; "" if there is none.
func (r *Refusal) Command() string { return r.command }

// explain turns an error into one that says what to do: a *Refusal if the service answered. It leaves out
// the URL, which may contain a signature.
func (s *Store) explain(err error) error {
	if refused := s.refusal(err); refused != nil {
		return refused
	}
	request, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok && errors.Is(err, context.DeadlineExceeded): // it ended between two tries
		request = &url.Error{Err: err}
	case !ok:
		return err
	}
	host := s.host
	if u, err := url.Parse(request.URL); err == nil && u.Host != "" {
		host = u.Host // which may be that of the identity's authority
	}
	reason, says := request.Err, host+" cannot be reached: check that it runs, and the network between"
	switch {
	case errors.Is(reason, context.Canceled), errors.Is(reason, context.DeadlineExceeded):
		says = "no answer from " + host + " in time"
	case errors.As(reason, new(*net.DNSError)):
		says = "the host " + host + " cannot be found: check the name of the storage account, and the DNS of its private endpoint if it has one"
	}
	err = fmt.Errorf("%s: %w", says, reason)
	if errors.Is(reason, context.Canceled) {
		return err
	}
	return noAnswer{err, s.table + " at " + s.host}
}

// noAnswer is the error of a request that the table service did not answer.
type noAnswer struct {
	error
	table string
}

func (n noAnswer) Unwrap() error { return n.error }

// Cause returns the table.
func (n noAnswer) Cause() changefeed.Cause {
	return changefeed.Cause{Of: "state table " + n.table, Says: "does not answer", Effect: changefeed.Unread,
		Remedy: "run feedscale check: it tries the name, the connection and the permission"}
}

// meaning says what a refusal means, and what to do, with a command for that if there is one.
func (s *Store) meaning(status int, code string) (meaning, advice, command string) {
	denied, command := fmt.Sprintf("%s does not let the %s do this", s.host, s.signIn.name), s.signIn.command
	switch aztables.TableErrorCode(code) {
	case "KeyBasedAuthenticationNotPermitted":
		return s.host + " takes no account keys", "set FEEDSCALE_STATE=https://" + s.host + "/" + s.table + ", with an identity that has the role " + role, ""
	case "AuthenticationFailed", "InvalidAuthenticationInfo":
		return fmt.Sprintf("%s does not accept the %s", s.host, s.signIn.name), s.signIn.advice + ", and check the clock of this machine", command
	case "AuthorizationFailure": // Azurite says so of a wrong key, too
		if azurecli.Table.Hosts(s.host) {
			command = azurecli.InGroup("storage account network-rule add", "--account-name", azurecli.Table.Resource(s.host), "--ip-address", azurecli.Address)
		}
		return denied, s.signIn.advice + "; or let this machine through the account's network rules", command
	case aztables.TableNotFound:
		return "the table is gone: the next tick creates it", "", ""
	case aztables.TableBeingDeleted:
		return "the table is still being deleted", "wait a minute, or name another one", ""
	case "RequestBodyTooLarge", aztables.EntityTooLarge, aztables.PropertyValueTooLarge:
		return "the state is too big for a table", "keep it in a file, with bolt:PATH", ""
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return denied, s.signIn.advice, command
	case http.StatusNotFound:
		return s.host + " has no such table", "check the names of the account and of the table", ""
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return s.host + " is busy or out of order: the next tick tries again", "", ""
	}
	return s.host + " refuses the request", "", ""
}
