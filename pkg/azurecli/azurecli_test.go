package azurecli_test

import (
	"testing"

	"github.com/feedscale/feedscale/pkg/azurecli"
)

func TestWhatTheShellWouldReadIsQuoted(t *testing.T) {
	t.Parallel()
	const want = `az x plain a-b_c./:,=@9 'two words' '' 'it'\''s' '$(reboot)' 'größe'`
	if got := azurecli.Command("x", "plain", "a-b_c./:,=@9", "two words", "", "it's", "$(reboot)", "größe"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAHostInAzureNamesItsResource(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule    string
		service azurecli.Service
		host    string
		want    string
		hosts   bool
	}{
		{"an account in Azure", azurecli.Cosmos, "shop.documents.azure.com", "shop", true},
		{"in another cloud", azurecli.Cosmos, "shop.documents.azure.us", "shop", true},
		{"a stand-in", azurecli.Cosmos, "127.0.0.1:8081", "ACCOUNT", false},
		{"the host of another service", azurecli.Table, "shop.documents.azure.com", "STORAGE_ACCOUNT", false},
		{"a namespace", azurecli.ServiceBus, "shop.servicebus.windows.net", "shop", true},
		{"an emulator of one", azurecli.ServiceBus, "localhost", "NAMESPACE", false},
	} {
		if got := c.service.Resource(c.host); got != c.want || c.service.Hosts(c.host) != c.hosts {
			t.Errorf("%s: got %s", c.rule, got)
		}
	}
	const id = "/subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.ServiceBus/namespaces/shop"
	if got := azurecli.ServiceBus.ID("shop.servicebus.windows.net"); got != id {
		t.Errorf("got %s", got)
	}
}
