package testworld

import (
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

// SDK returns a client of the account from its connection string, as an application has it.
func SDK(t testing.TB, connection string) *azcosmos.Client {
	t.Helper()
	return newSDK(t, connection, bounded.NewClient())
}

func newSDK(t testing.TB, connection string, transport policy.Transporter) *azcosmos.Client {
	t.Helper()
	client, err := azcosmos.NewClientFromConnectionString(connection, &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: transport}})
	Must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// Documents reads all documents of a container.
func Documents[T any](t testing.TB, client *azcosmos.Client, database, container string) []T {
	t.Helper()
	from, err := client.NewContainer(database, container)
	Must(t, err)
	var all []T
	pager := from.NewQueryItemsPager("SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	for pager.More() {
		page, err := pager.NextPage(t.Context())
		Must(t, err)
		for _, item := range page.Items {
			all = append(all, Decode[T](t, item))
		}
	}
	return all
}

// ReadLeases reads the leases of .NET in a container, those alone whose ids begin with a prefix.
func ReadLeases(t testing.TB, client *azcosmos.Client, database, container, prefix string) []leasefake.DotNetLease {
	t.Helper()
	var leases []leasefake.DotNetLease
	for _, l := range Documents[leasefake.DotNetLease](t, client, database, container) {
		if strings.HasPrefix(l.ID, prefix) && strings.Contains(l.ID, "..") {
			leases = append(leases, l)
		}
	}
	return leases
}
