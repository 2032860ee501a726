package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// The load of the change feed processor's measurement.
const (
	feedRanges    = 8
	feedDocuments = 80_000
	feedPage      = 100
)

// processorThroughput compares a host of the change feed processor with a minimal loop over
// azcosmos, which reads each range page by page and replaces a document with the continuation after
// each page. Neither does anything with the changes. Both use the same stand-in in this process.
func processorThroughput(string) (err error) {
	account, err := cosmosfake.Start(cosmosfake.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	if err := errors.Join(
		account.CreateDatabase(database),
		account.CreateContainer(database, cosmosfake.ContainerSpec{ID: "feed", PartitionKey: []string{"/id"}, Partitions: feedRanges}),
		account.CreateContainer(database, cosmosfake.ContainerSpec{ID: "positions", PartitionKey: []string{"/id"}, DefaultTTL: -1}),
	); err != nil {
		return err
	}
	for i := range feedDocuments {
		if err := account.Upsert(database, "feed", map[string]any{"id": fmt.Sprint("document-", i), "n": i}); err != nil {
			return err
		}
	}
	var bare, host float64
	for range 3 { // the best of three runs each, in turns
		bare = max(bare, pages(bareFeed, account))
		host = max(host, pages(hostFeed, account))
	}
	row("pages/s, a loop over azcosmos with a checkpoint a page", fmt.Sprintf("%.0f", bare), "-")
	row("pages/s, a host of the change feed processor", fmt.Sprintf("%.0f", host), "-")
	row("  ratio", fmt.Sprintf("%.2f", host/bare), "at least 0.8")
	return nil
}

// pages returns how many pages a second a reader handles; 0 if it fails.
func pages(read func(context.Context, *cosmosfake.Server) (int64, error), account *cosmosfake.Server) float64 {
	ctx, end := context.WithTimeout(context.Background(), 5*time.Minute)
	defer end()
	began := time.Now()
	n, err := read(ctx, account)
	if err != nil {
		fmt.Println("  failed:", err)
		return 0
	}
	return float64(n) / time.Since(began).Seconds()
}

func bareFeed(ctx context.Context, account *cosmosfake.Server) (int64, error) {
	client, err := azcosmos.NewClientFromConnectionString(account.ConnectionString(), nil)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	feed, err := client.NewContainer(database, "feed")
	if err != nil {
		return 0, err
	}
	positions, err := client.NewContainer(database, "positions")
	if err != nil {
		return 0, err
	}
	ranges, err := feed.ReadFeedRanges(ctx, nil)
	if err != nil {
		return 0, err
	}
	var read atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, len(ranges))
	for i, r := range ranges {
		running.Go(func() { errs[i] = bareRange(ctx, feed, positions, r, &read) })
	}
	running.Wait()
	return read.Load(), errors.Join(errs...)
}

func bareRange(ctx context.Context, feed, positions *azcosmos.ContainerClient, r azcosmos.FeedRange, read *atomic.Int64) error {
	id := fmt.Sprintf("bare-%d-%s", time.Now().UnixNano(), r.MaxExclusive)
	key := azcosmos.NewPartitionKeyString(id)
	position := map[string]string{"id": id}
	text, err := json.Marshal(position)
	if err != nil {
		return err
	}
	created, err := positions.CreateItem(ctx, key, text, nil)
	if err != nil {
		return err
	}
	tag := created.ETag
	for {
		options := &azcosmos.ChangeFeedOptions{FeedRange: &r, MaxItemCount: feedPage}
		if at := position["at"]; at != "" {
			options.Continuation = &at
		}
		page, err := feed.ReadChangeFeed(ctx, options)
		if err != nil || len(page.Items) == 0 {
			return err
		}
		position["at"] = page.ContinuationToken
		if text, err = json.Marshal(position); err != nil {
			return err
		}
		replaced, err := positions.ReplaceItem(ctx, key, id, text, &azcosmos.ItemOptions{IfMatchEtag: &tag})
		if err != nil {
			return err
		}
		tag = replaced.ETag
		read.Add(1)
	}
}

func hostFeed(ctx context.Context, account *cosmosfake.Server) (int64, error) {
	client, err := azcosmos.NewClientFromConnectionString(account.ConnectionString(), changefeedprocessor.ClientOptions(nil))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var read, handled atomic.Int64
	p, err := changefeedprocessor.New(
		changefeedprocessor.Container{Client: client, Database: database, ID: "feed"},
		changefeedprocessor.Container{Client: client, Database: database, ID: "positions"},
		changefeedprocessor.Options{
			Name: fmt.Sprint("bench-", time.Now().UnixNano()), Instance: "host", FromBeginning: true, MaxItems: feedPage,
			Handle: func(context.Context, changefeedprocessor.Batch) error { return nil },
			Observe: func(o changefeedprocessor.Observation) {
				if o.Checkpointed {
					read.Add(1)
					if handled.Add(int64(o.Items)) == feedDocuments {
						stop()
					}
				}
			},
		})
	if err != nil {
		return 0, err
	}
	err = p.Run(ctx)
	return read.Load(), err
}
