package cosmosfake_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func TestTheFeedShowsTheLatestVersionOfWhatChanged(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, byID("c"))
	c := newClient(t, s)
	for _, id := range []string{"a", "b", "c"} { // LSN 1 to 3
		testworld.Must(t, s.Upsert("db", "c", doc(id)))
	}
	clock.advance(time.Minute)
	later := clock.now()
	testworld.Must(t, s.Upsert("db", "c", doc("a", "n", 2)))                                  // 4
	testworld.Must(t, s.Delete("db", "c", "b", "b"))                                          // 5
	testworld.Must(t, s.Batch("db", "c", cosmosfake.Put(doc("d")), cosmosfake.Put(doc("e")))) // 6
	// 7
	testworld.Must(t, s.Batch("db", "c", cosmosfake.Put(doc("f")), cosmosfake.Remove("f", "f")))
	if err := s.Delete("db", "c", "b", "b"); err == nil || !strings.Contains(err.Error(), "db/c") {
		t.Errorf("deleting twice: %v", err)
	}
	since := func(at time.Time, format string) []string { return []string{"If-Modified-Since", at.Format(format)} }
	const gmt = http.TimeFormat
	cases := []struct {
		name, after string
		headers     []string
		want        string
		etag        string // empty: 304, at the range's LSN
	}{
		{"from the beginning", "", nil, "c a d e", `"6"`},
		{"an update moves a document to its newest LSN", `"3"`, nil, "a d e", `"6"`},
		{"a tag without quotes", `3`, nil, "a d e", `"6"`},
		{"a page ends with its last document", `"2"`, []string{"x-ms-max-item-count", "1"}, "c", `"3"`},
		{"a deletion is not in the feed but moves it", `"4"`, []string{"x-ms-max-item-count", "1"}, "d e", `"6"`},
		{"a transaction is never parted", `"5"`, []string{"x-ms-max-item-count", "1"}, "d e", `"6"`},
		{"minus one is everything", "", []string{"x-ms-max-item-count", "-1"}, "c a d e", `"6"`},
		{"after everything", `"7"`, nil, "", ""},
		{"after what only deletions followed", `"6"`, nil, "", ""},
		{"beyond the end", `"999"`, nil, "", ""},
		{"from now", "*", nil, "", ""},
		{"beside a continuation a start time says nothing", `"2"`, since(later, gmt), "c a d e", `"6"`},
		{"nor does it beside now", "*", since(later, gmt), "", ""},
		{"a date that is not in GMT form is ignored", "", since(later, time.RFC3339), "c a d e", `"6"`},
		{"one logical partition", "", []string{"x-ms-documentdb-partitionkey", pk("a")}, "a", `"4"`},
		{"a part of the key space that holds all", "", []string{"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", "", "x-ms-end-epk", "FF"}, "c a d e", `"6"`},
		{"a part that holds nothing", "", []string{"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", "3FFFFFFF", "x-ms-end-epk", "FF"}, "", ""},
		{"the mode in lower case", "", []string{"A-IM", "incremental feed"}, "c a d e", `"6"`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r, changes := c.feed("c", "0", tc.after, tc.headers...)
			status, etag := http.StatusOK, tc.etag
			if etag == "" {
				status, etag = http.StatusNotModified, `"7"`
			}
			if ids(changes) != tc.want || r.status != status || r.header.Get("etag") != etag {
				t.Errorf("got %d %q up to %s, want %d %q up to %s", r.status, ids(changes), r.header.Get("etag"), status, tc.want, etag)
			}
			if got := r.header.Get("x-ms-session-token"); got != "0:-1#7" {
				t.Errorf("session token %s", got)
			}
			if r.status == http.StatusNotModified && len(r.body) != 0 {
				t.Errorf("304 with body %s", r.body)
			}
			if got := r.header.Get("Date"); got != clock.now().Format(http.TimeFormat) {
				t.Errorf("date %s", got)
			}
		})
	}
	_, changes := c.feed("c", "0", "")
	if changes[0].LSN != 3 || changes[1].LSN != 4 || changes[1].N != 2 || changes[3].LSN != 6 || changes[1].TS != later.Unix() {
		t.Errorf("changes %+v", changes)
	}
}

