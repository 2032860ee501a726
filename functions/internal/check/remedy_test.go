package check

import (
	"testing"

	"github.com/feedscale/feedscale/functions/internal/connect"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// The remedies of a queue in Azure, whose port a black-box test cannot have.

const objectID = "11111111-2222-3333-4444-555555555555"

func access(byKey bool) queueAccess {
	bus := config.ServiceBusConnection{Setting: "SERVICEBUS", Namespace: "shop.servicebus.windows.net"}
	if byKey {
		bus.ConnectionString = config.NewSecret("Endpoint=sb://shop.servicebus.windows.net/")
	}
	return queueAccess{Access: connect.BusAccess(bus), queue: "scale", endpoint: busEndpoint(bus), who: principal{object: objectID}}
}

func TestAQueueInAzureIsNamedInWhatMendsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		byKey bool
		kind  servicebus.Kind
		want  string
	}{
		{"an identity without the role", false, servicebus.NotPermitted, "az role assignment create --assignee-object-id " + objectID + " --assignee-principal-type ServicePrincipal --role 'Azure Service Bus Data Sender' " +
			"--scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.ServiceBus/namespaces/shop/queues/scale   # /topics/ where it is a topic"},
		{"a key without the right", true, servicebus.NotPermitted, "az servicebus namespace authorization-rule keys list --resource-group RESOURCE_GROUP --namespace-name shop --name POLICY " +
			"--query primaryConnectionString --output tsv   # of a policy with the Send right, into setting SERVICEBUS"},
		{"no such queue", false, servicebus.QueueNotFound, "az servicebus queue create --resource-group RESOURCE_GROUP --namespace-name shop --name scale --enable-duplicate-detection true --duplicate-detection-history-time-window PT10M   # or servicebus topic create"},
		{"the network rules", true, servicebus.NetworkDenied, "az servicebus namespace network-rule-set ip-rule add --resource-group RESOURCE_GROUP --namespace-name shop --ip-rule ip-address=PUBLIC_IP action=Allow"},
	} {
		if got := access(c.byKey).fix(c.kind); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.rule, got, c.want)
		}
	}
}
