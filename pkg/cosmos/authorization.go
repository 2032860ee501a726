package cosmos

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// authorization is the policy that authenticates each request, of azcosmos and of our own pipeline: by the
// account key, or by a token of the identity. It overwrites what azcosmos writes.
type authorization struct {
	key    []byte
	bearer policy.Policy // azcore's, which keeps and renews the token; nil if the key signs

	mu         sync.Mutex
	second     int64               // of the date
	date       []string            // as it stands in the headers, which share it
	signatures map[target][]string // of that second: a tick makes thousands of requests with few targets
}

// target is what a signature is for, with the date. No path is one of names and one of RIDs.
type target struct{ method, path string }

// newBearer allows a token in clear text to a stand-in on this machine, and nowhere else.
func newBearer(identity azcore.TokenCredential, endpoint *url.URL) policy.Policy {
	host := endpoint.Hostname()
	ip := net.ParseIP(host)
	return runtime.NewBearerTokenPolicy(identity, nil, &policy.BearerTokenOptions{
		InsecureAllowCredentialWithHTTP: host == "localhost" || ip != nil && ip.IsLoopback(),
	})
}

// Do authenticates a request.
func (a *authorization) Do(r *policy.Request) (*http.Response, error) {
	a.sign(r.Raw())
	if a.bearer == nil {
		return r.Next()
	}
	return a.bearer.Do(r)
}

// cosmosToken is the policy after azcore's bearer: it turns its header into that of Cosmos DB.
type cosmosToken struct{}

func (cosmosToken) Do(r *policy.Request) (*http.Response, error) {
	if token, ok := strings.CutPrefix(r.Raw().Header.Get("Authorization"), "Bearer "); ok {
		r.Raw().Header["Authorization"] = []string{"type=aad&ver=1.0&sig=" + token}
	}
	return r.Next()
}

// sign sets the date of a request, and its signature if there is a key.
func (a *authorization) sign(r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Unix() != a.second {
		a.second, a.date, a.signatures = now.Unix(), []string{now.UTC().Format(http.TimeFormat)}, make(map[target][]string)
	}
	r.Header["X-Ms-Date"] = a.date
	if a.bearer != nil {
		return
	}
	t := target{r.Method, r.URL.Path}
	if a.signatures[t] == nil {
		a.signatures[t] = []string{a.signature(r, a.date[0])}
	}
	r.Header["Authorization"] = a.signatures[t]
}

// signature is the HMAC-SHA256 of verb, resource type, resource link and date, each on a line of its own
// (https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources).
func (a *authorization) signature(r *http.Request, date string) string {
	kind, link := resourceOf(r.URL.Path)
	if rid := link[strings.LastIndexByte(link, '/')+1:]; kind == "offers" || callOf(r.Context()).byRID {
		link = strings.ToLower(rid) // a request by RID is signed with that alone
	}
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(strings.ToLower(r.Method) + "\n" + kind + "\n" + link + "\n" + strings.ToLower(date) + "\n\n"))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// resourceOf returns the type and the link of what a path, not percent-encoded, names. That of a list has
// an odd number of segments, and the link of the resource that has the list. No id has a slash.
func resourceOf(path string) (kind, link string) {
	path = strings.Trim(path, "/")
	segments := strings.Split(path, "/")
	last := len(segments) - 1
	if len(segments)%2 == 1 {
		return segments[last], strings.Trim(strings.TrimSuffix(path, segments[last]), "/")
	}
	return segments[last-1], path
}

// DefaultScope is the scope of a token in a tenant that has no application of the account's own name.
// KEDA's scaler asks for it in every cloud (kedacore/keda, azure/cloud_config.go).
const DefaultScope = "https://cosmos.azure.com/.default"

// OwnScope is the scope of a token for an account by default: its own endpoint. A dedicated gateway
// (ACCOUNT.sqlx.cosmos.azure.com) has the scope of its account.
func OwnScope(endpoint *url.URL) string {
	host := endpoint.Hostname()
	if account, ok := strings.CutSuffix(host, ".sqlx.cosmos.azure.com"); ok {
		host = account + ".documents.azure.com"
	}
	return endpoint.Scheme + "://" + host + "/.default"
}

// unknownResource is Entra's code for a scope that no application in the tenant has
// (https://learn.microsoft.com/entra/identity-platform/reference-error-codes).
const unknownResource = "AADSTS500011"

// scoped asks an identity for a token with the scope of an account, and with DefaultScope if the tenant
// does not know that.
type scoped struct {
	azcore.TokenCredential
	own   string
	fixed bool        // own comes from a setting: nothing else is tried
	other atomic.Bool // DefaultScope is what works
}

// GetToken ignores the scopes that it is asked for: they are always the same. Its error is a tokenError.
func (s *scoped) GetToken(ctx context.Context, o policy.TokenRequestOptions) (token azcore.AccessToken, err error) {
	if o.Scopes = []string{s.own}; !s.other.Load() {
		token, err = s.TokenCredential.GetToken(ctx, o)
		if err == nil {
			return token, nil
		}
		if s.fixed || !strings.Contains(err.Error(), unknownResource) {
			return token, tokenError{err}
		}
	}
	o.Scopes[0] = DefaultScope
	token, otherErr := s.TokenCredential.GetToken(ctx, o)
	if otherErr == nil {
		s.other.Store(true)
		return token, nil
	}
	return token, tokenError{cmp.Or(err, otherErr)}
}
