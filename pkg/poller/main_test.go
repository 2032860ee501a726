package poller_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/azurite"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// started is the Azurite that the tests share, each with tables of its own.
var started *azurite.Server

var start = sync.OnceValue(func() (err error) {
	started, err = azurite.Start(context.Background())
	return err
})

// tables returns the connection string of the shared Azurite.
func tables(t *testing.T) string {
	t.Helper()
	testworld.Must(t, start())
	return started.ConnectionString()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		if err := started.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
