package cosmosfake_test

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func sdk(t *testing.T, s *cosmosfake.Server, transport policy.Transporter) *azcosmos.Client {
	t.Helper()
	credential, err := azcosmos.NewKeyCredential(cosmosfake.WellKnownKey)
	testworld.Must(t, err)
	options := &azcosmos.ClientOptions{ClientOptions: policy.ClientOptions{Transport: cmp.Or[policy.Transporter](transport, bounded.NewClient())}}
	c, err := azcosmos.NewClientWithKey(s.Endpoint(), credential, options)
	testworld.Must(t, err)
	return c
}

func status(t *testing.T, err error) int {
	t.Helper()
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("not an answer of the service: %v", err)
	}
	return answer.StatusCode
}

func TestTheGoSDKCannotTellTheDifference(t *testing.T) {
	t.Parallel()
	// A certificate of the standard library's own test server: TLS is part of what clients expect.
	secure := httptest.NewUnstartedServer(nil)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	s := start(t, cosmosfake.Options{TLS: &tls.Config{Certificates: secure.TLS.Certificates}, Regions: []string{"East US", "West US"}})
	if !strings.HasPrefix(s.Endpoint(), "https://") {
		t.Fatalf("endpoint %s", s.Endpoint())
	}
	ctx := t.Context()
	client := sdk(t, s, secure.Client())
	_, err := client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: "go"}, nil)
	testworld.Must(t, err)
	database, err := client.NewDatabase("go")
	testworld.Must(t, err)
	throughput := azcosmos.NewManualThroughputProperties(20000)
	properties := azcosmos.ContainerProperties{ID: "orders", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/customer"}}}
	_, err = database.CreateContainer(ctx, properties, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput})
	testworld.Must(t, err)
	container, err := database.NewContainer("orders")
	testworld.Must(t, err)

	if got, err := container.ReadThroughput(ctx, nil); err != nil {
		t.Error(err)
	} else if rus, _ := got.ThroughputProperties.ManualThroughput(); rus != 20000 {
		t.Errorf("throughput %d", rus)
	}
	// Fixed throughput becomes autoscaled by a migration only, which this SDK has not; more than
	// the ranges serve is pending.
	if _, err := container.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(30000), nil); status(t, err) != http.StatusBadRequest {
		t.Error(err)
	}
	if got, err := container.ReplaceThroughput(ctx, azcosmos.NewManualThroughputProperties(30000), nil); err != nil || !got.IsReplacePending {
		t.Errorf("replaced with %+v, %v", got, err)
	}
	auto := azcosmos.NewAutoscaleThroughputProperties(30000)
	scaled := properties
	scaled.ID = "scaled"
	_, err = database.CreateContainer(ctx, scaled, &azcosmos.CreateContainerOptions{ThroughputProperties: &auto})
	testworld.Must(t, err)
	other, err := database.NewContainer("scaled")
	testworld.Must(t, err)
	if _, err := other.ReplaceThroughput(ctx, azcosmos.NewAutoscaleThroughputProperties(20000), nil); err != nil {
		t.Error(err)
	}
	if got, err := other.ReadThroughput(ctx, nil); err != nil {
		t.Error(err)
	} else if most, _ := got.ThroughputProperties.AutoscaleMaxThroughput(); most != 20000 || got.IsReplacePending || *got.MinThroughput != 3000 {
		t.Errorf("autoscaled to %d, at least %d", most, *got.MinThroughput)
	}
	key := func(i int) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(fmt.Sprint("c", i%5)) }
	body := func(i int) []byte { return fmt.Appendf(nil, `{"id":"o%d","customer":"c%d","total":%d}`, i, i%5, i) }
	for i := range 20 {
		_, err := container.CreateItem(ctx, key(i), body(i), nil)
		testworld.Must(t, err)
	}
	_, err = container.CreateItem(ctx, key(1), body(1), nil)
	if status(t, err) != http.StatusConflict {
		t.Error(err)
	}
	read, err := container.ReadItem(ctx, key(1), "o1", nil)
	testworld.Must(t, err)
	stale := read.ETag
	_, err = container.ReplaceItem(ctx, key(1), "o1", body(1), &azcosmos.ItemOptions{IfMatchEtag: &stale})
	testworld.Must(t, err)
	_, err = container.ReplaceItem(ctx, key(1), "o1", body(1), &azcosmos.ItemOptions{IfMatchEtag: &stale})
	if status(t, err) != http.StatusPreconditionFailed {
		t.Error(err)
	}
	patch := azcosmos.PatchOperations{}
	patch.AppendIncrement("/total", 100)
	_, err = container.PatchItem(ctx, key(1), "o1", patch, nil)
	testworld.Must(t, err)

	batch := container.NewTransactionalBatch(azcosmos.NewPartitionKeyString("c1"))
	batch.UpsertItem(body(21), nil)
	batch.DeleteItem("o6", nil)
	batch.CreateItem(body(1), nil)
	done, err := container.ExecuteTransactionalBatch(ctx, batch, nil)
	testworld.Must(t, err)
	if done.Success || done.OperationResults[0].StatusCode != 424 || done.OperationResults[2].StatusCode != 409 {
		t.Errorf("batch %+v", done.OperationResults)
	}

	many, err := container.ReadManyItems(ctx, []azcosmos.ItemIdentity{{ID: "o2", PartitionKey: key(2)}, {ID: "o3", PartitionKey: key(3)}, {ID: "no", PartitionKey: key(3)}}, nil)
	testworld.Must(t, err)
	if len(many.Items) != 2 {
		t.Errorf("read many: %d", len(many.Items))
	}
	found := 0
	pager := container.NewQueryItemsPager("SELECT * FROM c WHERE c.total >= @n", azcosmos.NewPartitionKey(), &azcosmos.QueryOptions{PageSizeHint: 3, QueryParameters: []azcosmos.QueryParameter{{Name: "@n", Value: 10}}})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		testworld.Must(t, err)
		found += len(page.Items)
	}
	if found != 11 {
		t.Errorf("the query found %d", found)
	}
	pager = container.NewQueryItemsPager("SELECT * FROM c ORDER BY c.total", azcosmos.NewPartitionKey(), nil)
	if _, err := pager.NextPage(ctx); status(t, err) != http.StatusBadRequest {
		t.Error(err)
	}
}

