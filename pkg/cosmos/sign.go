package cosmos

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Values of headers that many requests share: net/http does not change them.
var (
	queryMedia      = []string{"application/query+json"}
	jsonMedia       = []string{"application/json"}
	eventual        = []string{"Eventual"}
	incrementalFeed = []string{"Incremental Feed"}
	oneItem         = []string{"1"}
)

// stamps returns the headers that every request of an account carries.
func stamps(o Options) http.Header {
	h := http.Header{headerVersion: {apiVersion}, headerCapabilities: {capabilities}, "User-Agent": {"feedscale"}}
	if o.Priority != "" {
		h[headerPriority] = []string{string(o.Priority)}
	}
	if o.Bucket > 0 {
		h[headerBucket] = []string{strconv.Itoa(o.Bucket)}
	}
	return h
}

// stamp sets the headers that every request carries. The date is set again for each try.
func (a *Account) stamp(h http.Header, date *date) {
	for name, values := range a.stamped {
		h[name] = values
	}
	h[headerDate] = date.header
	if a.regions.readsAreDear() {
		h[headerConsistency] = eventual
	}
}

// date is a second, as requests say it. A tick makes thousands of requests in each.
type date struct {
	second int64 // Unix
	header []string
	signed string // in lower case
}

// dates formats each second once.
type dates struct{ last atomic.Pointer[date] }

func (d *dates) at(now time.Time) *date {
	if last := d.last.Load(); last != nil && last.second == now.Unix() {
		return last
	}
	text := now.UTC().Format(http.TimeFormat)
	next := &date{now.Unix(), []string{text}, strings.ToLower(text)}
	d.last.Store(next)
	return next
}

// authorization returns what authenticates a request: the signature by the account key, or a token of
// the identity.
func (a *Account) authorization(ctx context.Context, r request, date *date) ([]string, error) {
	if a.signer != nil {
		return a.signer.sign(r.method, r.signed, date), nil
	}
	return a.bearer.get(ctx)
}

// resource is the part of a request that a signature by account key covers besides verb and date.
type resource struct{ kind, link string }

// signer signs with an account key: the HMAC-SHA256 of verb, resource type, resource link and date, each
// on a line of its own
// (https://learn.microsoft.com/rest/api/cosmos-db/access-control-on-cosmosdb-resources). None of these
// tells one partition of a container from another, so that one signature does for all of a second.
type signer struct {
	mu     sync.Mutex
	mac    hash.Hash
	second int64 // that made was signed in
	made   map[signed][]string
}

// signed is what a signature covers besides the date.
type signed struct {
	method string
	resource
}

func newSigner(key []byte) *signer { return &signer{mac: hmac.New(sha256.New, key)} }

func (s *signer) sign(method string, of resource, date *date) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made == nil || s.second != date.second {
		s.second, s.made = date.second, make(map[signed][]string)
	}
	what := signed{method, of}
	if made, ok := s.made[what]; ok {
		return made
	}
	s.mac.Reset()
	io.WriteString(s.mac, strings.ToLower(method)+"\n"+of.kind+"\n"+of.link+"\n"+date.signed+"\n\n")
	made := []string{url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(s.mac.Sum(nil)))}
	s.made[what] = made
	return made
}

const (
	refreshTokenWithin = 5 * time.Minute  // of its end: then a new token is asked for
	refreshTokenEvery  = 30 * time.Second // where that fails
)

// bearer keeps a token of an identity, and asks for another one in time. It does so as azcore's
// BearerTokenPolicy, but that it does not ask for tokens that the service may revoke with a challenge:
// those that it gets last an hour or so.
type bearer struct {
	identity *scoped
	refused  error // why no token may be sent to the account; nil where one may

	current atomic.Pointer[token]
	turn    chan struct{} // of whoever asks for one
	asked   time.Time
}

// token is a token in the form that Cosmos DB expects.
type token struct {
	header      []string
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
func (b *bearer) get(ctx context.Context) ([]string, error) {
	if b.refused != nil {
		return nil, b.refused
	}
	now := time.Now()
	t := b.current.Load()
	switch {
	case t == nil || !now.Before(t.ends):
		select {
		case b.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case now.Before(t.renew):
		return t.header, nil
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
	if t != nil && now.Before(t.ends) && now.Sub(b.asked) < refreshTokenEvery {
		return t.header, nil
	}
	b.asked = now
	got, err := b.identity.GetToken(ctx, policy.TokenRequestOptions{})
	if err != nil {
		if t != nil && now.Before(t.ends) {
			return t.header, nil
		}
		return nil, err
	}
	next := newToken(got)
	b.current.Store(next)
	return next.header, nil
}

func newToken(got azcore.AccessToken) *token {
	t := &token{header: []string{"type=aad&ver=1.0&sig=" + got.Token}, ends: got.ExpiresOn, renew: got.RefreshOn}
	if t.renew.IsZero() {
		t.renew = t.ends.Add(-refreshTokenWithin)
	}
	return t
}

// forget drops the token of a header that the service did not accept, unless there is another one already.
func (b *bearer) forget(header []string) {
	if t := b.current.Load(); t != nil && slices.Equal(t.header, header) {
		b.current.CompareAndSwap(t, nil)
	}
}
