package changefeedprocessor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeedprocessor"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/leasefake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestLeasesHaveExactlyTheFieldsOfTheSDK(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	// The second renewal is a minute away, so that nothing changes while the test looks.
	h := s.host("host-1", func(o *changefeedprocessor.Options) { o.RenewInterval = 50 * time.Second })
	testworld.Eventually(t, "both leases are owned", func() bool { return s.owners()["host-1"] == 2 })

	documents := s.documents()
	ids := slices.Sorted(maps.Keys(documents))
	rid := `[A-Za-z0-9+-]+={0,2}`
	prefix := regexp.MustCompile(`^projection127\.0\.0\.1_` + rid + `_` + rid + `\.\.0$`)
	if len(ids) != 3 || !prefix.MatchString(ids[0]) {
		t.Fatalf("got ids %q, want two leases with the prefix %s, and .info", ids, prefix)
	}
	base := strings.TrimSuffix(ids[0], "..0")
	if want := []string{base + "..0", base + "..1", base + ".info"}; !slices.Equal(ids, want) {
		t.Errorf("got ids %q, want %q (the lock is gone)", ids, want)
	}
	if got, want := documents[base+".info"], (map[string]any{"id": base + ".info"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got marker %v, want %v", got, want)
	}
	lease := documents[base+"..0"]
	timestamp, _ := lease["timestamp"].(string)
	if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,7})?Z$`).MatchString(timestamp) {
		t.Errorf("got timestamp %q, want UTC with up to 7 decimals", timestamp)
	}
	feedRange := lease["FeedRange"].(map[string]any)["Range"].(map[string]any)
	if min, max := feedRange["min"], feedRange["max"]; min != "" || max == "" || max == "FF" || len(feedRange) != 2 {
		t.Errorf("got FeedRange %v, want the lower half of the key space", feedRange)
	}
	want := map[string]any{
		"id": base + "..0", "version": 0.0, "LeaseToken": "0", "FeedRange": lease["FeedRange"], "Owner": "host-1",
		"ContinuationToken": nil, "properties": map[string]any{}, "timestamp": timestamp, "Mode": "Incremental Feed",
	}
	if !reflect.DeepEqual(lease, want) {
		t.Errorf("got lease %v, want %v", lease, want)
	}

	h.stop()
	s.end(h)
	lease = s.documents()[base+"..0"]
	if owner, named := lease["Owner"]; owner != nil || !named {
		t.Errorf("got lease %v after the stop, want a null Owner", lease)
	}
}

func TestChangesAreHandledOnceAndInOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t, 4)
	s.write(150)
	first := s.host("host-1", nil)
	testworld.Eventually(t, "the first host works", func() bool { return s.count() >= 20 })
	first.stop()
	s.end(first)
	second := s.host("host-2", nil)
	s.write(150)
	testworld.Eventually(t, "all changes are handled", s.handledAll)
	second.stop()
	s.end(second)

	s.checkOnce()
	for token, changes := range s.handled {
		want := *leasefake.At(changes[len(changes)-1].LSN)
		if got := s.leases()[token].Continuation; got == nil || *got != want {
			t.Errorf("partition %s: got checkpoint %v, want %s, the LSN of the last change", token, got, want)
		}
	}
}

func TestEveryPageIsToldOfOnceItIsCheckpointed(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	s.write(50)
	var mu sync.Mutex
	told := 0
	h := s.host("host-1", func(o *changefeedprocessor.Options) {
		o.Observe = func(seen changefeedprocessor.Observation) {
			mu.Lock()
			defer mu.Unlock()
			if seen.Checkpointed {
				told += seen.Items
			}
		}
	})
	testworld.Eventually(t, "all changes are handled", s.handledAll)
	h.stop()
	s.end(h)
	if told != 50 {
		t.Errorf("got %d changes, want 50", told)
	}
}

func TestManyQuickCheckpointsDoNotCostAHostItsLease(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	s.write(400)
	h := s.host("host-1", func(o *changefeedprocessor.Options) { o.MaxItems, o.RenewInterval = 1, time.Millisecond })
	testworld.Eventually(t, "all changes are handled", s.handledAll)
	h.stop()
	s.end(h)
	s.checkOnce()
}

func TestHostsShareThePartitionsEqually(t *testing.T) {
	t.Parallel()
	s := newShop(t, 6)
	s.host("host-1", nil)
	testworld.Eventually(t, "the first host has all", func() bool { return s.owners()["host-1"] == 6 })
	second := s.host("host-2", nil)
	s.host("host-3", nil)
	testworld.Eventually(t, "three hosts have two each", func() bool {
		return maps.Equal(s.owners(), map[string]int{"host-1": 2, "host-2": 2, "host-3": 2})
	})
	second.stop()
	s.end(second)
	testworld.Eventually(t, "two hosts have three each", func() bool {
		return maps.Equal(s.owners(), map[string]int{"host-1": 3, "host-3": 3})
	})
	s.write(100)
	testworld.Eventually(t, "all changes are handled", s.handledAll)
}

func TestALeaseThatAnotherHostTookFirstStaysWithIt(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.write(5)
	var tries atomic.Int64
	s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReplaceDocument && tries.Add(1) == 1 {
			lease := s.leases()["0"]
			lease.Owner = new("host-2")
			lease.Stamp(time.Now())
			if err := s.Account.Upsert(testworld.Database, testworld.Leases, lease); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	h := s.host("host-1", nil)
	testworld.Eventually(t, "the other host has the lease", func() bool { return s.owners()["host-2"] == 1 })
	h.stop()
	s.end(h)
	if owners, n := s.owners(), s.count(); owners["host-2"] != 1 || n != 0 {
		t.Errorf("got owners %v and %d changes handled, want the lease left to host-2", owners, n)
	}
}

func TestAHostWaitsForTheOneThatCreatesTheLeases(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	var tries atomic.Int64 // the first is refused, so that the error tells the id of the lock
	s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.CreateDocument && tries.Add(1) == 1 {
			return &cosmosfake.Answer{Status: http.StatusForbidden}
		}
		return nil
	})
	failed := s.host("host-1", nil)
	err := <-failed.ended
	id := regexp.MustCompile(`projection\S+\.lock`).FindString(fmt.Sprint(err))
	if id == "" {
		t.Fatalf("got %v, want an error that names the lock", err)
	}
	if err := s.Account.Upsert(testworld.Database, testworld.Leases, map[string]any{"id": id, "ttl": 600}); err != nil {
		t.Fatal(err)
	}
	s.host("host-2", nil)
	testworld.Eventually(t, "the host has tried to get the lock three times", func() bool { return tries.Load() >= 4 })
	if got := s.tokens(); len(got) != 0 {
		t.Errorf("got leases %q, want none while another host has the lock", got)
	}
	if err := s.Account.Delete(testworld.Database, testworld.Leases, id, id); err != nil {
		t.Fatal(err)
	}
	testworld.Eventually(t, "the host has created and taken the leases", func() bool { return s.owners()["host-2"] == 2 })
}

func TestAPageWhoseHandlerFailsComesAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.write(30)
	var mu sync.Mutex
	failures := 2
	s.host("host-1", func(o *changefeedprocessor.Options) {
		o.Handle = func(ctx context.Context, b changefeedprocessor.Batch) error {
			mu.Lock()
			defer mu.Unlock()
			if failures > 0 {
				failures--
				return errors.New("scripted")
			}
			return s.handle(ctx, b)
		}
	})
	testworld.Eventually(t, "all changes are handled", s.handledAll)
	s.checkOnce()
}

func TestAPageWhoseCheckpointFailsComesAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, 1)
	s.write(5)
	var replacements atomic.Int64 // the first acquires the lease, the second is the checkpoint
	s.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Kind == cosmosfake.ReplaceDocument && replacements.Add(1) == 2 {
			return &cosmosfake.Answer{Status: http.StatusForbidden}
		}
		return nil
	})
	s.host("host-1", func(o *changefeedprocessor.Options) { o.RenewInterval = 50 * time.Second })
	testworld.Eventually(t, "the page is checkpointed", func() bool {
		at := s.leases()["0"].Continuation
		return at != nil && *at == `"5"`
	})
	if got := s.count(); got != 10 {
		t.Errorf("got %d changes, want 10: the page twice", got)
	}
}

func TestAHostThatLosesAPartitionStopsHandlingIt(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2)
	s.write(20)
	lost := make(chan string, 2)
	s.host("host-1", func(o *changefeedprocessor.Options) {
		o.Handle = func(ctx context.Context, b changefeedprocessor.Batch) error {
			<-ctx.Done()
			lost <- b.Lease
			return ctx.Err()
		}
	})
	testworld.Eventually(t, "the first host has all", func() bool { return s.owners()["host-1"] == 2 })
	s.host("host-2", nil)
	select {
	case partition := <-lost:
		testworld.Eventually(t, "the other host handles the partition", func() bool {
			return len(s.of(partition)) > 0
		})
	case <-time.After(testworld.Deadline):
		t.Fatal("no handler was told that its partition is lost")
	}
}

func TestAHostThatCannotStartSaysWhyAndWritesNothing(t *testing.T) {
	t.Parallel()
	type Options = changefeedprocessor.Options
	type Container = changefeedprocessor.Container
	for _, c := range []struct {
		name   string
		change func(s *shop, monitored, leases *Container, o *Options)
		want   string
	}{
		{"no such monitored container", func(_ *shop, m, _ *Container, _ *Options) { m.ID = "nothing" }, "reading container shop/nothing: the account answered with status 404"},
		{"no such lease container", func(_ *shop, _, l *Container, _ *Options) { l.ID = "nothing" }, "reading the lease container shop/nothing: the account answered with status 404"},
		{"a client without the policy", func(s *shop, m, _ *Container, _ *Options) { m.Client = s.sdk }, "built without changefeedprocessor.ClientOptions"},
		{"a lease container with another key", func(s *shop, _, l *Container, _ *Options) { l.ID = "orders" }, "partitioned by /customer"},
		{"leases of two SDKs", func(s *shop, _, _ *Container, _ *Options) {
			p := s.LeasesOf("projection", "127.0.0.1", "orders")
			s.Put(testworld.Leases, p.DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{}), p.JavaPK("0", leasefake.Fields{Created: time.Now()}))
		}, "in 2 formats"},
		{"leases of the other mode", func(s *shop, _, _ *Container, _ *Options) {
			s.Put(testworld.Leases, s.LeasesOf("projection", "127.0.0.1", "orders").DotNetPK("0", leasefake.Range{Max: "FF"}, leasefake.Fields{Mode: leasefake.FullFidelity}))
		}, "is of the other mode"},
		{"all versions in Java's PK leases", func(s *shop, _, _ *Container, o *Options) {
			o.Mode, o.FromBeginning = changefeedprocessor.AllVersionsAndDeletes, false
			s.Put(testworld.Leases, s.LeasesOf("projection", "127.0.0.1", "orders").JavaPK("0", leasefake.Fields{Created: time.Now()}))
		}, "latest version only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 1)
			line := s.Line()
			monitored, leases, o := s.options("host-1", line)
			c.change(s, &monitored, &leases, &o)
			before := len(s.documents())
			err := testworld.Came(t, "the end of the host", s.run(monitored, leases, o, line).ended)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that has %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), cosmosfake.WellKnownKey) {
				t.Error("the error shows the key")
			}
			if after := len(s.documents()); after != before {
				t.Errorf("%d documents in the lease container, want still %d", after, before)
			}
		})
	}
}
