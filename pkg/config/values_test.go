package config_test

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/config"
)

// accountKey has the form of a real one: 88 characters.
var accountKey = base64.StdEncoding.EncodeToString([]byte(strings.Repeat("a key of 64 byte", 4)))

func TestAValueThatLooksLikeASecretIsRefusedUnquoted(t *testing.T) {
	t.Parallel()
	digest := hex.EncodeToString([]byte(strings.Repeat("a key of 64 byte", 4)))
	for _, c := range []struct {
		rule, document string
		place          string // "" = it is no secret
	}{
		{"the key of an account in a target label", minimal + "  target: {team: " + accountKey + "}", "processors[0] (orders).target.team"},
		{"without its padding", minimal + "  target: {team: " + accountKey[:86] + "}", "processors[0] (orders).target.team"},
		{"within a text", minimal + "  target: {note: 'use " + accountKey + " here'}", "processors[0] (orders).target.note"},
		{"a connection string of Cosmos DB", minimal + "  target: {to: 'AccountEndpoint=https://a.documents.azure.com/;accountkey=" + testKey + "'}", "processors[0] (orders).target.to"},
		{"a connection string of Service Bus", minimal + "  target: {to: 'Endpoint=sb://a/;SharedAccessKey=" + testKey + "'}", "processors[0] (orders).target.to"},
		{"a shared access signature", minimal + "  target: {to: 'https://a.example/?sv=1&sig=" + testKey + "'}", "processors[0] (orders).target.to"},
		{"in a name that the SDK gets", minimal + "  processorName: " + strings.ReplaceAll(accountKey, "/", "+"), "processors[0] (orders).processorName"},
		{"in a label of a group", "groups: [{name: g, target: {team: " + accountKey + "}}]" + minimal + "  group: g\n", "groups[0] (g).target.team"},
		{"in a name of a label", minimal + "  target: {? " + accountKey + " : team}", "processors[0] (orders).target.a text of 88 characters"},
		{"in the defaults", "defaults: {target: {team: " + accountKey + "}}" + minimal, "defaults.target.team"},
		{"a hexadecimal digest is none", minimal + "  target: {sha512: " + digest + ", short: " + digest[:88] + ", upper: " + strings.ToUpper(digest[:86]) + "}", ""},
		{"nor a longer text in base64", minimal + "  target: {token: " + accountKey[:86] + accountKey[:40] + "}", ""},
		{"nor a word that ends in sig", minimal + "  target: {note: 'orsig=1'}", ""},
		{"nor the id of a container app", minimal + "  target: {containerAppId: /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/Shop/providers/Microsoft.App/containerApps/Orders}", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			got := mistakes(t, c.document)
			if c.place == "" {
				if got != nil {
					t.Errorf("got %v, want no mistake", got)
				}
				return
			}
			if len(got) != 1 || got[0].Field != c.place {
				t.Fatalf("got %v, want one mistake at %s", got, c.place)
			}
			contains(t, got, "looks like a secret")
			if strings.Contains(got.Error(), accountKey[:20]) {
				t.Errorf("the secret is shown: %v", got)
			}
		})
	}
}

func TestAPlaceholderThatNothingReplacedIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ value, want string }{
		{"${DB}", `holds the placeholder "${DB}", which nothing replaced`},
		{"shop-${STAGE:-test}", `holds the placeholder "${STAGE:-test}"`},
		{"$(DB)", `holds the placeholder "$(DB)"`},
		{"'{{ .Values.db }}'", `holds the placeholder "{{ .Values.db }}"`},
		{"${AccountKey=" + testKey + "}", "looks like a secret"},
	} {
		t.Run(c.value, func(t *testing.T) {
			t.Parallel()
			got := mistakes(t, strings.Replace(minimal, "databaseId: shop", "databaseId: "+c.value, 1))
			if len(got) != 1 || got[0].Field != "processors[0] (orders).databaseId" {
				t.Fatalf("got %v, want one mistake", got)
			}
			contains(t, got, c.want)
		})
	}
	_, err := config.ParseCosmosConnection(lookupIn(map[string]string{"COSMOS": "${COSMOS_CONNECTION}"}), "COSMOS")
	contains(t, err, `the setting COSMOS holds the placeholder "${COSMOS_CONNECTION}", which nothing replaced`)
}

