package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
)

const (
	database            = "bench"
	leaseContainer      = "leases"
	leaseHost           = "bench.documents.azure.com"
	backlogPerPartition = 4 // documents per partition, on average
)

func containerID(i int) string   { return fmt.Sprintf("container-%d", i) }
func processorName(i int) string { return fmt.Sprintf("projection-%d-", i) }

// serveStandIn is the other process. It prints its connection string and serves until its standard
// input is closed. Its arguments are those of startStandIn.
func serveStandIn(args []string) error {
	containers, err1 := strconv.Atoi(args[0])
	partitions, err2 := strconv.Atoi(args[1])
	processors, err3 := strconv.Atoi(args[2])
	delay, err4 := time.ParseDuration(args[3])
	bytes, err5 := strconv.Atoi(args[4])
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			return err
		}
	}
	server, err := cosmosfake.Start(cosmosfake.Options{})
	if err != nil {
		return err
	}
	if err := fill(server, containers, partitions, processors, bytes); err != nil {
		return err
	}
	if delay > 0 {
		server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
			if r.Kind == cosmosfake.ReadChangeFeed {
				return &cosmosfake.Answer{Delay: delay}
			}
			return nil
		})
	}
	fmt.Println(server.ConnectionString())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}

// fill makes the containers, leases at LSN 0, and changes: several small ones in each partition, or
// one of so many bytes.
func fill(server *cosmosfake.Server, containers, partitions, processors, bytes int) error {
	if err := server.CreateDatabase(database); err != nil {
		return err
	}
	if err := server.CreateContainer(database, cosmosfake.ContainerSpec{ID: leaseContainer, PartitionKey: []string{"/id"}}); err != nil {
		return err
	}
	for i := range containers {
		id := containerID(i)
		if err := server.CreateContainer(database, cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}, Partitions: partitions}); err != nil {
			return err
		}
		if err := fillContainer(server, id, partitions, processors, bytes); err != nil {
			return err
		}
	}
	return nil
}

func fillContainer(server *cosmosfake.Server, id string, partitions, processors, bytes int) error {
	of, err := leasefake.Processor{Host: leaseHost, Database: database, Container: id}.In(context.Background(), server)
	if err != nil {
		return err
	}
	for lease := range partitions * processors {
		of.Name = processorName(lease / partitions)
		whole := leasefake.Range{Max: "FF"} // the same for every lease: only a split would use it
		document := of.DotNetPK(strconv.Itoa(lease%partitions), whole, leasefake.Fields{Owner: "worker-1", Continuation: leasefake.At(0), Updated: time.Now()})
		if err := server.Upsert(database, leaseContainer, document); err != nil {
			return err
		}
	}
	if bytes > 0 {
		return fillLarge(server, id, partitions, bytes)
	}
	for n := range partitions * backlogPerPartition {
		if err := server.Upsert(database, id, map[string]any{"id": fmt.Sprintf("document-%d", n), "customer": "Contoso", "amount": n, "status": "new"}); err != nil {
			return err
		}
	}
	return nil
}

// fillLarge writes one document to each partition. It learns which id belongs to which partition in
// another container with the same number of partitions.
func fillLarge(server *cosmosfake.Server, id string, partitions, bytes int) error {
	const trial = "trial"
	if err := server.CreateContainer(database, cosmosfake.ContainerSpec{ID: trial, PartitionKey: []string{"/id"}, Partitions: partitions}); err != nil {
		return err
	}
	account, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 1})
	if err != nil {
		return err
	}
	newest := func(partition int) (string, error) {
		answer, _, err := account.FeedPage(context.Background(), cosmos.Container{Database: database, ID: trial}, changefeed.Position{Range: strconv.Itoa(partition), Continuation: "*"})
		return answer.SessionToken, err
	}
	text := strings.Repeat("x", bytes-1<<10)
	for partition := range partitions {
		before, err := newest(partition)
		for n := 0; err == nil; n++ {
			document := fmt.Sprintf("document-%d", n)
			if err = server.Upsert(database, trial, map[string]any{"id": document}); err != nil {
				break
			}
			var now string
			if now, err = newest(partition); err == nil && now != before {
				err = server.Upsert(database, id, map[string]any{"id": document, "text": text})
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
