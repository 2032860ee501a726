package cosmosfake_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	busy := start(t, cosmosfake.Options{})
	cases := []struct {
		name    string
		options cosmosfake.Options
		want    string
	}{
		{"a key that is not base64", cosmosfake.Options{Key: "%%%"}, "not base64"},
		{"an address without a port", cosmosfake.Options{Addr: "127.0.0.1"}, "missing port"},
		{"a port that is no number", cosmosfake.Options{Addr: "127.0.0.1:http"}, "not a number"},
		{"a port that is taken", cosmosfake.Options{Addr: strings.Trim(strings.TrimPrefix(busy.Endpoint(), "http://"), "/")}, "in use"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := cosmosfake.Start(c.options)
			if err == nil {
				_ = s.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, want something about %q", err, c.want)
			}
		})
	}
}

func TestTheConnectionStringHoldsEndpointAndKey(t *testing.T) {
	t.Parallel()
	key := base64.StdEncoding.EncodeToString([]byte("secret"))
	s := start(t, cosmosfake.Options{Key: key})
	if want := "AccountEndpoint=" + s.Endpoint() + ";AccountKey=" + key + ";"; s.ConnectionString() != want {
		t.Errorf("got %s, want %s", s.ConnectionString(), want)
	}
}

func TestEveryRegionListensAndOnlyTheFirstWrites(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}}, byID("c"))
	c := newClient(t, s)
	var account struct {
		Writable, Readable []struct {
			Name     string `json:"name"`
			Endpoint string `json:"databaseAccountEndpoint"`
		}
	}
	var raw map[string]json.RawMessage
	c.decode(c.expect(c.do("GET", "", nil, nil), "200"), &raw)
	testworld.Must(t, json.Unmarshal(raw["writableLocations"], &account.Writable))
	testworld.Must(t, json.Unmarshal(raw["readableLocations"], &account.Readable))
	if len(account.Writable) != 1 || account.Writable[0].Name != "West Europe" || account.Writable[0].Endpoint != s.Endpoint() {
		t.Errorf("writable: %v", account.Writable)
	}
	if len(account.Readable) != 2 || account.Readable[1].Endpoint != s.RegionEndpoint(1) {
		t.Errorf("readable: %v", account.Readable)
	}
	second := newClient(t, s)
	second.endpoint = s.RegionEndpoint(1)
	key := headers{"x-ms-documentdb-partitionkey", pk("a")}
	second.expect(second.do("POST", "dbs/db/colls/c/docs", key, doc("a")), "403/3")
	c.expect(c.do("POST", "dbs/db/colls/c/docs", key, doc("a")), "201")
	r := second.expect(second.do("GET", "dbs/db/colls/c/docs/a", key, nil), "200")
	if got := r.header.Get("x-ms-session-token"); got != "0:-1#1#1=1" {
		t.Errorf("session token %s", got)
	}
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	s, err := cosmosfake.Start(cosmosfake.Options{Regions: []string{"a", "b"}})
	testworld.Must(t, err)
	testworld.Must(t, s.CreateDatabase("db"))
	s.Control(func(*cosmosfake.Request) *cosmosfake.Answer { return &cosmosfake.Answer{Delay: time.Hour} })
	transport := &http.Transport{}
	c := &client{t, s.Endpoint(), cosmosfake.WellKnownKey, &http.Client{Transport: transport}}
	waiting := make(chan error)
	go func() {
		_, err := c.try("GET", "dbs/db", nil, nil)
		waiting <- err
	}()
	for s.Requests().Requests[cosmosfake.ReadDatabase] == 0 {
		runtime.Gosched()
	}
	testworld.Must(t, s.Close())
	if err := <-waiting; err == nil {
		t.Error("a request that was under way was answered")
	}
	transport.CloseIdleConnections()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
	if _, err := c.try("GET", "dbs/db", nil, nil); err == nil {
		t.Error("a closed account answered")
	}
}