// feedOf reads the whole container's feed from a continuation on.
func feedOf(t *testing.T, container *azcosmos.ContainerClient, continuation string) (ids map[string]bool, next string) {
	t.Helper()
	ids = map[string]bool{}
	o := &azcosmos.ChangeFeedOptions{MaxItemCount: 3, FeedRange: &azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}}
	for {
		if continuation != "" {
			o = &azcosmos.ChangeFeedOptions{MaxItemCount: 3, Continuation: &continuation}
		}
		page, err := container.ReadChangeFeed(t.Context(), o)
		testworld.Must(t, err)
		continuation = page.ContinuationToken
		if page.Count == 0 {
			return ids, continuation
		}
		for _, text := range page.Items {
			var item struct{ ID string }
			testworld.Must(t, json.Unmarshal(text, &item))
			if ids[item.ID] {
				t.Errorf("%s came twice", item.ID)
			}
			ids[item.ID] = true
		}
	}
}

func TestTheGoSDKFollowsASplit(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	database, err := sdk(t, s, nil).NewDatabase("db")
	testworld.Must(t, err)
	container, err := database.NewContainer("c")
	testworld.Must(t, err)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i))))
		}
	}
	write(0, 20)
	seen, continuation := feedOf(t, container, "")
	if len(seen) != 20 {
		t.Errorf("saw %d", len(seen))
	}
	_, err = s.Split("db", "c", "0")
	testworld.Must(t, err)
	write(20, 40)
	if seen, _ = feedOf(t, container, continuation); len(seen) != 20 {
		t.Errorf("after the split, saw %d", len(seen))
	}
}

// What facts about azcosmos 1.5.0 were gathered from running code: it gives up where a split begins
// while it reads the ranges, because the range that splits then comes twice.
func TestARangeComesAgainWhereASplitBeginsWhileRangesAreRead(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	var begun bool
	s.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReadRanges && r.Header.Get("If-None-Match") != "" && !begun {
			begun = true
			if _, err := s.StartSplit("db", "c", "0"); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	database, err := sdk(t, s, nil).NewDatabase("db")
	testworld.Must(t, err)
	container, err := database.NewContainer("c")
	testworld.Must(t, err)
	if _, err := container.ReadFeedRanges(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("got %v", err)
	}
}

func TestTheGoSDKWaitsWhereItIsThrottled(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	testworld.Must(t, s.Upsert("db", "c", doc("d")))
	database, err := sdk(t, s, nil).NewDatabase("db")
	testworld.Must(t, err)
	container, err := database.NewContainer("c")
	testworld.Must(t, err)
	s.Control(cosmosfake.Times(2, cosmosfake.ReadDocument, cosmosfake.Answer{Status: 429, Substatus: 3200, Header: http.Header{"X-Ms-Retry-After-Ms": {"1"}}}))
	if _, err := container.ReadItem(t.Context(), azcosmos.NewPartitionKeyString("d"), "d", nil); err != nil {
		t.Error(err)
	}
	if got := s.Requests().Requests[cosmosfake.ReadDocument]; got != 3 {
		t.Errorf("%d requests", got)
	}
	if s.Requests().Charge <= 0 {
		t.Error("nothing was charged")
	}
}
