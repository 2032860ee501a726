package cosmos

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// authorization is the policy that authenticates each request, of azcosmos and of our own pipeline: by the
// account key, or by a token of the identity. It overwrites what azcosmos writes.
type authorization struct {
	key    []byte
	bearer *bearer // nil if the key signs
	now    func() time.Time
	last   atomic.Pointer[signature]
}

// signature is that of a request, and of all others for the same path in the same second: a tick makes
// thousands of them. No path is one of names and one of RIDs. Date and value are shared as they stand in
// the headers.
type signature struct {
	method, path string
	second       int64
	date, value  []string
}

// Do authenticates a request, and drops a token that the service did not accept.
func (a *authorization) Do(r *policy.Request) (*http.Response, error) {
	if err := a.sign(r.Raw()); err != nil {
		return nil, lost{tokenError{err}}
	}
	response, err := r.Next()
	if refused, ok := errors.AsType[answerError](err); ok && refused.response.StatusCode == http.StatusUnauthorized && a.bearer != nil {
		a.bearer.forget(r.Raw().Header.Get("Authorization"))
	}
	return response, err
}

func (a *authorization) sign(r *http.Request) (err error) {
	now := a.now()
	last := a.last.Load()
	if last == nil || last.second != now.Unix() || last.path != r.URL.Path || last.method != r.Method {
		last = &signature{r.Method, r.URL.Path, now.Unix(), []string{now.UTC().Format(http.TimeFormat)}, nil}
		if a.bearer == nil {
			last.value = []string{a.signature(r, last.date[0])}
		}
		a.last.Store(last)
	}
	r.Header[headerDate], r.Header["Authorization"] = last.date, last.value
	if a.bearer != nil {
		var value string
		value, err = a.bearer.get(r.Context())
		r.Header["Authorization"] = []string{value}
	}
	return err
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

const (
	refreshTokenWithin = 5 * time.Minute  // of its end: then a new token is asked for
	refreshTokenEvery  = 30 * time.Second // if that fails
)

// bearer keeps a token of an identity, and asks for another one in time. Unlike azcore's
// BearerTokenPolicy it asks for no tokens that a challenge can revoke: ordinary ones last about an hour.
type bearer struct {
	identity *scoped
	refused  error // why no token may be sent to the account; nil = one may

	current atomic.Pointer[token]
	turn    chan struct{} // of whoever asks for one
}

// token is a token in the form that Cosmos DB expects.
type token struct {
	header      string
	ends, renew time.Time
}

func newBearer(identity *scoped, endpoint *url.URL) *bearer {
	b := &bearer{identity: identity, turn: make(chan struct{}, 1)}
	// A token in clear text may go to a stand-in on this machine, nowhere else.
	if !strings.EqualFold(endpoint.Scheme, "https") && !isLoopback(endpoint.Hostname()) {
		b.refused = errors.New("a token is sent over https alone")
	}
	return b
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// get returns the header with the token. While one that still holds is renewed, the others go on with it.
func (b *bearer) get(ctx context.Context) (string, error) {
	if b.refused != nil {
		return "", b.refused
	}
	now, t := time.Now(), b.current.Load()
	holds := t != nil && now.Before(t.ends)
	switch {
	case holds && now.Before(t.renew):
		return t.header, nil
	case !holds:
		select {
		case b.turn <- struct{}{}:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	default:
		select {
		case b.turn <- struct{}{}:
		default:
			return t.header, nil
		}
	}
	defer func() { <-b.turn }()
	if last := b.current.Load(); last != nil && last != t {
		return last.header, nil // somebody else has asked meanwhile
	}
	got, err := b.identity.GetToken(ctx, policy.TokenRequestOptions{})
	switch {
	case err != nil && !holds:
		return "", err
	case err != nil:
		t = &token{t.header, t.ends, now.Add(refreshTokenEvery)}
	default:
		t = &token{"type=aad&ver=1.0&sig=" + got.Token, got.ExpiresOn, got.RefreshOn}
		if t.renew.IsZero() {
			t.renew = t.ends.Add(-refreshTokenWithin)
		}
	}
	b.current.Store(t)
	return t.header, nil
}

// forget drops the token of a header that the service did not accept, unless there is another one already.
func (b *bearer) forget(header string) {
	if t := b.current.Load(); t != nil && t.header == header {
		b.current.CompareAndSwap(t, nil)
	}
}
