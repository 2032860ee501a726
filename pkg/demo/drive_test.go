package demo_test

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/feedscale/feedscale/pkg/demo"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// TestADrivenContainerIsWrittenToAndProcessed waits until the replica asks for its second page.
func TestADrivenContainerIsWrittenToAndProcessed(t *testing.T) {
	t.Parallel()
	account, err := cosmosfake.Start(cosmosfake.Options{})
	testworld.Must(t, err)
	defer account.Close()
	testworld.Must(t, account.CreateDatabase("shop"))
	for _, id := range []string{"orders", "leases"} {
		testworld.Must(t, account.CreateContainer("shop", cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}, Partitions: 1}))
	}
	processed := make(chan struct{})
	var once sync.Once
	account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if at, err := strconv.Atoi(strings.Trim(r.Header.Get("If-None-Match"), `"`)); r.Kind == cosmosfake.ReadChangeFeed && err == nil && at >= 10 {
			once.Do(func() { close(processed) })
		}
		return nil
	})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- demo.Drive(ctx, account, "shop", "orders", 100, slog.New(slog.DiscardHandler))
	}()
	<-processed
	end()
	testworld.Must(t, <-ended)
	if err := demo.Drive(t.Context(), account, "shop", "nowhere", 100, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "writing load") {
		t.Errorf("to a container that does not exist: %v", err)
	}
}
