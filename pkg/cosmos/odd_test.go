package cosmos_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
			_, _, err := a.FeedPage(t.Context(), orders, cosmos.Position{Range: "0"})
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

func TestOnlyTheServiceSaysThatALeaseContainerIsMissing(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(proxy.Close)
	_, _, err := testworld.Client(t, proxy.URL, cosmosfake.WellKnownKey).Leases(t.Context(), orders, []string{"p.."})
	if err == nil || errors.Is(err, cosmos.ErrMissing) || !strings.Contains(err.Error(), "(404)") {
		t.Errorf("error %v", err)
	}
}
