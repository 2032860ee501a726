package cosmosfake_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// inRegion is the client at another region's address.
func (c *client) inRegion(s *cosmosfake.Server, i int) *client {
	other := *c
	other.endpoint = s.RegionEndpoint(i)
	return &other
}

type locations struct {
	Writable []location `json:"writableLocations"`
	Readable []location `json:"readableLocations"`
	Policy   struct {
		Level string `json:"defaultConsistencyLevel"`
	} `json:"userConsistencyPolicy"`
}

type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

func (c *client) locations() (all locations) {
	c.t.Helper()
	c.decode(c.expect(c.do("GET", "", nil, nil), "200"), &all)
	return all
}

func TestARegionCanBeDownInThreeWays(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}}, byID("c"))
	c := newClient(t, s)
	for i, name := range []string{"West Europe", "North Europe"} {
		one, other := c.inRegion(s, i), c.inRegion(s, 1-i)
		one.expect(one.do("GET", "dbs/db", nil, nil), "200")

		testworld.Must(t, s.SetRegion(i, cosmosfake.Unavailable))
		one.expect(one.do("GET", "dbs/db", nil, nil), "503")
		one.expect(one.do("GET", "", nil, nil), "503")
		other.expect(other.do("GET", "dbs/db", nil, nil), "200")

		testworld.Must(t, s.SetRegion(i, cosmosfake.Refusing))
		if _, err := one.try("GET", "dbs/db", nil, nil); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s refuses connections by %v", name, err)
		}
		testworld.Must(t, s.SetRegion(i, cosmosfake.Refusing)) // again is no error
		other.expect(other.do("GET", "dbs/db", nil, nil), "200")

		testworld.Must(t, s.SetRegion(i, cosmosfake.Hanging))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, one.endpoint, nil)
		testworld.Must(t, err)
		if _, err = one.http.Do(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s hangs by %v", name, err)
		}
		cancel()
		other.expect(other.do("GET", "dbs/db", nil, nil), "200")
		hung := make(chan error)
		go func() {
			// no client sends a POST twice by itself
			_, err := one.try("POST", "dbs", nil, `{"id":"never"}`)
			hung <- err
		}()
		for before := s.Requests().Requests[cosmosfake.CreateDatabase]; s.Requests().Requests[cosmosfake.CreateDatabase] == before; {
			select {
			case err := <-hung:
				t.Fatalf("answered while hanging: %v", err)
			default:
			}
		}
		testworld.Must(t, s.SetRegion(i, cosmosfake.Online))
		if err := <-hung; err == nil {
			t.Error("a request that hung was answered after all")
		}
		one.expect(one.do("GET", "dbs/db", nil, nil), "200")
	}
}

func TestTheWriteRegionFailsOver(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe", "East US"}}, byID("c"))
	c := newClient(t, s)
	names := func(all []location) string {
		var list []string
		for _, l := range all {
			list = append(list, l.Name)
		}
		return strings.Join(list, ", ")
	}
	write := func(c *client) response {
		return c.do("POST", "dbs/db/colls/c/docs", headers{"x-ms-documentdb-partitionkey", pk("d"), "x-ms-documentdb-is-upsert", "True"}, doc("d"))
	}
	second := c.inRegion(s, 1)
	c.expect(write(c), "201")
	second.expect(write(second), "403/3")
	all := second.locations()
	if names(all.Writable) != "West Europe" || names(all.Readable) != "West Europe, North Europe, East US" {
		t.Errorf("locations %+v", all)
	}
	for i, l := range all.Readable {
		if l.Endpoint != s.RegionEndpoint(i) {
			t.Errorf("%s is at %s, want %s", l.Name, l.Endpoint, s.RegionEndpoint(i))
		}
	}

	testworld.Must(t, s.SetRegion(0, cosmosfake.Unavailable)) // the outage, before a failover
	c.expect(write(c), "503")
	second.expect(write(second), "403/3")
	second.expect(second.do("GET", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d")}, nil), "200")
	s.Failover(1)
	second.expect(write(second), "200")
	all = second.locations()
	if names(all.Writable) != "North Europe" || names(all.Readable) != "North Europe, West Europe, East US" {
		t.Errorf("locations after the failover %+v", all)
	}
	testworld.Must(t, s.SetRegion(0, cosmosfake.Online))
	c.expect(write(c), "403/3")
}

func TestConsistencyIsTheAccountsOrWeaker(t *testing.T) {
	t.Parallel()
	if s, err := cosmosfake.Start(cosmosfake.Options{Consistency: "Strongest"}); err == nil {
		_ = s.Close()
		t.Error("an account of a level that does not exist was started")
	}
	levels := []string{"Eventual", "ConsistentPrefix", "Session", "BoundedStaleness", "Strong"}
	for at, account := range levels {
		s := start(t, cosmosfake.Options{Consistency: strings.ToLower(account)}, byID("c"))
		c := newClient(t, s)
		testworld.Must(t, s.Upsert("db", "c", doc("d")))
		if got := c.locations().Policy.Level; got != account {
			t.Errorf("the account tells %s, want %s", got, account)
		}
		for i, level := range append(levels, "Weak") {
			r := c.do("GET", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d"), "x-ms-consistency-level", level}, nil)
			want := "200"
			if i > at {
				want = "400"
			}
			if r.code() != want {
				t.Errorf("%s in an account of %s: got %s, want %s: %s", level, account, r.code(), want, r.body)
			}
			text := fmt.Sprintf("ConsistencyLevel %s specified in the request is invalid when service is configured with consistency level %s.", level, account)
			if want == "400" && level != "Weak" && !strings.Contains(string(r.body), text) {
				t.Errorf("body %s", r.body)
			}
		}
		ahead := c.do("GET", "dbs/db/colls/c/docs/d", headers{"x-ms-documentdb-partitionkey", pk("d"), "x-ms-session-token", "0:-1#99"}, nil)
		want := "200" // other levels take no notice of a session token
		if account == "Session" {
			want = "404/1002"
		}
		if ahead.code() != want {
			t.Errorf("a session that is ahead, in an account of %s: got %s, want %s", account, ahead.code(), want)
		}
	}
}
