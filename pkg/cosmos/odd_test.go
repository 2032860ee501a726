package cosmos_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestAnOddAnswerIsUnknown has, for every kind of request, the answers with status 200 that are none of
// the service's: each is an error, and never an empty container.
func TestAnOddAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	calls := map[cosmosfake.Kind]func(*testing.T, *cosmos.Account) error{
		cosmosfake.QueryDocuments: func(t *testing.T, a *cosmos.Account) error {
			documents, _, err := a.Leases(t.Context(), orders, []string{"p.."})
			if len(documents) > 0 {
				t.Errorf("%d leases", len(documents))
			}
			return err
		},
		cosmosfake.ReadRanges: func(t *testing.T, a *cosmos.Account) error {
			_, _, err := a.Ranges(t.Context(), orders)
			return err
		},
		cosmosfake.ReadContainer: func(t *testing.T, a *cosmos.Account) error {
			_, _, err := a.Describe(t.Context(), orders)
			return err
		},
		cosmosfake.ReadChangeFeed: func(t *testing.T, a *cosmos.Account) error {
			_, _, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: "0"})
			return err
		},
	}
	for rule, body := range map[string]string{
		"empty":                  " ",
		"an empty object":        "{}",
		"of a proxy":             "<html><body>Welcome</body></html>",
		"null":                   "null",
		"cut short":              `{"_rid":"q0oIALS6YvQ=","Documents":[{"id":"a..0"`,
		"lists that are null":    `{"Documents":null,"PartitionKeyRanges":null}`,
		"a count that is not so": `{"Documents":[],"_count":2}`,
	} {
		for kind, call := range calls {
			t.Run(rule+" for "+string(kind), func(t *testing.T) {
				t.Parallel()
				server := start(t, cosmosfake.Options{})
				server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind != kind {
						return nil
					}
					return &cosmosfake.Answer{Status: 200, Body: body}
				})
				if err := call(t, testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)); err == nil || errors.Is(err, cosmos.ErrMissing) {
					t.Errorf("error %v", err)
				}
			})
		}
	}
}

// TestAnOddPageAmongOthersIsUnknown has a lease container of three pages, and answers about the second
// and the third that are none of the service's: the leases of the others do not pass for all there are.
func TestAnOddPageAmongOthersIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := azure(t)
		for n := range 2100 {
			w.Put(orders.ID, processor(0).DotNetPKOld(fmt.Sprint(n), testworld.At(1)))
		}
		for rule, odd := range map[string]cosmosfake.Answer{
			"empty":                  {Status: 200, Body: " "},
			"an empty object":        {Status: 200, Body: "{}"},
			"of a proxy":             {Status: 200, Body: "<html><body>Welcome</body></html>"},
			"a count that is not so": {Status: 200, Body: `{"Documents":[],"_count":2}`},
			"no list":                {Status: 200, Body: `{"Documents":{"id":"a..0"},"_count":1}`},
			"cut short":              {CutShort: true},
			"broken off":             {Break: true},
			"without a body":         {Status: 204},
		} {
			for _, page := range []int64{2, 3} {
				var pages atomic.Int64
				heal := w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind == cosmosfake.QueryDocuments && pages.Add(1) >= page {
						return &odd
					}
					return nil
				})
				documents, _, err := clientOf(t, w, cosmos.Options{}).Leases(t.Context(), orders, []string{prefix(0)})
				heal()
				if err == nil || errors.Is(err, cosmos.ErrMissing) || len(documents) > 0 {
					t.Errorf("%s, page %d: %d leases, error %v", rule, page, len(documents), err)
				}
				if got := pages.Load(); got < page {
					t.Errorf("%s, page %d: %d pages were asked for: the test proves nothing", rule, page, got)
				}
			}
		}
	})
}

// TestAnOddPageOfRangesIsUnknown has the second page of the partition key ranges, which the service
// answers with a 304.
func TestAnOddPageOfRangesIsUnknown(t *testing.T) {
	t.Parallel()
	for _, body := range []string{" ", "{}", "null", `{"PartitionKeyRanges":null}`, `{"PartitionKeyRanges":[{"id":"0"`, "<html>"} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			server := start(t, cosmosfake.Options{})
			var pages atomic.Int64
			server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				if r.Kind == cosmosfake.ReadRanges && pages.Add(1) == 2 {
					return &cosmosfake.Answer{Status: 200, Body: body}
				}
				return nil
			})
			ranges, _, err := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey).Ranges(t.Context(), orders)
			if err == nil || pages.Load() != 2 {
				t.Errorf("ranges %v after %d pages, error %v", ranges, pages.Load(), err)
			}
		})
	}
}

// TestAPageThatBreaksOffIsReadAgain holds that a connection that breaks in the middle of a page of the
// change feed costs another request, and no more.
func TestAPageThatBreaksOffIsReadAgain(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	testworld.Must(t, server.Upsert("shop", "orders", map[string]any{"id": "a"}))
	testworld.Must(t, server.Upsert("shop", "orders", map[string]any{"id": "b"}))
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	for _, id := range []string{"0", "1"} {
		server.Control(cosmosfake.Once(cosmosfake.ReadChangeFeed, cosmosfake.Answer{CutShort: true}))
		answer, usage, err := a.FeedPage(t.Context(), orders, changefeed.Position{Range: id})
		if err != nil || usage.Requests > 3 { // with that of the account's regions
			t.Errorf("range %s: %+v, %d requests, %v", id, answer, usage.Requests, err)
		}
	}
}

func TestOnlyTheServiceSaysThatALeaseContainerIsMissing(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(proxy.Close)
	_, _, err := testworld.Client(t, proxy.URL, cosmosfake.WellKnownKey).Leases(t.Context(), orders, []string{"p.."})
	if err == nil || errors.Is(err, cosmos.ErrMissing) || !strings.Contains(err.Error(), "(404)") {
		t.Errorf("error %v", err)
	}
}
