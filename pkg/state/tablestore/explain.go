package tablestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// role is the Azure role that an identity needs on the storage account or the table.
const role = "Storage Table Data Contributor"

// signIn describes, for messages, how the store signs in.
type signIn struct {
	name   string // as in "the account key"
	advice string // what to do where it is refused or lacks a permission
}

// explain turns an error into a message that says what to do. It leaves out the URL, which may
// contain a signature, and the service's text, which may quote one.
func (s *Store) explain(err error) error {
	if refused, ok := answerOf(err); ok {
		return errors.New(s.refusal(refused))
	}
	var request *url.Error
	if !errors.As(err, &request) {
		return err
	}
	host := s.host
	if u, err := url.Parse(request.URL); err == nil {
		host = u.Host // which may be that of the identity's authority
	}
	reason := request.Err
	var unknown *net.DNSError
	switch {
	case errors.Is(reason, context.Canceled), errors.Is(reason, context.DeadlineExceeded):
		return fmt.Errorf("no answer from %s in time: %w", host, reason)
	case errors.As(reason, &unknown):
		return fmt.Errorf("the host %s cannot be found: check the name of the storage account, and the DNS of its private endpoint if it has one: %w", host, reason)
	}
	return fmt.Errorf("%s cannot be reached: check that it runs, and what is between: %w", host, reason)
}

// refusal returns a sentence that says what the service refused and what to do.
func (s *Store) refusal(a answer) string {
	sentence := s.meaning(a)
	if a.code == "" {
		sentence = fmt.Sprintf("%s (%d", sentence, a.status)
	} else {
		sentence = fmt.Sprintf("%s (%d %s", sentence, a.status, a.code)
	}
	if a.request != "" {
		sentence += ", request " + a.request
	}
	return sentence + ")"
}

func (s *Store) meaning(a answer) string {
	switch aztables.TableErrorCode(a.code) {
	case "KeyBasedAuthenticationNotPermitted":
		return s.host + " takes no account keys: give the table as https://ACCOUNT.table.core.windows.net/TABLE, with an identity that has the role " + role
	case "AuthenticationFailed", "InvalidAuthenticationInfo":
		return fmt.Sprintf("%s does not accept the %s: %s, and check the clock of this machine", s.host, s.signIn.name, s.signIn.advice)
	case "AuthorizationFailure":
		return fmt.Sprintf("%s does not let the %s do this: %s; or let this machine through the account's network rules", s.host, s.signIn.name, s.signIn.advice)
	case aztables.TableNotFound:
		return "the table is gone: the next tick creates it"
	case aztables.TableBeingDeleted:
		return "the table is still being deleted: wait a minute, or name another one"
	case "RequestBodyTooLarge", aztables.EntityTooLarge, aztables.PropertyValueTooLarge:
		return "the state is too big for a table: keep it in a file, with bolt:PATH"
	}
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("%s does not let the %s do this: %s", s.host, s.signIn.name, s.signIn.advice)
	case http.StatusNotFound:
		return s.host + " has no such table: check the names of the account and of the table"
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return s.host + " is busy or out of order: the next tick tries again"
	}
	return s.host + " refuses the request"
}
