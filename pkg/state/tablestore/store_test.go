package tablestore_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/azurite"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/storetest"
	"github.com/feedscale/feedscale/pkg/state/tablestore"
)

// account is the connection string of the Azurite of these tests. They share one, as each takes a
// processor of its own, and have a table each.
var account string

func TestMain(m *testing.M) {
	server, err := azurite.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	account = server.ConnectionString()
	code := m.Run()
	if code != 0 {
		fmt.Printf("Azurite wrote:\n%s", server.Output())
	}
	if err := server.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func TestStoreKeepsItsContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) state.Store { return open(t) })
}

// tableOf is the name of a table that no other test has.
func tableOf(t *testing.T) string {
	t.Helper()
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(t.Name())) // never fails
	return fmt.Sprintf("test%x", hash.Sum64())
}

// open opens the table of a test.
func open(t *testing.T) *tablestore.Store {
	t.Helper()
	store, err := tablestore.OpenWithConnectionString(account, tableOf(t), azcore.ClientOptions{Transport: bounded.NewClient()})
	if err != nil {
		t.Fatal(err)
	}
	return store
}
