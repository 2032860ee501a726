package config_test

import (
	"testing"

	"github.com/feedscale/feedscale/pkg/config"
)

const accountID = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop"

func TestAnIdentityFollowsThroughputByTheResourceIDOfItsAccount(t *testing.T) {
	t.Parallel()
	const document = `processors: [{name: orders, connection: COSMOS, databaseId: shop, containerId: orders, throughput: {mode: apply, containers: [{container: orders}]}}]`
	read, err := config.Load("processors.yaml", []byte(document), lookupIn(map[string]string{
		"COSMOS__accountEndpoint": "https://shop.documents.azure.com/", "COSMOS__resourceId": accountID,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Processors[0].Throughput.Containers[0].Connection.ResourceID; got != accountID {
		t.Errorf("the resource id is %q", got)
	}
}

func TestThroughputThatIsOffHasNoContainers(t *testing.T) {
	t.Parallel()
	const document = `
defaults: {connection: COSMOS, databaseId: shop, containerId: orders, throughput: {mode: apply, containers: [{container: orders}]}}
processors: [{name: follows}, {name: does-not, processorName: other, throughput: {mode: "off"}}]`
	read := load(t, document)
	if on, off := read[0].Throughput, read[1].Throughput; on.Mode != config.ThroughputApply || len(on.Containers) != 1 || off.Mode != config.ThroughputOff || len(off.Containers) != 0 {
		t.Errorf("on %+v, off %+v", on, off)
	}
}
