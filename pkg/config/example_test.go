package config_test

import (
	"fmt"

	"github.com/feedscale/feedscale/pkg/config"
)

// settings are environment variables, as a lookup of their values.
func settings(name string) (string, bool) {
	value, ok := map[string]string{"COSMOS__accountEndpoint": "https://shop.documents.azure.com/"}[name]
	return value, ok
}

// What a processor does not set has the defaults of docs/configure.md.
func ExampleLoad() {
	read, err := config.Load("processors.yaml", []byte(`
processors:
- name: orders
  connection: COSMOS
  databaseId: shop
  containerId: orders
  maxReplicaCount: 8
`), settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := read.Processors[0]
	fmt.Printf("%s reads %s/%s of %s\n", p.Name, p.DatabaseID, p.ContainerID, p.Connection.Host)
	fmt.Printf("leases in %s/%s\n", p.LeaseDatabaseID, p.LeaseContainerID)
	fmt.Printf("one replica per %d pending transactions, up to %d\n", p.Policy.Threshold, *p.Policy.MaxReplicas)
	// Output:
	// orders reads shop/orders of shop.documents.azure.com
	// leases in shop/leases
	// one replica per 100 pending transactions, up to 8
}

// All mistakes are reported at once, each with its place and with what is allowed.
func ExampleLoad_mistakes() {
	_, err := config.Load("processors.yaml", []byte(`
processors:
- name: orders
  connection: COSMOS
  databaseId: shop
  containerID: orders
  minReplicaCount: -1
`), settings)
	fmt.Println(err)
	// Output:
	// processors.yaml:3: processors[0] (orders).containerId: is missing; allowed are 1 to 255 characters without / \ # ? and without a space at the end, here or in defaults
	// processors.yaml:6: processors[0] (orders).containerID: is an unknown field; did you mean containerId?
	// processors.yaml:7: processors[0] (orders).minReplicaCount: is -1; allowed are whole numbers, 0 or more
}
