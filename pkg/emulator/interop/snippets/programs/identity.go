//go:build snippets

// Command identity signs in to `feedscale emulate --any-token` without a key, and writes to both
// services.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("signed in")
}

func run(ctx context.Context) error {
	me, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return err
	}
	cosmos, err := azcosmos.NewClient(os.Getenv("COSMOS__accountEndpoint"), me, nil)
	if err != nil {
		return err
	}
	orders, err := cosmos.NewContainer("shop", "orders")
	if err != nil {
		return err
	}
	if _, err = orders.UpsertItem(ctx, azcosmos.NewPartitionKeyString("a"), []byte(`{"id":"1","customerId":"a"}`), nil); err != nil {
		return err
	}
	bus, err := azservicebus.NewClient(os.Getenv("SERVICEBUS__fullyQualifiedNamespace"), me, nil)
	if err != nil {
		return err
	}
	defer bus.Close(ctx)
	sender, err := bus.NewSender("scale-events", nil)
	if err != nil {
		return err
	}
	return sender.SendMessage(ctx, &azservicebus.Message{Body: []byte("hello")}, nil)
}
