package cosmosfake_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// A long life of one range: the feed holds each document once, at the LSN of its last write, in the
// order of LSNs.
func TestTheFeedOfManyDocumentsStaysInOrder(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	last := map[string]int{}
	for lsn := 1; lsn <= 20_000; lsn++ {
		id := fmt.Sprint(random.IntN(3000))
		if _, exists := last[id]; exists && random.IntN(4) == 0 {
			testworld.Must(t, s.Delete("db", "c", id, id))
			delete(last, id)
			continue
		}
		testworld.Must(t, s.Upsert("db", "c", doc(id)))
		last[id] = lsn
	}
	seen, before, after := 0, 0, ""
	for {
		r, changes := c.feed("c", "0", after, "x-ms-max-item-count", "500")
		for _, change := range changes {
			if change.LSN <= before || last[change.ID] != change.LSN {
				t.Fatalf("%+v comes after %d, want it at %d", change, before, last[change.ID])
			}
			before = change.LSN
			seen++
		}
		if after = r.header.Get("etag"); r.status == http.StatusNotModified {
			break
		}
	}
	if seen != len(last) {
		t.Errorf("saw %d of %d documents", seen, len(last))
	}
	listed, _ := c.drain(everywhere("x-ms-max-item-count", "-1"), query("SELECT VALUE c.id FROM c"), nothing)
	if len(listed) != len(last) {
		t.Errorf("listed %d of %d documents", len(listed), len(last))
	}
}

// Writers, readers, queries, splits and merges at the same time: nothing fails that need not, and
// nothing is lost.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: 4})
	c := newClient(t, s)
	var work sync.WaitGroup
	var written atomic.Int64
	reshaped := make(chan struct{})
	for writer := range 4 {
		work.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-reshaped:
					return
				default:
				}
				if err := s.Upsert("db", "c", doc(fmt.Sprint(writer, "-", i%1000))); err != nil {
					t.Error(err)
				}
				if i < 1000 {
					written.Add(1)
				}
			}
		})
	}
	work.Go(func() {
		for range 50 {
			r, err := c.try("POST", "dbs/db/colls/c/docs", everywhere("x-ms-max-item-count", "-1", "x-ms-cosmos-sdk-supportedcapabilities", "1"), query("SELECT * FROM c WHERE c.n = 1"))
			if err != nil || r.status != http.StatusOK {
				t.Errorf("query: %v %s", err, r.body)
			}
		}
	})
	work.Go(func() {
		for i := range 200 {
			h := headers{"A-IM", "Incremental Feed", "x-ms-documentdb-partitionkey", pk(fmt.Sprint("0-", i)), "x-ms-cosmos-sdk-supportedcapabilities", "1"}
			r, err := c.try("GET", "dbs/db/colls/c/docs", h, nil)
			if err != nil || r.status != http.StatusOK && r.status != http.StatusNotModified {
				t.Errorf("feed: %v %s", err, r.body)
			}
		}
	})
	ranges := []string{"0", "1", "2", "3"}
	for range 20 {
		var split []string
		for _, id := range ranges {
			children, err := s.Split("db", "c", id)
			testworld.Must(t, err)
			merged, err := s.Merge("db", "c", children[0], children[1])
			testworld.Must(t, err)
			split = append(split, merged)
		}
		ranges = split
	}
	close(reshaped)
	work.Wait()
	listed, _ := c.drain(everywhere("x-ms-max-item-count", "-1"), query("SELECT VALUE c.id FROM c"), nothing)
	if len(listed) != int(written.Load()) {
		t.Errorf("%d of %d documents are left", len(listed), written.Load())
	}
}

// A worker renews its lock document for a long time; it lives as long as it is renewed.
func TestADocumentThatIsRenewedLivesOn(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, DefaultTTL: -1})
	c := newClient(t, s)
	read := headers{"x-ms-documentdb-partitionkey", pk("lock")}
	testworld.Must(t, s.Upsert("db", "c", doc("short", "ttl", 1000)))
	for range 500 {
		testworld.Must(t, s.Upsert("db", "c", doc("lock", "ttl", 10_000)))
		clock.advance(time.Second)
	}
	clock.advance(9998 * time.Second)
	c.expect(c.do("GET", "dbs/db/colls/c/docs/lock", read, nil), "200")
	clock.advance(time.Second)
	c.expect(c.do("GET", "dbs/db/colls/c/docs/lock", read, nil), "404")
	c.expect(c.do("GET", "dbs/db/colls/c/docs/short", headers{"x-ms-documentdb-partitionkey", pk("short")}, nil), "404")
}
