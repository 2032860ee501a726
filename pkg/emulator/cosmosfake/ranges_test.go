package cosmosfake_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestTheFeedOfRangesTellsWhatChanged(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: 2})
	c := newClient(t, s)
	since := "" // the reader's continuation
	read := func() string {
		t.Helper()
		r := c.do("GET", "dbs/db/colls/c/pkranges", headers{"A-IM", "Incremental feed", "x-ms-max-item-count", "-1", "If-None-Match", since}, nil)
		since = r.header.Get("etag")
		var page struct{ PartitionKeyRanges []keyRange }
		if r.status == 200 {
			c.decode(r, &page)
		}
		var all []string
		for _, p := range page.PartitionKeyRanges {
			all = append(all, fmt.Sprintf("%s%v %s", p.ID, p.Parents, p.Status))
		}
		return fmt.Sprint(r.status, " ", strings.Join(all, ", "))
	}
	check := func(step, want string) {
		t.Helper()
		if got := read(); got != want {
			t.Errorf("%s: got %q, want %q", step, got, want)
		}
	}
	check("at first", "200 0[] online, 1[] online")
	check("nothing new", "304 ")
	finish, err := s.StartSplit("db", "c", "0")
	testworld.Must(t, err)
	check("a split has begun", "200 0[] splitting")
	one := c.do("GET", "dbs/db/colls/c/pkranges", headers{"A-IM", "Incremental feed", "x-ms-max-item-count", "1"}, nil)
	if got := strings.Count(string(one.body), `"minInclusive"`); got != 1 || one.header.Get("etag") != `"1"` {
		t.Errorf("a page of one has %d ranges, up to %s", got, one.header.Get("etag"))
	}
	if _, err := s.StartSplit("db", "c", "0"); err == nil {
		t.Error("the range was split twice")
	}
	r, _ := c.feed("c", "0", "")
	c.expect(r, "410/1007")
	testworld.Must(t, s.Upsert("db", "c", doc("written meanwhile")))
	if got := strings.Join(finish(), " "); got != "2 3" {
		t.Errorf("children %s", got)
	}
	if got := strings.Join(finish(), " "); got != "2 3" {
		t.Errorf("children, asked again, %s", got)
	}
	two := c.do("GET", "dbs/db/colls/c/pkranges", headers{"A-IM", "Incremental feed", "x-ms-max-item-count", "1", "If-None-Match", `"1"`}, nil)
	if got := strings.Count(string(two.body), `"minInclusive"`); got != 2 {
		t.Errorf("siblings came apart: %s", two.body)
	}
	check("the children", "200 2[0] online, 3[0] online")
	r, _ = c.feed("c", "0", "")
	c.expect(r, "410/1002")
	_, err = s.Split("db", "c", "3")
	testworld.Must(t, err)
	check("grandchildren know the whole line", "200 4[0 3] online, 5[0 3] online")
	merged, err := s.Merge("db", "c", "4", "2")
	testworld.Must(t, err)
	c.expect(c.do("GET", "dbs/db/colls/c/pkranges", nil, nil), "400")
	if got := fmt.Sprint(c.ranges("c")); merged != "6" || got != "[{6  17FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF [0 3 2 4] online} {5 17FFFFFFFFFFFFFFFFFFFFFFFFFFFFFF 1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF [0 3] online} {1 1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF FF [] online}]" {
		t.Errorf("merged %s in %s", merged, got)
	}
	c.expect(c.do("GET", "dbs/db/colls/c/pkranges", headers{"x-ms-cosmos-sdk-supportedcapabilities", "1", "If-None-Match", c.do("GET", "dbs/db/colls/c/pkranges", headers{"x-ms-cosmos-sdk-supportedcapabilities", "3"}, nil).header.Get("etag")}, nil), "304")
	for name, run := range map[string]func() error{
		"strangers":          func() error { _, err := s.Merge("db", "c", "6", "1"); return err },
		"no such range":      func() error { _, err := s.Merge("db", "c", "6", "99"); return err },
		"a split of nothing": func() error { _, err := s.Split("db", "c", "99"); return err },
		"no such container":  func() error { _, err := s.Split("db", "x", "0"); return err },
	} {
		if run() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestChildrenGoOnWhereTheParentStood(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	for i := range 20 {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i))))
	}
	children, err := s.Split("db", "c", "0")
	testworld.Must(t, err)
	total := 0
	for _, id := range children {
		r, changes := c.feed("c", id, `"10"`)
		total += len(changes)
		for _, change := range changes {
			if change.LSN <= 10 {
				t.Errorf("child %s shows %+v again", id, change)
			}
		}
		if got := r.header.Get("x-ms-session-token"); got != id+":-1#20" {
			t.Errorf("child %s begins at %s", id, got)
		}
	}
	if total != 10 {
		t.Errorf("the children show %d of 10 changes", total)
	}
	for i := range 50 {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint("more", i))))
	}
	child, err := s.Merge("db", "c", children[0], children[1])
	testworld.Must(t, err)
	highest := 0
	r, changes := c.feed("c", child, "", "x-ms-max-item-count", "-1")
	for _, change := range changes {
		highest = max(highest, change.LSN)
	}
	var lsn int
	if _, err := fmt.Sscanf(r.header.Get("x-ms-session-token"), child+":-1#%d", &lsn); err != nil || lsn <= highest || len(changes) != 70 {
		t.Errorf("the merged range stands at %s, with %d changes up to %d", r.header.Get("x-ms-session-token"), len(changes), highest)
	}
}

func TestHierarchicalKeysLieTogether(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/tenant", "/user"}, Partitions: 4})
	c := newClient(t, s)
	for i := range 40 {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i), "tenant", fmt.Sprint("t", i%4), "user", fmt.Sprint("u", i))))
	}
	r, changes := c.feed("c", "", "", "x-ms-documentdb-partitionkey", pk("t1"), "x-ms-max-item-count", "-1")
	if c.expect(r, "200"); len(changes) != 10 {
		t.Errorf("a tenant has %d changes", len(changes))
	}
	_, changes = c.feed("c", "", "", "x-ms-documentdb-partitionkey", pk("t1", "u5"))
	if ids(changes) != "5" {
		t.Errorf("a user has %s", ids(changes))
	}
	c.expect(c.do("GET", "dbs/db/colls/c/docs/5", headers{"x-ms-documentdb-partitionkey", pk("t1")}, nil), "400")
	c.expect(c.do("GET", "dbs/db/colls/c/docs/5", headers{"x-ms-documentdb-partitionkey", pk("t1", "u5")}, nil), "200")
}
