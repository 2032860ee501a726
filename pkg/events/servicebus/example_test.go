package servicebus_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/events"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// A consumer that acts on one event and ends. The namespace is a stand-in; in a deployment the
// connection string is that of the namespace or of the queue, with the Listen right.
func ExampleConsumer() {
	namespace, err := servicebusfake.Start(servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: "scale-events"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer namespace.Close()
	decide(namespace.ConnectionString())

	consumer, err := servicebus.NewConsumer(namespace.ConnectionString(), "scale-events", servicebus.ConsumerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // of a program that runs on: signal.NotifyContext
	defer stop()
	err = consumer.Run(ctx, func(_ context.Context, e events.ScaleEvent) error {
		deployment, ok := e.Target["deployment"]
		if !ok {
			return fmt.Errorf("no deployment is named: %w", events.ErrDeadLetter)
		}
		fmt.Printf("scale %s to %d\n", deployment, e.DesiredReplicas)
		stop()
		return nil // which completes the message
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(namespace.Messages("scale-events")), "messages are left")
	// Output:
	// scale orders to 5
	// 0 messages are left
}

// decide publishes a decision, as feedscale does.
func decide(connectionString string) {
	body, err := events.ScaleEvent{
		Time: time.Now(),
		Data: events.Data{
			Processor: "orders", Sequence: 42, DesiredReplicas: 5, Active: true, Direction: "out", Status: "lagging",
			Target: map[string]string{"deployment": "orders"},
		},
	}.Encode()
	if err != nil {
		log.Fatal(err)
	}
	publisher, err := servicebus.NewPublisher(connectionString, "scale-events", servicebus.PublisherOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close(context.Background())
	if err := publisher.Publish(context.Background(), body); err != nil {
		log.Fatal(err)
	}
}