// azure-cosmos-dotnet-v3#755: with a start time the service first answers an OK with an empty
// result set, to send the continuation.
func TestAStartTimeIsAnsweredWithAnEmptyPageAndAContinuation(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, byID("c"))
	c := newClient(t, s)
	first := clock.now()
	testworld.Must(t, s.Upsert("db", "c", doc("a"))) // LSN 1
	clock.advance(time.Minute)
	second := clock.now()
	testworld.Must(t, s.Upsert("db", "c", doc("b"))) // 2
	testworld.Must(t, s.Upsert("db", "c", doc("c"))) // 3
	subRange := []string{"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", "", "x-ms-end-epk", "FF"}
	nowhere := []string{"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", "3FFFFFFF", "x-ms-end-epk", "FF"}
	cases := []struct {
		name    string
		since   time.Time
		headers []string
		etag    string
		then    string // empty: 304
	}{
		{"before the first change", first.Add(-time.Hour), nil, `"0"`, "a b c"},
		{"in the second before the first change", first.Add(-time.Second), nil, `"0"`, "a b c"},
		{"at the first change", first, nil, `"1"`, "b c"},
		{"at the last change", second, nil, `"3"`, ""},
		{"between changes", second.Add(-time.Second), nil, `"1"`, "b c"},
		{"after the last change", second.Add(time.Second), nil, `"3"`, ""},
		{"in a part of the range", second.Add(-time.Second), subRange, `"1"`, "b c"},
		{"in a part of the range that holds nothing", second.Add(-time.Second), nowhere, `"1"`, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			from := append([]string{"If-Modified-Since", tc.since.Format(http.TimeFormat)}, tc.headers...)
			r, changes := c.feed("c", "0", "", from...)
			if r.status != http.StatusOK || len(changes) != 0 || r.header.Get("etag") != tc.etag || r.header.Get("x-ms-item-count") != "0" || r.header.Get("x-ms-session-token") != "0:-1#3" {
				t.Fatalf("first got %d %v up to %s at %s", r.status, ids(changes), r.header.Get("etag"), r.header.Get("x-ms-session-token"))
			}
			// Java sends the start time together with the continuation (azure-sdk-for-java#32259).
			for _, more := range [][]string{tc.headers, from} {
				r, changes := c.feed("c", "0", tc.etag, more...)
				if ids(changes) != tc.then || (r.status == http.StatusNotModified) != (tc.then == "") {
					t.Errorf("then got %d %q, want %q", r.status, ids(changes), tc.then)
				}
			}
		})
	}
	again, _ := c.feed("c", "0", "", "If-Modified-Since", second.Format(http.TimeFormat), "A-IM", "Full-Fidelity Feed")
	c.expect(again, "400")
}

// azure-sdk-for-java#48752.
func TestAStartTimeOnAMergedRangeNeedsAClientThatKnowsOfIt(t *testing.T) {
	t.Parallel()
	clock := newClock()
	s := start(t, cosmosfake.Options{Now: clock.now}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: 2})
	c := newClient(t, s)
	perRange := map[string][]string{}
	for i := range 40 {
		id := fmt.Sprint(i)
		testworld.Must(t, s.Upsert("db", "c", doc(id)))
		for _, r := range []string{"0", "1"} {
			if _, changes := c.feed("c", r, ""); strings.Contains(" "+ids(changes)+" ", " "+id+" ") {
				perRange[r] = append(perRange[r], id)
			}
		}
	}
	// One range goes on long before the other: merged, LSNs and times are no longer in the same
	// order.
	for range 30 {
		testworld.Must(t, s.Upsert("db", "c", doc(perRange["0"][0])))
	}
	clock.advance(time.Minute)
	late := perRange["1"][0]
	testworld.Must(t, s.Upsert("db", "c", doc(late)))
	since := clock.now().Add(-time.Second).Format(http.TimeFormat)
	merged, err := s.Merge("db", "c", "0", "1")
	testworld.Must(t, err)
	r, _ := c.feed("c", merged, "", "If-Modified-Since", since)
	if c.expect(r, "400"); !strings.Contains(string(r.body), "StartTime/IfModifiedSince is not currently supported with merged partitions.") {
		t.Errorf("body %s", r.body)
	}
	knows := []string{"If-Modified-Since", since, "x-ms-cosmos-sdk-supportedcapabilities", "3"}
	r, changes := c.feed("c", merged, "", knows...)
	c.expect(r, "200")
	if len(changes) != 0 {
		t.Errorf("first got %s", ids(changes))
	}
	at := r.header.Get("etag")
	if _, changes = c.feed("c", merged, at, knows...); ids(changes) != late {
		t.Errorf("with the start time got %s, want %s only", ids(changes), late)
	}
	if _, changes = c.feed("c", merged, at); len(changes) < 2 {
		t.Errorf("without it got %s: older changes have higher LSNs here", ids(changes))
	}
	children, err := s.Split("db", "c", merged)
	testworld.Must(t, err)
	r, _ = c.feed("c", children[0], "", "If-Modified-Since", since)
	c.expect(r, "400")
}

