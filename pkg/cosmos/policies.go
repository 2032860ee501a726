package cosmos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// answerPolicy lets through what the service would answer, and nothing else: azcosmos takes `{}`, an empty body
// and a page that was cut short for "none". Every other answer is an error of a type of its own, since
// azcosmos would ask again after some of the statuses. It does not read the pages of a feed, which
// changefeed.ReadPage checks as they come.
//
// It also signs the request, and keeps the body for each try.
type answerPolicy struct{ signs *authorization }

func (p answerPolicy) Do(request *policy.Request) (*http.Response, error) {
	r := request.Raw()
	c := callOf(r.Context())
	p.signs.sign(r)
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, lostAnswer{err}
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	response, err := request.Next()
	if err != nil {
		return nil, lostAnswer{err}
	}
	switch status := response.StatusCode; {
	case status == http.StatusNotModified && r.Header["A-Im"] != nil,
		c.part != "" && changefeed.OutcomeOf(status, substatus(response)) == changefeed.Gone:
		return response, nil
	case status != http.StatusOK && (status != http.StatusAccepted || r.Method != http.MethodPut):
		return nil, answerError{response}
	case c.feed:
		return response, nil
	}
	body, err := runtime.Payload(response)
	if err == nil {
		c.items, err = itemsOf(r.URL.Path, body)
	}
	if err != nil {
		return nil, oddError(err.Error())
	}
	if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/docs") { // azcosmos would decode and encode each again
		response.Body = http.NoBody
	}
	return response, nil
}

// answerError is an answer that is no success.
type answerError struct{ response *http.Response }

func (e answerError) Error() string { return "the service answers " + e.response.Status }

// oddError is why an answer with a good status is none of the service's.
type oddError string

func (e oddError) Error() string { return string(e) }

// lists is where the items of a list are, by the last segment of its path.
var lists = map[string]string{"docs": "Documents", "dbs": "Databases", "colls": "DocumentCollections", "pkranges": "PartitionKeyRanges", "offers": "Offers"}

// itemsOf returns the resources of a list in the body of an answer, or what is wrong with the answer.
func itemsOf(path string, body []byte) (items []gjson.Result, err error) {
	if !json.Valid(body) {
		return nil, errors.New("it is no JSON, or it ends too early")
	}
	answer := gjson.ParseBytes(body)
	kind, _, isList := resourceOf(path)
	if !isList {
		if answer.Get("_rid").Str == "" {
			return nil, errors.New("it has no _rid: is that endpoint a Cosmos DB account?")
		}
		return nil, nil
	}
	list, count := answer.Get(lists[kind]), answer.Get("_count")
	if !list.IsArray() {
		return nil, errors.New("it has no " + lists[kind])
	}
	if items = list.Array(); count.Type == gjson.Number && int(count.Int()) != len(items) {
		return nil, fmt.Errorf("its _count is %s and it has %d %s", count.Raw, len(items), lists[kind])
	}
	for _, item := range items {
		if kind == "offers" && (item.Get("_self").Str == "" || !item.Get("content").IsObject()) { // without a content azcosmos panics
			return nil, errors.New("it has an offer without a _self or a content")
		}
	}
	return items, nil
}

// authorization signs requests, of azcosmos and of our own pipeline, with the account key. It overwrites what
// azcosmos writes. If there is no key, azcore's policy adds a token of the identity.
type authorization struct {
	headers http.Header // of every request
	key     []byte      // nil = the identity's token

	mu         sync.Mutex
	second     int64                  // of the date
	date       []string               // as it stands in the headers, which share it
	signatures map[[2]string][]string // of that second, by method and path: a tick makes thousands of requests with few of them
}

// sign sets the headers of every request: the date, and the signature if there is a key.
func (a *authorization) sign(r *http.Request) {
	maps.Copy(r.Header, a.headers)
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Unix() != a.second {
		a.second, a.date, a.signatures = now.Unix(), []string{now.UTC().Format(http.TimeFormat)}, make(map[[2]string][]string)
	}
	r.Header["X-Ms-Date"] = a.date
	if a.key == nil {
		return
	}
	target := [2]string{r.Method, r.URL.Path} // no path is one of names and one of RIDs
	if a.signatures[target] == nil {
		a.signatures[target] = []string{a.signature(r, a.date[0])}
	}
	r.Header["Authorization"] = a.signatures[target]
}

// signature is the HMAC-SHA256 of verb, resource type, resource link and date, each on a line of its own
// (https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources).
func (a *authorization) signature(r *http.Request, date string) string {
	kind, link, _ := resourceOf(r.URL.Path)
	if rid := link[strings.LastIndexByte(link, '/')+1:]; kind == "offers" || callOf(r.Context()).byRID {
		link = strings.ToLower(rid) // a request by RID is signed with that alone
	}
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(strings.ToLower(r.Method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// resourceOf returns the type and the link of what a path, not percent-encoded, names. That of a list has
// an odd number of segments, and the link of the resource that has the list. No id has a slash. The account has
// neither.
func resourceOf(path string) (kind, link string, isList bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	last := len(segments) - 1
	if last%2 == 0 {
		return segments[last], strings.Join(segments[:last], "/"), segments[last] != ""
	}
	return segments[last-1], strings.Join(segments, "/"), false
}

// DefaultScope is the scope of a token in a tenant that has no application of the account's own name.
// KEDA's scaler asks for it in every cloud (kedacore/keda, azure/cloud_config.go).
const DefaultScope = "https://cosmos.azure.com/.default"

// OwnScope is the scope of a token for an account by default: its own endpoint. A dedicated gateway
// (ACCOUNT.sqlx.cosmos.azure.com) has the scope of its account.
func OwnScope(endpoint *url.URL) string {
	host := strings.Replace(endpoint.Hostname(), ".sqlx.cosmos.azure.com", ".documents.azure.com", 1)
	return endpoint.Scheme + "://" + host + "/.default"
}

// unknownResource is Entra's code for a scope that no application in the tenant has
// (https://learn.microsoft.com/entra/identity-platform/reference-error-codes).
const unknownResource = "AADSTS500011"

// scopedCredential asks an identity for a token with the first of its scopes that the tenant knows.
type scopedCredential struct {
	azcore.TokenCredential
	scopes []string
}

// WithScope returns a credential whose tokens are for a scope, whichever it is asked for.
func WithScope(c azcore.TokenCredential, scope string) azcore.TokenCredential {
	return &scopedCredential{c, []string{scope}}
}

// GetToken ignores the scopes that it is asked for: they are always the same. Its error is a tokenError.
func (s *scopedCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (token azcore.AccessToken, err error) {
	for _, scope := range s.scopes {
		o.Scopes = []string{scope}
		token, failed := s.TokenCredential.GetToken(ctx, o)
		if failed == nil {
			return token, nil
		}
		if err = cmp.Or(err, failed); !strings.Contains(failed.Error(), unknownResource) {
			break
		}
	}
	return token, tokenError{err}
}
