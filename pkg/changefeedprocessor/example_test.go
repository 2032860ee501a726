package changefeedprocessor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// account is a stand-in with the containers orders, which has some documents, and leases.
func account() (connection string, end func()) {
	server, err := cosmosfake.Start(cosmosfake.Options{})
	if err != nil {
		log.Fatal(err)
	}
	err = errors.Join(
		server.CreateDatabase("shop"),
		server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}}),
		server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "leases", PartitionKey: []string{"/id"}, DefaultTTL: -1}),
		server.Upsert("shop", "orders", map[string]any{"id": "1", "total": 10}),
		server.Upsert("shop", "orders", map[string]any{"id": "2", "total": "ten"}),
		server.Upsert("shop", "orders", map[string]any{"id": "3", "total": 30}),
	)
	if err != nil {
		log.Fatal(err)
	}
	return server.ConnectionString(), func() { _ = server.Close() }
}

type order struct {
	ID    string `json:"id"`
	Total int    `json:"total"`
}

// A host decodes what it handles, puts aside what does not decode, and is asked how far behind it is.
func Example() {
	connection, end := account()
	defer end()
	client, err := azcosmos.NewClientFromConnectionString(connection, changefeedprocessor.ClientOptions(nil))
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: "shop", ID: "orders"},
		changefeedprocessor.Container{Client: client, Database: "shop", ID: "leases"},
		changefeedprocessor.Options{
			Name: "projection", Instance: "host-1", FromBeginning: true,
			Handle: changefeedprocessor.Of(func(_ context.Context, _ changefeedprocessor.Batch, orders []order) error {
				for _, o := range orders {
					fmt.Println("order", o.ID, "of", o.Total)
				}
				return nil
			}),
			Poison: func(_ context.Context, p changefeedprocessor.Poisoned) error {
				fmt.Println("put aside", p.ID)
				return nil // once it is in your dead-letter container
			},
			Observe: func(o changefeedprocessor.Observation) {
				if o.Checkpointed {
					close(done)
				}
			},
		})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		<-done
		stop()
	}()
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
	states, err := p.Estimate(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range states {
		fmt.Println("lease", s.Lease, "is", *s.Lag, "behind")
	}
	// Output:
	// order 1 of 10
	// put aside 2
	// order 3 of 30
	// lease 0 is 0 behind
}

// A host checkpoints when it has written what it made of several batches.
func ExampleBatch_Checkpoint() {
	connection, end := account()
	defer end()
	client, err := azcosmos.NewClientFromConnectionString(connection, changefeedprocessor.ClientOptions(nil))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	var pending []string
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: "shop", ID: "orders"},
		changefeedprocessor.Container{Client: client, Database: "shop", ID: "leases"},
		changefeedprocessor.Options{
			Name: "archive", Instance: "host-1", FromBeginning: true, Manual: true, MaxItems: 1,
			Handle: func(ctx context.Context, b changefeedprocessor.Batch) error {
				for _, item := range b.Items {
					pending = append(pending, string(item))
				}
				if len(pending) < 3 {
					return nil
				}
				fmt.Println("wrote", len(pending), "orders")
				err := b.Checkpoint(ctx) // the batches before are done as well
				stop()
				return err
			},
		})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// wrote 3 orders
}
