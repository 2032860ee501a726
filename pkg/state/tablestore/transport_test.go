package tablestore_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// secret is part of every key and signature of these tests.
const (
	secretKey       = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	secretSignature = "c2VjcmV0c2ln"
	keyed           = "AccountName=shop;AccountKey=" + secretKey
)

// transport answers requests in place of the network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(request *http.Request) (*http.Response, error) {
	response, err := t(request)
	if response != nil {
		response.Request = request
	}
	return response, err
}

// recorder keeps the requests made through it.
type recorder struct {
	mutex    sync.Mutex
	requests []*http.Request
}

func (r *recorder) record(next transport) transport {
	return func(request *http.Request) (*http.Response, error) {
		r.mutex.Lock()
		r.requests = append(r.requests, request)
		r.mutex.Unlock()
		return next(request)
	}
}

// asked returns the recorded requests as METHOD PATH.
func (r *recorder) asked() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var lines []string
	for _, request := range r.requests {
		lines = append(lines, request.Method+" "+request.URL.Path)
	}
	return lines
}

func response(status int, body string, headers ...string) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

// refusal is an error answer of the service.
func refusing(status int, code string) *http.Response {
	return response(status, `{"odata.error":{"code":"`+code+`","message":{"lang":"en-US","value":"no, `+secretKey+`"}}}`, "x-ms-request-id", "abc-123")
}

// rows answers a query; each row is a JSON object.
func rows(objects ...string) *http.Response {
	return response(http.StatusOK, `{"odata.metadata":"x","value":[`+strings.Join(objects, ",")+`]}`)
}

// network is the real one, as the program has it.
var network transport = bounded.NewClient().Do

func through(t transport) azcore.ClientOptions { return azcore.ClientOptions{Transport: t} }

// openThrough opens a table on a transport.
func openThrough(t *testing.T, connectionString string, next transport) *tablestore.Store {
	t.Helper()
	store, err := tablestore.OpenWithConnectionString(connectionString, "feedscale", through(next))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// showsSecret reports whether an error contains a key or a signature.
func showsSecret(err error) bool {
	return err != nil && (strings.Contains(err.Error(), secretKey) || strings.Contains(err.Error(), secretSignature))
}
