package tablestore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/refusal"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// batch is the answer of the service to a transaction, with the status of its first action.
func batch(status int, body string) *http.Response {
	text := "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_2\r\n\r\n" +
		"--changesetresponse_2\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" +
		fmt.Sprintf("HTTP/1.1 %d %s\r\n", status, http.StatusText(status)) +
		"X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nDataServiceVersion: 3.0;\r\n" +
		"Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\r\n" +
		body + "\r\n--changesetresponse_2--\r\n--batchresponse_1--\r\n"
	return response(http.StatusAccepted, text, "Content-Type", "multipart/mixed; boundary=batchresponse_1", "x-ms-request-id", "abc-123")
}

// accepted is the answer of the service to a transaction of one action.
func accepted() *http.Response { return batch(http.StatusNoContent, "") }

func odata(code string) string {
	return `{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":"0:No.\nRequestId:abc-123"}}}`
}

func TestEveryFormOfConflictIsOne(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() *http.Response{
		"the row is there, in a transaction": func() *http.Response { return batch(http.StatusConflict, odata("EntityAlreadyExists")) },
		"the row has changed, in a transaction": func() *http.Response {
			return batch(http.StatusPreconditionFailed, odata("UpdateConditionNotSatisfied"))
		},
		"the row is gone, in a transaction":         func() *http.Response { return batch(http.StatusNotFound, odata("ResourceNotFound")) },
		"the status alone, in a transaction":        func() *http.Response { return batch(http.StatusPreconditionFailed, "") },
		"the row is there, without a multipart":     func() *http.Response { return response(http.StatusAccepted, odata("EntityAlreadyExists")) },
		"the row is there, as a status of its own":  func() *http.Response { return refusing(http.StatusConflict, "EntityAlreadyExists") },
		"the row has changed, as its own status":    func() *http.Response { return refusing(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied") },
		"the precondition failed, without its code": func() *http.Response { return response(http.StatusPreconditionFailed, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openThrough(t, keyed, func(*http.Request) (*http.Response, error) { return answer(), nil })
			err := store.Commit(t.Context(), `W/"1"`, state.State{Processor: "orders"}, nil)
			if !errors.Is(err, state.ErrConflict) {
				t.Errorf("got %v, want ErrConflict", err)
			}
		})
	}
}

func TestWhatIsNoConflictIsSaidToBeSomethingElse(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func() *http.Response
		want   string
	}{
		"no such table":        {func() *http.Response { return batch(http.StatusNotFound, odata("TableNotFound")) }, "the table is gone"},
		"too big":              {func() *http.Response { return batch(http.StatusBadRequest, odata("EntityTooLarge")) }, "too big"},
		"too big as a whole":   {func() *http.Response { return refusing(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge") }, "too big"},
		"something new":        {func() *http.Response { return batch(http.StatusTeapot, odata("Novelty")) }, "418 Novelty, request abc-123"},
		"an empty answer":      {func() *http.Response { return response(http.StatusAccepted, "") }, "proxy"},
		"a page of a proxy":    {func() *http.Response { return response(http.StatusAccepted, "<html>\n<p>Welcome</p>") }, "EOF"},
		"a refusal of a proxy": {func() *http.Response { return response(http.StatusProxyAuthRequired, "<html>") }, "407"},
		"half of an answer": {func() *http.Response {
			return response(http.StatusAccepted, "--b\r\nContent-Type: x\r\n\r\n--c\r\n\r\nHTTP/1.1 ")
		}, "proxy"},
		"half of a batch's JSON": {func() *http.Response { return batch(http.StatusBadRequest, `{"odata.error":{"code":"Inv`) }, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openThrough(t, keyed, func(*http.Request) (*http.Response, error) { return tt.answer(), nil })
			err := store.Commit(t.Context(), `W/"1"`, state.State{Processor: "orders"}, nil)
			if err == nil || errors.Is(err, state.ErrConflict) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q that is no conflict", err, tt.want)
			}
		})
	}
}

func TestAnErrorSaysWhatToDoAndNoSecret(t *testing.T) {
	t.Parallel()
	const signed = "TableEndpoint=https://shop.table.core.windows.net;SharedAccessSignature=sv=1&sig=" + secretSignature
	refused := func(status int, code string) transport {
		return func(*http.Request) (*http.Response, error) { return refusing(status, code), nil }
	}
	for name, tt := range map[string]struct {
		connection string
		answer     transport
		want       []string
	}{
		"wrong key":               {keyed, refused(403, "AuthenticationFailed"), []string{"account key", "copy it again", "clock", "403 AuthenticationFailed", "request abc-123"}},
		"keys are switched off":   {keyed, refused(403, "KeyBasedAuthenticationNotPermitted"), []string{"identity", "Storage Table Data Contributor"}},
		"expired signature":       {signed, refused(403, "AuthenticationFailed"), []string{"shared access signature", "not expired"}},
		"signature lacks a right": {signed, refused(403, "AuthorizationPermissionMismatch"), []string{"shared access signature", "read, add, update, delete"}},
		"network rules":           {keyed, refused(403, "AuthorizationFailure"), []string{"network rules"}},
		"no such thing":           {keyed, refused(404, "InvalidUri"), []string{"check the names"}},
		"unknown host": {signed, func(request *http.Request) (*http.Response, error) {
			return nil, broken(request, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "shop.table.core.windows.net", IsNotFound: true}})
		}, []string{"no answer from shop.table.core.windows.net", "private endpoint", "no such host"}},
		"time ends between two tries": {signed, func(*http.Request) (*http.Response, error) {
			return nil, context.DeadlineExceeded
		}, []string{"no answer from shop.table.core.windows.net", "deadline exceeded"}},
		"nothing listens": {signed, func(request *http.Request) (*http.Response, error) {
			return nil, broken(request, &net.OpError{Op: "dial", Err: errors.New("connection refused")})
		}, []string{"no answer from shop.table.core.windows.net", "check its name", "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openThrough(t, tt.connection, tt.answer)
			_, err := storetest.Load(t.Context(), store, "orders")
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range append(tt.want, "feedscale", "orders") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is missing in: %v", part, err)
				}
			}
			if showsSecret(err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error shows a secret, or is more than one line: %v", err)
			}
		})
	}
}

