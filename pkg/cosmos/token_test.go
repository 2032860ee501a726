package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

// issuer is an identity whose tokens are numbered and last an hour.
type issuer struct {
	mu     sync.Mutex
	issued int
	asked  int
	takes  time.Duration
	err    error
}

func (i *issuer) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	time.Sleep(i.takes)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if i.err != nil {
		return azcore.AccessToken{}, i.err
	}
	i.issued++
	return azcore.AccessToken{Token: fmt.Sprint("token", i.issued), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

func (i *issuer) questions() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// gate answers every request, and refuses one token.
type gate struct {
	mu      sync.Mutex
	seen    []string
	refused string
}

func (g *gate) Do(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "type=aad&ver=1.0&sig=")
	g.seen = append(g.seen, token)
	status := http.StatusNotModified
	if token == g.refused {
		status = http.StatusUnauthorized
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// last is the token of the last request.
func (g *gate) last() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[len(g.seen)-1]
}

// tokenWorld is an account with an identity, on the virtual time of a test.
type tokenWorld struct {
	*testing.T
	issuer  issuer
	gate    gate
	account *cosmos.Account
}

func (w *tokenWorld) read() error {
	_, _, err := w.account.FeedPage(w.Context(), orders, changefeed.Position{Range: "0", Continuation: `"1"`})
	return err
}

// sends reads once, and expects a token in that request, and so many questions to the identity so far.
func (w *tokenWorld) sends(token string, asked int) {
	w.Helper()
	if err := w.read(); err != nil {
		w.Error(err)
	}
	if got, questions := w.gate.last(), w.issuer.questions(); got != token || questions != asked {
		w.Errorf("sent %s after %d questions, want %s after %d", got, questions, token, asked)
	}
}

func TestTokensAreKeptAndRenewed(t *testing.T) {
	t.Parallel()
	for rule, check := range map[string]func(w *tokenWorld){
		"many requests at once ask for one token": func(w *tokenWorld) {
			w.issuer.takes = time.Second
			var reading sync.WaitGroup
			for range 20 {
				reading.Go(func() {
					if err := w.read(); err != nil {
						w.Error(err)
					}
				})
			}
			reading.Wait()
			w.sends("token1", 1)
		},
		"a token is renewed within five minutes of its end": func(w *tokenWorld) {
			w.sends("token1", 1)
			time.Sleep(54 * time.Minute)
			w.sends("token1", 1)
			time.Sleep(2 * time.Minute)
			w.sends("token2", 2)
		},
		"while one is renewed the others go on with that which holds": func(w *tokenWorld) {
			w.sends("token1", 1)
			time.Sleep(56 * time.Minute)
			w.issuer.takes = time.Second
			go func() { _ = w.read() }()
			synctest.Wait()
			w.sends("token1", 1)
			time.Sleep(2 * time.Second)
			w.sends("token2", 2)
		},
		"where it cannot be renewed the old one is sent until its end, and another one asked for every half a minute": func(w *tokenWorld) {
			w.sends("token1", 1)
			time.Sleep(56 * time.Minute)
			w.issuer.err = errors.New("the identity provider does not answer")
			w.sends("token1", 2)
			w.sends("token1", 2)
			time.Sleep(31 * time.Second)
			w.sends("token1", 3)
			time.Sleep(5 * time.Minute)
			if err := w.read(); err == nil || !strings.Contains(err.Error(), "there is no token") {
				w.Errorf("got %v", err)
			}
			w.issuer.err = nil
			w.sends("token2", w.issuer.questions()+1)
		},
		"a token that the service refuses is not sent again": func(w *tokenWorld) {
			w.sends("token1", 1)
			w.gate.refused = "token1"
			if w.read() == nil {
				w.Error("it was not refused")
			}
			w.sends("token2", 2)
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &tokenWorld{T: t}
				var err error
				w.account, err = cosmos.NewAccount(cosmos.Options{
					Endpoint: "https://acct.documents.azure.com", Setting: "COSMOS", Scope: "https://acct.documents.azure.com/.default",
					Credential: &w.issuer, Concurrency: 8, Transport: &w.gate,
				})
				if err != nil {
					t.Fatal(err)
				}
				check(w)
			})
		})
	}
}

func TestATokenIsNotSentInClearText(t *testing.T) {
	t.Parallel()
	for endpoint, sent := range map[string]bool{"http://acct.example": false, "http://127.0.0.1:8081": true, "http://localhost:8081": true, "https://acct.example": true} {
		w := &tokenWorld{T: t}
		var err error
		w.account, err = cosmos.NewAccount(cosmos.Options{Endpoint: endpoint, Setting: "COSMOS", Scope: "s", Credential: &w.issuer, Concurrency: 1, Transport: &w.gate})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.read(); (err == nil) != sent || (len(w.gate.seen) > 0) != sent {
			t.Errorf("%s: %v, %d requests", endpoint, err, len(w.gate.seen))
		}
	}
}