func TestAGroupWithoutMembersIsRefused(t *testing.T) {
	t.Parallel()
	got := mistakes(t, "groups: [{name: shop-workers}, {name: bare}]"+minimal+"  group: shop-workers\n")
	if len(got) != 1 {
		t.Fatalf("got %v, want one mistake", got)
	}
	contains(t, got, "groups[1] (bare): has no members; allowed is a group that a processor names in its field group")
	// So is one whose only member misspells its name, beside the nearest name.
	got = mistakes(t, "groups: [{name: shop-workers}]"+minimal+"  group: shop-worker\n")
	if len(got) != 2 {
		t.Fatalf("got %v, want two mistakes", got)
	}
	contains(t, got, "groups[0] (shop-workers): has no members")
	contains(t, got, "did you mean shop-workers?")
}

func TestAConnectionStringOfAnotherServiceIsRefused(t *testing.T) {
	t.Parallel()
	storage := "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey=" + testKey + ";EndpointSuffix=core.windows.net"
	bus := "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccessKey=" + testKey
	cosmos := "AccountEndpoint=https://shop.documents.azure.com/;AccountKey=" + testKey
	parseCosmos := func(lookup func(string) (string, bool)) error {
		_, err := config.ParseCosmosConnection(lookup, "X")
		return err
	}
	parseBus := func(lookup func(string) (string, bool)) error {
		_, err := config.ParseServiceBusConnection(lookup, "X", "queue")
		return err
	}
	parseStorage := func(lookup func(string) (string, bool)) error {
		text, _ := lookup("X")
		_, err := config.ReadSettings([]string{"FEEDSCALE_STATE=table:X/feedscale", "X=" + text})
		return err
	}
	for _, c := range []struct {
		name  string
		text  string
		parse func(func(string) (string, bool)) error
		want  string
	}{
		{"Storage for Cosmos DB", storage, parseCosmos, "the setting X has no AccountEndpoint; allowed is AccountEndpoint=https://ACCOUNT.documents.azure.com:443/;AccountKey=...;"},
		{"Azurite for Cosmos DB", "UseDevelopmentStorage=true", parseCosmos, "has no AccountEndpoint; allowed is AccountEndpoint="},
		{"MongoDB for Cosmos DB", "mongodb://shop:" + testKey + "@shop.mongo.cosmos.azure.com:10255/?ssl=true&replicaSet=globaldb", parseCosmos, "has no AccountEndpoint; allowed is AccountEndpoint="},
		{"MongoDB vCore for Cosmos DB", "mongodb+srv://shop:" + testKey + "@shop.mongocluster.cosmos.azure.com/", parseCosmos, "has no AccountEndpoint; allowed is AccountEndpoint="},
		{"Service Bus for Cosmos DB", bus, parseCosmos, "has no AccountEndpoint; allowed is AccountEndpoint="},
		{"Cosmos DB for Service Bus", cosmos, parseBus, "is no connection string of Service Bus: its Endpoint is not an address; allowed is sb://HOST/"},
		{"Storage for Service Bus", storage, parseBus, "is no connection string of Service Bus"},
		{"Cosmos DB for Storage", cosmos, parseStorage, "names no account; allowed is AccountName=...;AccountKey=..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			contains(t, c.parse(lookupIn(map[string]string{"X": c.text})), c.want)
		})
	}
}

func TestANameThatAnotherEntryHasIsNotSuggested(t *testing.T) {
	t.Parallel()
	got := load(t, `
defaults: {connection: COSMOS, databaseId: shop, containerId: orders}
processors:
- {name: a, processorName: order-projection}
- {name: b, processorName: order-projektion}
- {name: c, processorName: order-projection, containerId: payments}
`)
	for i, want := range []string{"order-projection order-projektion", "order-projection order-projektion", "order-projection"} {
		if names := strings.Join(got[i].NamesInUse, " "); names != want {
			t.Errorf("processor %s: got %q, want %q", got[i].Name, names, want)
		}
	}
}
