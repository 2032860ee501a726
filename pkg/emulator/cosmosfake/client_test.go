package cosmosfake_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
)

// clock is a clock that only the test moves.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// start runs an account with the database db and, in it, the given containers.
func start(t *testing.T, o cosmosfake.Options, containers ...cosmosfake.ContainerSpec) *cosmosfake.Server {
	t.Helper()
	s, err := cosmosfake.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.CreateDatabase("db"); err != nil {
		t.Fatal(err)
	}
	for _, spec := range containers {
		if err := s.CreateContainer("db", spec); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func byID(id string) cosmosfake.ContainerSpec {
	return cosmosfake.ContainerSpec{ID: id, PartitionKey: []string{"/id"}}
}

// headers of a request, in pairs.
type headers []string

// client speaks plain REST and signs as the protocol's documentation says.
type client struct {
	t        testing.TB
	endpoint string
	key      string
	http     *http.Client
}

func newClient(t testing.TB, s *cosmosfake.Server) *client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{t, s.Endpoint(), cosmosfake.WellKnownKey, &http.Client{Transport: transport}}
}

type response struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request for /path. A body that is not a string goes as JSON.
func (c *client) do(method, path string, h headers, body any) response {
	c.t.Helper()
	r, err := c.try(method, path, h, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *client) try(method, path string, h headers, body any) (response, error) {
	var content []byte
	switch b := body.(type) {
	case nil:
	case string:
		content = []byte(b)
	default:
		var err error
		if content, err = json.Marshal(b); err != nil {
			return response{}, err
		}
	}
	r, err := http.NewRequestWithContext(context.Background(), method, c.endpoint+path, bytes.NewReader(content))
	if err != nil {
		return response{}, err
	}
	date := time.Now().UTC().Format(http.TimeFormat)
	r.Header.Set("x-ms-version", "2020-07-15")
	r.Header.Set("x-ms-date", date)
	resource, link := signedParts(path)
	r.Header.Set("Authorization", sign(c.key, method, resource, link, date))
	for i := 0; i+1 < len(h); i += 2 {
		if h[i+1] == "" {
			r.Header.Del(h[i])
			continue
		}
		r.Header.Set(h[i], h[i+1])
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	return response{answer.StatusCode, answer.Header, all}, err
}

func signedParts(path string) (resource, link string) {
	if path == "" {
		return "", ""
	}
	parts := strings.Split(path, "/")
	if len(parts)%2 == 1 {
		return parts[len(parts)-1], strings.Join(parts[:len(parts)-1], "/")
	}
	return parts[len(parts)-2], path
}

func sign(key, method, resource, link, date string) string {
	secret, _ := base64.StdEncoding.DecodeString(key)
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n\n", strings.ToLower(method), resource, link, strings.ToLower(date))
	return url.QueryEscape("type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// code is the status and, if there is one, the substatus: "410/1002".
func (r response) code() string {
	if sub := r.header.Get("x-ms-substatus"); sub != "" {
		return fmt.Sprintf("%d/%s", r.status, sub)
	}
	return fmt.Sprint(r.status)
}

func (c *client) expect(r response, code string) response {
	c.t.Helper()
	if r.code() != code {
		c.t.Fatalf("got status %s, want %s: %s", r.code(), code, r.body)
	}
	return r
}

// decode reads the answer's body into v.
func (c *client) decode(r response, v any) {
	c.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		c.t.Fatalf("%v in %s", err, r.body)
	}
}

func pk(components ...any) string {
	text, _ := json.Marshal(components)
	return string(text)
}

// doc is a document for containers that are keyed by /id.
func doc(id string, more ...any) map[string]any {
	d := map[string]any{"id": id}
	for i := 0; i+1 < len(more); i += 2 {
		d[more[i].(string)] = more[i+1]
	}
	return d
}

// change is what the tests look at in an item of the feed.
type change struct {
	ID  string `json:"id"`
	LSN int    `json:"_lsn"`
	N   int    `json:"n"`
	TS  int64  `json:"_ts"`
}

// feed reads one page of the incremental feed.
func (c *client) feed(coll, rangeID, after string, h ...string) (response, []change) {
	c.t.Helper()
	all := headers{"A-IM", "Incremental feed", "x-ms-documentdb-partitionkeyrangeid", rangeID, "If-None-Match", after, "x-ms-cosmos-sdk-supportedcapabilities", "1"}
	r := c.do("GET", "dbs/db/colls/"+coll+"/docs", append(all, h...), nil)
	var page struct {
		Documents []change
		Count     int `json:"_count"`
	}
	if r.status == http.StatusOK {
		c.decode(r, &page)
		if page.Count != len(page.Documents) {
			c.t.Errorf("_count is %d for %d documents", page.Count, len(page.Documents))
		}
	}
	return r, page.Documents
}

func ids(changes []change) string {
	var all []string
	for _, c := range changes {
		all = append(all, c.ID)
	}
	return strings.Join(all, " ")
}
