package manager_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/cosmos/manager"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const accountID = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop"

var fixed = cosmos.Container{Database: "shop", ID: "fixed"}

type credential struct{}

func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "good", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

// TestAChangeThatTakesLongIsPending has Azure Resource Manager work on a change for longer than a tick.
func TestAChangeThatTakesLongIsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := testworld.New(t, testworld.Options{InMemory: true})
		testworld.Must(t, w.Account.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 1000}))
		handler := w.Account.Manager(cosmosfake.ManagerOptions{Account: accountID, Polls: 1 << 30})
		m, err := manager.New(manager.Options{ResourceID: accountID, Setting: "COSMOS", Credential: credential{}, Client: policy.ClientOptions{
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				answer := httptest.NewRecorder()
				received := r.Clone(r.Context())
				if received.Host = r.URL.Host; received.Body == nil {
					received.Body = http.NoBody
				}
				handler.ServeHTTP(answer, received)
				answer.Header().Del("Retry-After-Ms") // the poll's own interval
				result := answer.Result()
				result.Request = r
				return result, nil
			}),
		}})
		testworld.Must(t, err)
		read, err := m.ReadThroughput(t.Context(), fixed)
		testworld.Must(t, err)
		began := time.Now()
		replaced, err := m.ReplaceThroughput(t.Context(), fixed, read, 2000)
		if err != nil || !replaced.Pending || replaced.RUPerSecond != 2000 {
			t.Errorf("%+v, %v", replaced, err)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("it was waited for %s", took)
		}
	})
}

func TestTheResourceIDOfAnAccountIsChecked(t *testing.T) {
	t.Parallel()
	for id, valid := range map[string]bool{
		accountID:                  true,
		strings.ToLower(accountID): true,
		strings.Replace(accountID, "databaseAccounts", "mongoClusters", 1): false,
		accountID + "/sqlDatabases/shop":                                   false,
		"shop":                                                             false,
		"":                                                                 false,
	} {
		_, err := manager.New(manager.Options{ResourceID: id, Setting: "COSMOS", Credential: credential{}})
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "setting COSMOS__resourceId is not the resource id of an account; allowed is") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
