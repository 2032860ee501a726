package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// reads are requests of azcosmos, and of our own pipeline.
var reads = map[cosmosfake.Kind]func(context.Context, *cosmos.Account) error{
	cosmosfake.QueryDocuments: func(ctx context.Context, a *cosmos.Account) error {
		_, _, err := a.Leases(ctx, orders, []string{"p.."})
		return err
	},
	cosmosfake.ReadContainer: func(ctx context.Context, a *cosmos.Account) error {
		_, _, err := a.Describe(ctx, orders)
		return err
	},
	cosmosfake.ListOffers: func(ctx context.Context, a *cosmos.Account) error {
		_, err := a.ReadThroughput(ctx, orders)
		return err
	},
	cosmosfake.ReadChangeFeed: func(ctx context.Context, a *cosmos.Account) error {
		_, _, err := a.FeedPage(ctx, orders, changefeed.Position{Range: "0"})
		return err
	},
	cosmosfake.ReadRanges: func(ctx context.Context, a *cosmos.Account) error {
		_, _, err := a.Ranges(ctx, orders)
		return err
	},
}

// TestNeitherAzcosmosNorAzcoreAsksAgain counts the requests on the wire for each status: those of the one
// retry rule, whichever client asks.
func TestNeitherAzcosmosNorAzcoreAsksAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, substatus, requests int
	}{
		{400, 0, 1}, {401, 0, 1}, {403, 0, 1}, {403, 3, 1}, {403, 1008, 1}, {404, 0, 1}, {404, 1002, 5}, {408, 0, 5}, {409, 0, 1},
		{410, 1000, 5}, {412, 0, 1}, {413, 0, 1}, {429, 3200, 5}, {449, 0, 5}, {500, 0, 5}, {502, 0, 5}, {503, 0, 5}, {504, 0, 5},
		{204, 0, 1}, {302, 0, 1},
	} {
		for kind, read := range reads {
			t.Run(fmt.Sprintf("%d/%d for %s", c.status, c.substatus, kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := testworld.New(t, testworld.Options{InMemory: true})
					w.Container(orders.ID, 2)
					var asked atomic.Int64
					w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
						if r.Kind != kind {
							return nil
						}
						asked.Add(1)
						return &cosmosfake.Answer{Status: c.status, Substatus: c.substatus}
					})
					began := time.Now()
					if err := read(t.Context(), w.Client()); err == nil {
						t.Error("it is no error")
					}
					if int(asked.Load()) != c.requests || time.Since(began) > 10*time.Second {
						t.Errorf("%d requests in %s, want %d", asked.Load(), time.Since(began), c.requests)
					}
				})
			})
		}
	}
}

// TestNeitherAzcosmosNorAzcoreAsksAgainAfterAnError has the connection fail in the ways that azcosmos
// knows. A page of the feed that hung is left for the next tick.
func TestNeitherAzcosmosNorAzcoreAsksAgainAfterAnError(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, context.DeadlineExceeded, fmt.Errorf("read: %w", syscall.ETIMEDOUT)} {
		for kind, read := range reads {
			t.Run(fmt.Sprintf("%v for %s", cause, kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var asked atomic.Int64
					a, err := cosmos.NewAccount(cosmos.Options{Endpoint: "https://acct.documents.azure.com", Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1, Transport: transport(func(r *http.Request) (*http.Response, error) {
						if r.URL.Path != "/" {
							asked.Add(1)
						}
						return nil, cause
					})})
					testworld.Must(t, err)
					err = read(t.Context(), a)
					want := 5
					if timeout := net.Error(nil); kind == cosmosfake.ReadChangeFeed && errors.As(cause, &timeout) && timeout.Timeout() {
						want = 1
					}
					if err == nil || int(asked.Load()) != want {
						t.Errorf("%d requests, want %d: %v", asked.Load(), want, err)
					}
				})
			})
		}
	}
}