func TestEmptyPagesMayHideMore(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{VersionRetention: time.Hour}, byID("c"))
	c := newClient(t, s)
	for i := range 5 {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i))))
	}
	testworld.Must(t, s.Delete("db", "c", "0", "0")) // LSN 6
	for _, mode := range []string{"Incremental feed", "Full-Fidelity Feed"} {
		s.Control(cosmosfake.Times(3, cosmosfake.ReadChangeFeed, cosmosfake.Answer{EmptyPage: true}))
		at, answers := `"2"`, ""
		for range 5 {
			r := c.do("GET", "dbs/db/colls/c/docs", headers{"A-IM", mode, "x-ms-cosmos-changefeed-wire-format-version", "2021-09-15", "If-None-Match", at}, nil)
			answers += fmt.Sprintf("%d with %s, ", r.status, r.header.Get("x-ms-item-count"))
			at = r.header.Get("etag")
		}
		items := map[string]int{"Incremental feed": 3, "Full-Fidelity Feed": 4}[mode]
		if want := fmt.Sprintf("200 with 0, 200 with 0, 200 with 0, 200 with %d, 304 with 0, ", items); answers != want {
			t.Errorf("%s: got %s, want %s", mode, answers, want)
		}
	}
	s.Control(cosmosfake.Once(cosmosfake.ReadChangeFeed, cosmosfake.Answer{EmptyPage: true}))
	r, _ := c.feed("c", "0", `"6"`)
	c.expect(r, "304")
}

func TestAFeedReadIsChargedByWhatItBrings(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("small")))
	testworld.Must(t, s.Upsert("db", "c", doc("large", "text", strings.Repeat("x", 10<<10))))
	for after, want := range map[string]string{`"2"`: "1", `"1"`: "12", "": "13"} {
		if r, _ := c.feed("c", "0", after); r.header.Get("x-ms-request-charge") != want {
			t.Errorf("after %s: charge %s, want %s", after, r.header.Get("x-ms-request-charge"), want)
		}
	}
}

func TestDocumentsOfTwoMegabytesComeInPagesOfFour(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	const documents, size = 7, 2<<20 - 400 // with what the service adds, 2 MB
	for i := range documents {
		testworld.Must(t, s.Upsert("db", "c", doc(fmt.Sprint(i), "text", strings.Repeat("x", size-100))))
	}
	at, seen, pages := "", 0, 0
	for {
		r, changes := c.feed("c", "0", at, "x-ms-max-item-count", "-1")
		if r.status == http.StatusNotModified {
			break
		}
		if seen += len(changes); len(r.body) > 4<<20+1000 {
			t.Errorf("a page of %d bytes", len(r.body))
		}
		pages++
		at = r.header.Get("etag")
	}
	if seen != documents || pages != 4 {
		t.Errorf("%d documents on %d pages", seen, pages)
	}
	body := fmt.Sprintf(`{"id":"by a client","text":%q}`, strings.Repeat("x", size))
	c.expect(c.do("POST", "dbs/db/colls/c/docs", headers{"x-ms-documentdb-partitionkey", pk("by a client")}, body), "201")
}

func TestFeedRequestsThatCannotBeServed(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: 2})
	c := newClient(t, s)
	cases := []struct {
		name, rangeID, after string
		headers              []string
		want                 string
	}{
		{"a range that never was", "9", "", nil, "410/1002"},
		{"a range in the form of an EPK lease", "-FF", "", nil, "410/1002"},
		{"no range where there are two", "", "", nil, "410/1002"},
		{"a part of the key space that two ranges share", "", "", []string{"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", "10", "x-ms-end-epk", "30"}, "410/1002"},
		{"a part of one range, without its id", "", "", []string{"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", "20", "x-ms-end-epk", "30"}, "304"},
		{"the container's RID before the range", "abc=,1", "", nil, "304"},
		{"a continuation that is no LSN", "0", `"eyJ"`, nil, "400"},
		{"an unknown mode", "0", "", []string{"A-IM", "Everything"}, "400"},
		{"a session ahead of the range", "0", "", []string{"x-ms-session-token", "0:-1#5"}, "404/1002"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if r, _ := c.feed("c", tc.rangeID, tc.after, tc.headers...); r.code() != tc.want {
				t.Errorf("got %s, want %s: %s", r.code(), tc.want, r.body)
			}
		})
	}
}

