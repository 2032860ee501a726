package cosmos_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// TestARefusalHasTheServicesOwnWordsAndThenWhatTheyMean holds that a guess never stands in for what the
// service said, whatever is asked for.
func TestARefusalHasTheServicesOwnWordsAndThenWhatTheyMean(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		answer cosmosfake.Answer
		words  string // of the service
		means  string // what is said behind them
	}{
		{"a start time where there are several write regions", cosmosfake.StartTimeRefused(),
			"StartTime/IfMofifiedSince is not currently supported when EnableMultipleWriteLocations is set.", "the account rejects the request"},
		{"the firewall", cosmosfake.FirewallForbids("203.0.113.7"),
			"Request originated from IP 203.0.113.7 through public internet", "the account's firewall refuses 203.0.113.7"},
		{"a missing role", cosmosfake.RoleForbids(5302, "Microsoft.DocumentDB/databaseAccounts/readMetadata", "/"),
			"does not have required RBAC permissions to perform action [Microsoft.DocumentDB/databaseAccounts/readMetadata]", "(403/5302)"},
		{"keys that are switched off", cosmosfake.KeysRefused(),
			"Local Authorization is disabled. Use an AAD token to authorize all requests.", "the account does not accept keys"},
		{"a tenant that the account does not trust", cosmosfake.IssuerRefused("https://sts.windows.net/1/", "2"),
			"is not trusted by this database account", "(401/5007)"},
		{"a token for another audience", cosmosfake.AudienceRefused("https://management.azure.com"),
			"Provided AAD token is intended for [https://management.azure.com]", "(401/5008)"},
		{"a message of many lines", cosmosfake.Answer{Status: 400, Body: `{"code":"BadRequest","message":"One\r\n\ttwo\u001b[31m three\r\nActivityId: 1-2-3, Microsoft.Azure.Documents.Common/2.14.0"}`},
			`"One two [31m three"`, "the account rejects the request"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server := start(t, cosmosfake.Options{})
			a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
			_, err := a.ProbeAccount(t.Context())
			testworld.Must(t, err)
			server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer { return &c.answer })
			for i, err := range everything(t.Context(), a) {
				text := fmt.Sprint(err)
				words, means := strings.Index(text, c.words), strings.Index(text, c.means)
				if words < 0 || means < words {
					t.Errorf("request %d: %q, want %q and then %q", i, text, c.words, c.means)
				}
				if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Remedy == "" || strings.ContainsAny(text, "\n\r\x1b") || strings.Contains(text, "ActivityId") {
					t.Errorf("request %d: %q, want one line with advice, and without what is for support", i, text)
				}
			}
		})
	}
}

// TestNoErrorHoldsASecret has a service, or a proxy, that repeats the request's signature.
func TestNoErrorHoldsASecret(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 401, 403, 404, 418} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			server := start(t, cosmosfake.Options{})
			a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
			signatures := make(chan string, 100)
			server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
				sent := r.Header.Get("Authorization")
				_, signature, _ := strings.Cut(sent, "sig%3D")
				signatures <- signature
				return &cosmosfake.Answer{Status: status, Header: http.Header{"X-Ms-Activity-Id": {"1"}},
					Body: fmt.Sprintf(`{"code":"Unauthorized","message":"The input authorization token can't serve the request: %s with key %s"}`, sent, "REDACTED")}
			})
			for i, err := range everything(t.Context(), a) {
				if err == nil {
					t.Fatalf("request %d passed", i)
				}
				for len(signatures) > 0 {
					if signature := <-signatures; signature == "" || strings.Contains(err.Error(), signature) {
						t.Errorf("request %d: %q has the signature %q", i, err, signature)
					}
				}
			}
		})
	}
}

func TestARefusalHasTheCommandThatFixesIt(t *testing.T) {
	t.Parallel()
	const host, group = "shop.documents.azure.com", " --resource-group RESOURCE_GROUP "
	orders := cosmos.Container{Database: "shop", ID: "my order's"}
	for _, c := range []struct {
		rule string
		r    *refusal.Error
		want string
	}{
		{"an identity without the role", cosmos.Refuse(cosmos.Subject{}, true, 403, 0, host, "", ""),
			"az cosmosdb sql role assignment create" + group + "--account-name shop --scope / --principal-id OBJECT_ID --role-definition-id 00000000-0000-0000-0000-000000000001"},
		{"one that asks Azure Resource Manager", cosmos.Refuse(cosmos.Subject{}, true, 403, 0, host, "/subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.DocumentDB/databaseAccounts/shop", ""),
			"az role assignment create --assignee-object-id OBJECT_ID --role 'Cosmos DB Operator' " +
				"--scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.DocumentDB/databaseAccounts/shop"},
		{"a key", cosmos.Refuse(cosmos.Subject{}, false, 401, 0, host, "", ""), "az cosmosdb keys list" + group + "--name shop --type connection-strings"},
		{"keys are switched off, which a setting fixes", cosmos.Refuse(cosmos.Subject{}, false, 403, 5202, host, "", ""), ""},
		{"a firewall", cosmos.Refuse(cosmos.Subject{}, false, 403, 0, host, "", "Request originated from IP 203.0.113.7 through public internet."), "az cosmosdb update" + group + "--name shop --ip-range-filter PRESENT_RANGES,203.0.113.7"},
		{"a firewall that does not say whom it refuses", cosmos.Refuse(cosmos.Subject{}, false, 403, 0, host, "", ""), "az cosmosdb update" + group + "--name shop --ip-range-filter PRESENT_RANGES,PUBLIC_IP"},
		{"a service endpoint", cosmos.Refuse(cosmos.Subject{}, false, 403, 0, host, "", "Request originated from client VNET through service endpoint."), "az cosmosdb network-rule add" + group + "--name shop --virtual-network VNET --subnet SUBNET"},
		{"a private endpoint", cosmos.Refuse(cosmos.Subject{}, false, 403, 0, host, "", "Request originated from client VNET through private endpoint."), "az cosmosdb private-endpoint-connection approve" + group + "--account-name shop --name CONNECTION"},
		{"a container that is missing", cosmos.Refuse(cosmos.Subject{Container: orders}, false, 404, 0, host, "", ""), "az cosmosdb sql container list" + group + "--account-name shop --database-name shop --query '[].name'"},
		{"a lease container that is missing", cosmos.Refuse(cosmos.Subject{Container: orders, Leases: true}, false, 404, 0, host, "", ""),
			"az cosmosdb sql container create" + group + `--account-name shop --database-name shop --name 'my order'\''s' --partition-key-path /id`},
		{"a database that is missing", cosmos.Refuse(cosmos.Subject{Container: cosmos.Container{Database: "shop"}}, false, 404, 0, host, "", ""), "az cosmosdb sql database list" + group + "--account-name shop --query '[].name'"},
		{"an account that is missing", cosmos.Refuse(cosmos.Subject{}, false, 404, 0, host, "", ""), ""},
		{"a container that throttles", cosmos.Refuse(cosmos.Subject{Container: orders}, false, 429, 3200, host, "", ""),
			"az cosmosdb sql container throughput update" + group + `--account-name shop --database-name shop --name 'my order'\''s' --throughput REQUEST_UNITS`},
		{"the account throttles, which no container's throughput fixes", cosmos.Refuse(cosmos.Subject{}, false, 429, 3200, host, "", ""), ""},
	} {
		if got := c.r.Command; got != c.want || c.r.Remedy == "" {
			t.Errorf("%s:\ngot  %s\nwant %s", c.rule, got, c.want)
		}
	}
}