// TestAzcosmosDoesNotReadTheAccountItself has the description of the account hang, and then fail: the one
// takes no longer than the caller has, and the other is not remembered.
func TestAzcosmosDoesNotReadTheAccountItself(t *testing.T) {
	t.Parallel()
	for rule, answer := range map[string]cosmosfake.Answer{"hangs": {Delay: time.Hour}, "fails": {Status: 503}} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := testworld.New(t, testworld.Options{InMemory: true})
				w.Container(orders.ID, 2)
				var asked atomic.Int64
				w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind != cosmosfake.ReadAccount {
						return nil
					}
					asked.Add(1)
					return &answer
				})
				a := w.Client()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				_, _, err := a.Leases(ctx, orders, []string{"p.."})
				if took := time.Since(began); took > time.Second || rule == "fails" && err != nil {
					t.Errorf("after %s: %v", took, err)
				}
				first := asked.Load()
				if _, _, err := a.Leases(t.Context(), orders, []string{"p.."}); err != nil || asked.Load() != first {
					t.Errorf("%d requests for the account's description, want %d: %v", asked.Load(), first, err)
				}
			})
		})
	}
}

// TestBothClientsSendTheSameHeaders compares what azcosmos sends with what our own pipeline does.
func TestBothClientsSendTheSameHeaders(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sent := make(map[string][]string)
	g := &issuer{}
	a, err := cosmos.NewAccount(cosmos.Options{Endpoint: "https://acct.documents.azure.com", Setting: "COSMOS", Credential: g, Concurrency: 4, Priority: "Low", Bucket: 2, Transport: transport(func(r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, name := range []string{"X-Ms-Version", "X-Ms-Cosmos-Sdk-Supportedcapabilities", "X-Ms-Cosmos-Priority-Level", "X-Ms-Cosmos-Throughput-Bucket", "Authorization"} {
			if value := r.Header.Get(name); !slices.Contains(sent[name], value) {
				sent[name] = append(sent[name], value)
			}
		}
		if !strings.HasPrefix(r.Header.Get("User-Agent"), "feedscale") || r.Header.Get("X-Ms-Date") == "" {
			t.Errorf("%s %s has %v", r.Method, r.URL, r.Header)
		}
		return &http.Response{StatusCode: 404, Header: http.Header{"X-Ms-Activity-Id": {"1"}}, Body: http.NoBody, Request: r}, nil
	})})
	testworld.Must(t, err)
	for kind, read := range reads {
		if err := read(t.Context(), a); err == nil {
			t.Errorf("%s passed", kind)
		}
	}
	for name, values := range sent {
		if want := map[string]string{
			"X-Ms-Version": "2020-11-05", "X-Ms-Cosmos-Sdk-Supportedcapabilities": "3", "X-Ms-Cosmos-Priority-Level": "Low",
			"X-Ms-Cosmos-Throughput-Bucket": "2", "Authorization": "type=aad&ver=1.0&sig=token1",
		}[name]; !slices.Equal(values, []string{want}) {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	if g.questions() != 1 {
		t.Errorf("the identity was asked %d times", g.questions())
	}
}

// TestAzcosmosDropsATokenThatIsRefused has each request refused once with a 401.
func TestAzcosmosDropsATokenThatIsRefused(t *testing.T) {
	t.Parallel()
	for kind, read := range reads {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			g, i := &gate{}, &issuer{}
			a, err := cosmos.NewAccount(cosmos.Options{Endpoint: "https://acct.documents.azure.com", Setting: "COSMOS", Credential: i, Concurrency: 4, Transport: g})
			testworld.Must(t, err)
			_ = read(t.Context(), a)
			g.refused = "token1"
			if refused, ok := errors.AsType[*refusal.Error](read(t.Context(), a)); !ok || refused.Status != 401 {
				t.Errorf("%v", refused)
			}
			_ = read(t.Context(), a)
			if g.last() != "token2" || i.questions() != 2 {
				t.Errorf("%s was sent after %d questions", g.last(), i.questions())
			}
		})
	}
}