func TestTheWrappedFormatOfTheFeed(t *testing.T) {
	t.Parallel()
	s := start(t, cosmosfake.Options{}, byID("c"))
	c := newClient(t, s)
	testworld.Must(t, s.Upsert("db", "c", doc("a")))
	testworld.Must(t, s.Upsert("db", "c", doc("b")))
	testworld.Must(t, s.Upsert("db", "c", doc("b")))
	r := c.do("GET", "dbs/db/colls/c/docs", headers{"A-IM", "Incremental Feed", "x-ms-cosmos-changefeed-wire-format-version", "2021-09-15"}, nil)
	var page struct{ Documents []item }
	c.decode(c.expect(r, "200"), &page)
	if got := fmt.Sprint(page.Documents); got != "[{a create 1} {b replace 3}]" {
		t.Errorf("got %s", got)
	}
}

// Compares with a plain list of what was written: random writers, splits, merges, and readers that
// follow the ranges as the SDKs do. A reader sees every document's last version, and never an older
// one after it.
func TestNothingIsLostOrRepeatedThroughSplitsAndMerges(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := start(t, cosmosfake.Options{}, cosmosfake.ContainerSpec{ID: "c", PartitionKey: []string{"/id"}, Partitions: 2})
	c := newClient(t, s)
	pending := map[string]int{} // last version of each document the reader has not seen
	positions := []part{{"", "FF", ""}}
	for step := range 3000 {
		switch n := random.IntN(100); {
		case n < 60:
			id := fmt.Sprint("d", random.IntN(400))
			testworld.Must(t, s.Upsert("db", "c", doc(id, "n", step)))
			pending[id] = step
		case n < 65:
			id := fmt.Sprint("d", random.IntN(400))
			if s.Delete("db", "c", id, id) == nil {
				delete(pending, id)
			}
		case n < 66:
			ranges := c.ranges("c")
			r := ranges[random.IntN(len(ranges))]
			if len(ranges) < 12 {
				if _, err := s.Split("db", "c", r.ID); err != nil {
					t.Fatal(err)
				}
			}
		case n < 67:
			ranges := c.ranges("c")
			if at := random.IntN(len(ranges)); at > 0 {
				if _, err := s.Merge("db", "c", ranges[at].ID, ranges[at-1].ID); err != nil {
					t.Fatal(err)
				}
			}
		default:
			at := random.IntN(len(positions))
			positions = c.follow(positions, at, pending)
		}
	}
	for quiet := 0; quiet < 2; quiet++ {
		before := len(pending)
		for at := 0; at < len(positions); at++ {
			positions = c.follow(positions, at, pending)
		}
		if len(pending) < before {
			quiet = 0
		}
	}
	if len(pending) > 0 {
		t.Fatalf("never seen: %v", pending)
	}
}

// part is where a reader stands in a part of the key space.
type part struct{ low, high, after string }

type keyRange struct {
	ID      string   `json:"id"`
	Min     string   `json:"minInclusive"`
	Max     string   `json:"maxExclusive"`
	Parents []string `json:"parents"`
	Status  string   `json:"status"`
}

func (c *client) ranges(coll string, h ...string) []keyRange {
	c.t.Helper()
	r := c.expect(c.do("GET", "dbs/db/colls/"+coll+"/pkranges", append(headers{"x-ms-cosmos-sdk-supportedcapabilities", "1"}, h...), nil), "200")
	var page struct{ PartitionKeyRanges []keyRange }
	c.decode(r, &page)
	return page.PartitionKeyRanges
}

// follow reads one page at a position, which it first divides where several ranges share it.
func (c *client) follow(positions []part, at int, pending map[string]int) []part {
	c.t.Helper()
	p := positions[at]
	var owners []keyRange
	for _, r := range c.ranges("c") {
		if r.Min < p.high && p.low < r.Max {
			owners = append(owners, r)
		}
	}
	if len(owners) > 1 {
		var parts []part
		for _, r := range owners {
			parts = append(parts, part{max(r.Min, p.low), min(r.Max, p.high), p.after})
		}
		return slices.Replace(positions, at, at+1, parts...)
	}
	r, changes := c.feed("c", owners[0].ID, p.after, "x-ms-max-item-count", "7",
		"x-ms-read-key-type", "EffectivePartitionKeyRange", "x-ms-start-epk", p.low, "x-ms-end-epk", p.high)
	for _, change := range changes {
		want, ok := pending[change.ID]
		if !ok || want != change.N {
			c.t.Fatalf("saw version %d of %s, want %d (%v)", change.N, change.ID, want, ok)
		}
		delete(pending, change.ID)
	}
	positions[at].after = r.header.Get("etag")
	return positions
}
