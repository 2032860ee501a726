package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

var orders = cosmos.Container{Database: testworld.Database, ID: "orders"}

// start starts an account with the container orders, of two partitions.
func start(t *testing.T, o cosmosfake.Options) *cosmosfake.Server {
	t.Helper()
	w := testworld.New(t, testworld.Options{Account: o})
	w.Container(orders.ID, 2)
	return w.Account
}

// processor is the nth of several whose leases share a container.
func processor(n int) leasefake.Processor {
	return leasefake.Processor{Name: fmt.Sprintf("p%d-", n), Host: "acct", DatabaseRID: "q0oIAA==", ContainerRID: "q0oIALS6YvQ="}
}

func prefix(n int) string { return processor(n).DotNetPrefix() }

// credential hands out one token, or fails.
type credential struct {
	token  string
	err    error
	scopes atomic.Pointer[[]string]
}

func (c *credential) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.scopes.Store(&o.Scopes)
	return azcore.AccessToken{Token: c.token, ExpiresOn: time.Now().Add(time.Hour)}, c.err
}

func withIdentity(t *testing.T, endpoint string, c *credential) *cosmos.Account {
	t.Helper()
	a, err := cosmos.NewAccount(cosmos.Options{Endpoint: endpoint, Setting: "COSMOS", Credential: c, Concurrency: 4})
	testworld.Must(t, err)
	return a
}

// everything makes each kind of request there is.
func everything(ctx context.Context, a *cosmos.Account) []error {
	_, _, rid := a.Describe(ctx, orders)
	_, _, ranges := a.Ranges(ctx, orders)
	_, _, leases := a.Leases(ctx, orders, []string{"p.."})
	_, _, feed := a.FeedPage(ctx, orders, changefeed.Position{Range: "0"})
	return []error{rid, ranges, leases, feed}
}

func TestAnIdentitySignsEveryRequestWithItsToken(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Token: func(bearer string) error {
		if bearer != "token-of-the-identity" {
			return errors.New("another token")
		}
		return nil
	}})
	c := &credential{token: "token-of-the-identity"}
	for i, err := range everything(t.Context(), withIdentity(t, server.Endpoint(), c)) {
		if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if got := *c.scopes.Load(); !reflect.DeepEqual(got, []string{"http://127.0.0.1/.default"}) {
		t.Errorf("scopes %q, want that of the account's host", got)
	}
}

func TestATokenIsNotSentInClearTextToAnotherMachine(t *testing.T) {
	t.Parallel()
	a := withIdentity(t, "http://account.invalid/", &credential{token: "secret"})
	if _, _, err := a.Describe(t.Context(), orders); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestEveryRefusalIsOneSentenceThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	forbidden := func(string) error { return fmt.Errorf("no role: %w", cosmosfake.ErrForbidden) }
	server := start(t, cosmosfake.Options{Token: forbidden})
	const badKey = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="
	for _, c := range []struct {
		rule    string
		account *cosmos.Account
		says    []string
	}{
		{"a key that is not the account's", testworld.Client(t, server.Endpoint(), badKey), []string{"setting COSMOS", "401", "put a valid key into setting COSMOS"}},
		{"an identity without the role", withIdentity(t, server.Endpoint(), &credential{token: "secret-token"}), []string{"403", "Cosmos DB Built-in Data Reader"}},
		{"no identity at all", withIdentity(t, server.Endpoint(), &credential{err: errors.New("secret-token")}), []string{"127.0.0.1"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			for i, err := range everything(t.Context(), c.account) {
				if err == nil {
					t.Fatalf("request %d passed", i)
				}
				for _, text := range c.says {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("request %d: %q does not say %q", i, err, text)
					}
				}
				if strings.Contains(err.Error(), "secret-token") || strings.Contains(err.Error(), badKey) || strings.Contains(err.Error(), "\n") {
					t.Errorf("request %d: a secret, or more than a line: %q", i, err)
				}
			}
		})
	}
}

func TestWhereNobodyListensTheErrorSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := azure(t)
		testworld.Must(t, w.Account.SetRegion(writeRegion, cosmosfake.Refusing))
		testworld.Must(t, w.Account.SetRegion(otherRegion, cosmosfake.Refusing))
		for i, err := range everything(t.Context(), clientOf(t, w, cosmos.Options{Region: "northeurope"})) {
			if err == nil || !strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(err.Error(), "setting COSMOS") {
				t.Errorf("request %d: %v", i, err)
			}
		}
	})
}

func TestAMalformedConnectionIsRefusedWithoutItsKey(t *testing.T) {
	t.Parallel()
	for _, o := range []cosmos.Options{
		{Endpoint: "127.0.0.1", Setting: "COSMOS", Key: "c2VjcmV0"},
		{Endpoint: "https://a.documents.azure.com/", Setting: "COSMOS", Key: "not base64, but secret"},
	} {
		if _, err := cosmos.NewAccount(o); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "COSMOS") {
			t.Errorf("error %v", err)
		}
	}
}

func TestAnAccountThatDoesNotDescribeItselfIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadAccount {
			return &cosmosfake.Answer{Status: http.StatusForbidden}
		}
		return nil
	})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	for i, err := range everything(t.Context(), a) {
		if err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestLeasesAreReadByTheirPrefixes(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	for n := range 5 {
		lease := processor(n).DotNetPKOld("0", testworld.At(1))
		lease["properties"] = map[string]any{"bulk": strings.Repeat("x", 1000)}
		testworld.Must(t, server.Upsert("shop", "orders", lease))
	}
	testworld.Must(t, server.Upsert("shop", "orders", leasefake.Info(prefix(0))))
	many := make([]string, 100)
	for i := range many {
		many[i] = prefix(i) + ".."
	}
	for _, c := range []struct {
		rule     string
		prefixes []string
		want     int
	}{
		{"those of one prefix", many[1:2], 1},
		{"those of several, in one query", []string{many[1], many[2], "other.."}, 2},
		{"with very many, every lease of the container", many, 5},
	} {
		t.Run(c.rule, func(t *testing.T) {
			documents, usage, err := a.Leases(t.Context(), orders, c.prefixes)
			testworld.Must(t, err)
			if len(documents) != c.want || usage.Charge <= 0 {
				t.Errorf("%d leases at %g RU, want %d", len(documents), usage.Charge, c.want)
			}
			for _, d := range documents {
				if d.Err != nil || d.Token != "0" || d.Continuation != `"1"` {
					t.Errorf("lease %+v", d)
				}
			}
		})
	}
}

func TestAMissingLeaseContainerIsToldFromOtherFailures(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	for _, c := range []cosmos.Container{{Database: "shop", ID: "nowhere"}, {Database: "nowhere", ID: "leases"}} {
		if _, _, err := a.Leases(t.Context(), c, []string{"p.."}); !errors.Is(err, cosmos.ErrMissing) {
			t.Errorf("%s: %v, want ErrMissing", c, err)
		}
	}
}

func TestRangesDuringASplitAreReadToTheirEnd(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	children, err := server.Split("shop", "orders", "0")
	testworld.Must(t, err)
	ranges, _, err := a.Ranges(t.Context(), orders)
	testworld.Must(t, err)
	var got []string
	for _, r := range ranges {
		got = append(got, r.ID)
	}
	if want := append(children, "1"); !reflect.DeepEqual(got, want) {
		t.Errorf("ranges %q, want %q", got, want)
	}
	if got := ranges.Children("0"); len(got) != 2 {
		t.Errorf("%d children", len(got))
	}
}

func TestTheDeadlineIsToldWithTheLastAnswer(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	_, _, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0"}) // reads the account's regions, too
	testworld.Must(t, err)
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadChangeFeed {
			return &cosmosfake.Answer{Status: 429, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"10000"}}}
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, usage, err := a.FeedPage(ctx, orders, changefeed.Position{Range: "0"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "throttles") {
		t.Errorf("error %v", err)
	}
	if usage.Requests != 1 {
		t.Errorf("%d requests, want 1: the service asked for more patience than there was", usage.Requests)
	}
}
