package cosmosfake_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// item is an item of the wrapped feed, shortened to document, operation and LSN.
type item struct {
	id, operation string
	lsn           int
}

func (i *item) UnmarshalJSON(b []byte) error {
	var wire struct {
		Current, Previous struct{ ID string }
		Metadata          struct {
			LSN           int
			OperationType string
			Expired       bool `json:"timeToLiveExpired"`
		}
	}
	err := json.Unmarshal(b, &wire)
	*i = item{wire.Current.ID + wire.Previous.ID, wire.Metadata.OperationType, wire.Metadata.LSN}
	if wire.Metadata.Expired {
		i.operation += " by ttl"
	}
	return err
}

func (c *client) versions(after string) (response, string) {
	c.t.Helper()
	r := c.do("GET", "dbs/db/colls/c/docs", headers{"A-IM", "Full-Fidelity Feed", "If-None-Match", after, "x-ms-cosmos-changefeed-wire-format-version", "2021-09-15"}, nil)
	var page struct{ Documents []item }
	if r.status == 200 {
		c.decode(r, &page)
	}
	return r, fmt.Sprint(page.Documents)
}

func TestEveryVersionAndDeletionIsKept(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now, VersionRetention: time.Hour}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, DefaultTTL: -1})
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("before")))
	r, _ := c.versions("*")
	now := c.expect(r, "304").header.Get("etag")
	testworld.Must(t, s.Upsert("db", "c", doc("a")))
	testworld.Must(t, s.Upsert("db", "c", doc("a", "n", 2)))
	testworld.Must(t, s.Delete("db", "c", "a", "a"))
	testworld.Must(t, s.Upsert("db", "c", doc("short", "ttl", 5)))
	clock.advance(5 * time.Second)
	r, got := c.versions(now)
	if want := "[{a create 2} {a replace 3} {a delete 4} {short create 5} {short delete by ttl 6}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.header.Get("etag") != `"6"` || r.header.Get("x-ms-session-token") != "0:-1#6" {
		t.Errorf("headers %v", r.header)
	}
	if r, got := c.versions(`"6"`); r.status != 304 {
		t.Errorf("got %s", got)
	}
	var page struct {
		Documents []struct {
			Previous map[string]any
			Metadata struct {
				CRTS             int64
				PreviousImageLSN int
				ID               string
				PartitionKey     map[string]any
			}
		}
	}
	c.decode(r, &page)
	deleted := page.Documents[2]
	if deleted.Previous["n"] != 2.0 || deleted.Metadata.PreviousImageLSN != 3 || deleted.Metadata.ID != "a" || deleted.Metadata.PartitionKey["id"] != "a" {
		t.Errorf("the deletion shows %+v", deleted)
	}
	if got := page.Documents[4].Metadata.CRTS; got != clock.now().Unix() {
		t.Errorf("crts %d", got)
	}
}

func TestWhereTheFeedOfAllVersionsIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("off"), cosmosfake.ContainerSpec{ID: "on", PartitionKey: []string{"/id"}, VersionRetention: time.Minute})
	c := newClient(t, s)
	cases := []struct {
		name, coll, after, format, want string
	}{
		{"an account without continuous backup", "off", "*", "2021-09-15", "400"},
		{"from the beginning", "on", "", "2021-09-15", "400"},
		{"without the wire format", "on", "*", "", "400"},
		{"from now", "on", "*", "2021-09-15", "304"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := c.do("GET", "dbs/db/colls/"+tc.coll+"/docs", headers{"A-IM", "Full-Fidelity Feed", "If-None-Match", tc.after, "x-ms-cosmos-changefeed-wire-format-version", tc.format}, nil)
			c.expect(r, tc.want)
		})
	}
}

func TestVersionsBeyondTheRetentionAreDropped(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now, VersionRetention: time.Minute}, byID("c"))
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("old")))
	clock.advance(2 * time.Minute)
	testworld.Must(t, s.Upsert("db", "c", doc("new")))
	testworld.Must(t, s.Upsert("db", "c", doc("newer")))
	r, _ := c.versions(`"0"`)
	c.expect(r, "400")
	if _, got := c.versions(`"1"`); got != "[{new create 2} {newer create 3}]" {
		t.Errorf("got %s", got)
	}
}