func TestAnIdentityIsToldItsRole(t *testing.T) {
	t.Parallel()
	store, err := tablestore.OpenWithIdentity("https://shop.table.core.windows.net", "feedscale", make(identity, 1),
		through(func(*http.Request) (*http.Response, error) {
			return refusing(403, "AuthorizationPermissionMismatch"), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = storetest.Load(t.Context(), store, "orders")
	if err == nil || !strings.Contains(err.Error(), "Storage Table Data Contributor") {
		t.Errorf("got %v, want an error that names the role", err)
	}
	const command = "az role assignment create --assignee-object-id OBJECT_ID --role 'Storage Table Data Contributor' " +
		"--scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.Storage/storageAccounts/shop"
	if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Command != command {
		t.Errorf("got %+v, want %s", refused, command)
	}
}

func TestAServiceThatDoesNotAnswerIsLeftAtTheDeadline(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{}, 1)
	const signed = "TableEndpoint=https://shop.table.core.windows.net;SharedAccessSignature=sv=1&sig=" + secretSignature
	store := openThrough(t, signed, func(request *http.Request) (*http.Response, error) {
		waiting <- struct{}{}
		<-request.Context().Done()
		return nil, broken(request, request.Context().Err())
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-waiting
		cancel()
	}()
	_, err := storetest.Load(ctx, store, "orders")
	if !errors.Is(err, context.Canceled) || showsSecret(err) {
		t.Errorf("got %v, want context.Canceled without the signature", err)
	}
}

// broken is an error of net/http about a connection, which contains the URL.
func broken(request *http.Request, reason error) error {
	return &url.Error{Op: "Get", URL: request.URL.String(), Err: reason}
}
