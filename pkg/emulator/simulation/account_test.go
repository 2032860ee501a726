package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
)

const (
	containerRID = "q0oIALS6YvQ="
	offerRID     = "aB1c"
	accountKey   = "c2ltdWxhdGVk"
	lastKey      = 255  // of the effective partition keys, which are one byte here
	found        = 400  // RU/s of a container before anything was provisioned
	splits       = 1007 // the substatus of a 410: the range is being split
)

// account is a monitored container of an account of Cosmos DB and one of leases, as far as the estimator and
// the throughput see them. Most accounts have one. Where one has several, the first is the account's own for
// what no container is named in.
type account struct {
	host    string
	name    string // the host; of a neighbour of the first container its own
	in      cosmos.Container
	leased  cosmos.Container
	regions int
	dear    bool // a page of the feed with a change costs more than a question for the newest LSN
	ranges  []*keyRange
	leases  map[string]*lease // by id
	markers map[string]bool   // ids of the documents that say that all leases were created
	changed time.Time         // when a lease came or went last
	ru      int
	etag    int       // of the offer
	moved   time.Time // when its container, or a lease, changed last
	bad     int       // the last tick in which no partition of it answered, or it waited for another one; 0 = there was none
}

// keyRange is a partition key range. LSNs are consecutive: each is a transaction of one change.
type keyRange struct {
	id       string
	min, max int
	lsn      int64
	changes  []change // oldest first
	parents  []string
	gone     bool
	derived  bool // of a split or merge: LSNs of its changes have gaps
}

type change struct {
	lsn, written int64
	key          int
	merged       bool // of before a merge: a change of the other range may have the same LSN
}

// lease is a lease document as the .NET SDK writes it: by range id or, of version 1, by bounds.
type lease struct {
	id, token, owner string
	version          int
	min, max         int
	position         int64 // -1 = none
	renewed          time.Time
}

func bound(key int) string {
	switch key {
	case 0:
		return ""
	case lastKey:
		return "FF"
	default:
		return fmt.Sprintf("%02X", key)
	}
}

func (l *lease) document() string {
	continuation, renewed := "null", "null"
	if l.position >= 0 {
		continuation = fmt.Sprintf(`"\"%d\""`, l.position)
	}
	if !l.renewed.IsZero() {
		renewed = strconv.Quote(l.renewed.UTC().Format(time.RFC3339Nano))
	}
	bounds := fmt.Sprintf(`{"Range":{"min":%q,"max":%q}}`, bound(l.min), bound(l.max))
	return fmt.Sprintf(`{"id":%q,"version":%d,"LeaseToken":%q,"FeedRange":%s,"Owner":%q,"ContinuationToken":%s,"timestamp":%s,"Mode":"Incremental Feed"}`,
		l.id, l.version, l.token, bounds, l.owner, continuation, renewed)
}

func (a *account) find(id string) *keyRange {
	for _, r := range a.ranges {
		if r.id == id {
			return r
		}
	}
	return nil
}

// pending returns the changes behind a position within bounds.
func (r *keyRange) pending(position int64, low, high int) (n int, first *change) {
	for i := range r.changes {
		if c := &r.changes[i]; c.lsn > position && c.key >= low && c.key < high {
			if n++; first == nil {
				first = c
			}
		}
	}
	return n, first
}

// pendsMerged reports whether a change of before a merge is behind a position: LSNs count too few then.
func (r *keyRange) pendsMerged(position int64) bool {
	return slices.ContainsFunc(r.changes, func(c change) bool { return c.merged && c.lsn > position })
}

// of returns the ranges that hold the keys of a lease now, and whether that is the one it names.
func (a *account) of(l *lease) (ranges []*keyRange, own bool) {
	if r := a.find(l.token); l.version == 0 && r != nil && !r.gone {
		return []*keyRange{r}, true
	}
	for _, r := range a.ranges {
		if !r.gone && r.min < l.max && l.min < r.max {
			ranges = append(ranges, r)
		}
	}
	return ranges, false
}

// truth is what is pending for a lease: the number of changes, which is the lag of a range that was never
// split or merged, and the lag by the definition of docs/lag.md; of several ranges the greatest.
func (a *account) truth(l *lease) (changes int, lag int64) {
	ranges, _ := a.of(l)
	for _, r := range ranges {
		if n, first := r.pending(l.position, l.min, l.max); first != nil {
			changes, lag = max(changes, n), max(lag, r.lsn-first.lsn+1)
		}
	}
	return changes, lag
}

// feed is a position in a range of an account, or in a part of it.
type feed struct {
	a         *account
	id        string
	position  int64
	low, high int
}

// feedOf returns what a request reads.
func (a *account) feedOf(r *http.Request) feed {
	f := feed{a: a, id: r.Header.Get("X-Ms-Documentdb-Partitionkeyrangeid"), position: -1}
	if k := a.find(f.id); k != nil {
		f.low, f.high = k.min, k.max
	}
	if r.Header.Get("X-Ms-Read-Key-Type") != "" {
		f.low, f.high = key(r.Header.Get("X-Ms-Start-Epk")), key(r.Header.Get("X-Ms-End-Epk"))
	}
	if lsn, ok := changefeed.ContinuationLSN(r.Header.Get("If-None-Match")); ok {
		f.position = lsn
	}
	return f
}

// most is the greatest lag that a lease may have whose ranges are several: that of the greatest that a
// process has heard from in this tick, or 1 (docs/lag.md, Splits and merges).
func (p *process) most(a *account, l *lease) int64 {
	most := int64(1)
	ranges, _ := a.of(l)
	for _, r := range ranges {
		if _, first := r.pending(l.position, l.min, l.max); p.heard[a.name+" "+r.id] && first != nil {
			most = max(most, r.lsn-first.lsn+1)
		}
	}
	return most
}

// errGone is what a process gets that has crashed: nothing it does any more has an effect.
var errGone = gone{}

type gone struct{}

func (gone) Error() string { return "the process has ended" }
func (gone) NonRetriable() {}

// wire is the way of one process to one account: the transport of its pipeline.
type wire struct {
	w *world
	p *process
	a *account

	of string // what it is used for, so that requests of two uses are not taken for each other
}

// answer is what the service says.
type answer struct {
	status, substatus int
	headers           map[string]string
	body              string
}

// Do answers a request as the service does, or as what is in between does not.
func (c wire) Do(r *http.Request) (*http.Response, error) {
	w, ctx := c.w, r.Context()
	c.a = w.asked(c.a, r.URL.Path)
	h := r.Header
	op := strings.Join([]string{c.of, r.URL.Host, r.Method, r.URL.Path, h.Get("X-Ms-Documentdb-Partitionkeyrangeid"), h.Get("X-Ms-Start-Epk"), h.Get("If-None-Match"), h.Get("X-Ms-Continuation")}, " ")
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c.p.inFlight(c.a.host, 1)
	defer c.p.inFlight(c.a.host, -1)
	attempt, err := c.p.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := c.p.arrive(op); err != nil {
		return nil, err
	}
	out, err := c.fault(ctx, r, op, attempt)
	if err != nil {
		return nil, err
	}
	what := "as asked"
	if out != nil && out.substatus == splits {
		c.p.heardFrom(c.a, r, splits) // that a range is being split is an answer
	}
	if out == nil {
		whole := c.a.serve(c.p, r, body)
		out = &whole
		switch feedOrQuery := out.status == http.StatusOK && strings.HasSuffix(r.URL.Path, "/docs"); {
		case feedOrQuery && w.happens("cut body", op, attempt):
			out.body, what = out.body[:len(out.body)/2], "its body cut"
		case feedOrQuery && w.happens("empty body", op, attempt):
			out.body, what = "", "without its body"
		default:
			c.p.heardFrom(c.a, r, out.substatus)
		}
	}
	w.tell("%s %s: %d/%d %s", c.p.name, op, out.status, out.substatus, what)
	if err := c.p.depart(); err != nil {
		return nil, err
	}
	response := &http.Response{StatusCode: out.status, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(out.body)), ContentLength: int64(len(out.body))}
	for name, value := range out.headers {
		response.Header.Set(name, value)
	}
	response.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	response.Header.Set("X-Ms-Request-Charge", "2.5")
	if c.a.dear && out.body != "" && r.Method == http.MethodGet {
		response.Header.Set("X-Ms-Request-Charge", "6")
	}
	if out.substatus != 0 {
		response.Header.Set("X-Ms-Substatus", strconv.Itoa(out.substatus))
	}
	return response, nil
}

// fault returns an answer, or an error, in place of what was asked for; neither where all is well.
func (c wire) fault(ctx context.Context, r *http.Request, op string, attempt int) (*answer, error) {
	w, region := c.w, r.URL.Host
	refused := func(what string) error {
		w.tell("%s %s: %s", c.p.name, op, what)
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	hang := func() error {
		w.tell("%s %s: no answer", c.p.name, op)
		return w.hang(ctx, c.p, op, attempt)
	}
	switch {
	case w.lasts("outage", region, 4):
		return nil, refused("the region is out")
	case w.lasts("silence", region, 3):
		return nil, hang()
	case w.lasts("forbidden", c.a.host, 3):
		return &answer{status: 403, body: `{"code":"Forbidden","message":"Request originated from an address that the firewall does not allow."}`}, nil
	case w.isBad(c.a) && strings.HasSuffix(r.URL.Path, "/docs") && r.Method == http.MethodGet:
		switch w.dice.upTo(3, "bad", c.a.name, w.tick/badTicks) {
		case 0:
			return nil, hang()
		case 1:
			return &answer{status: 429, substatus: 3200, headers: map[string]string{"X-Ms-Retry-After-Ms": "3000"}}, nil
		}
		return &answer{status: 503}, nil
	case w.happens("refused connection", op, attempt):
		return nil, refused("refused")
	case w.happens("hang", op, attempt):
		return nil, hang()
	case w.happens("throttle", op, attempt):
		return &answer{status: 429, substatus: 3200, headers: map[string]string{"X-Ms-Retry-After-Ms": strconv.Itoa(5 + w.dice.upTo(900, "retry", op, attempt))}}, nil
	case w.happens("unavailable", op, attempt):
		return &answer{status: 503}, nil
	case strings.HasSuffix(r.URL.Path, "/docs") && r.Method == http.MethodGet && w.happens("gone", op, attempt):
		return &answer{status: 410, substatus: 1000}, nil
	case strings.HasSuffix(r.URL.Path, "/docs") && r.Method == http.MethodGet && w.happens("completing split", op, attempt):
		return &answer{status: 410, substatus: splits}, nil
	}
	return nil, nil
}

// serve does what a request asks for.
func (a *account) serve(p *process, r *http.Request, body []byte) answer {
	switch path := r.URL.Path; {
	case path == "" || path == "/":
		locations := make([]string, a.regions)
		for i := range locations {
			locations[i] = fmt.Sprintf(`{"name":"Region %d","databaseAccountEndpoint":"%s"}`, i, a.endpoint(i))
		}
		return answer{status: 200, body: fmt.Sprintf(`{"readableLocations":[%s],"writableLocations":[%s]}`, strings.Join(locations, ","), locations[0])}
	case strings.HasSuffix(path, "/pkranges"):
		return a.serveRanges(r)
	case strings.HasSuffix(path, "/docs") && r.Method == http.MethodPost:
		return a.serveQuery(r, body, p.w.dice)
	case strings.HasSuffix(path, "/docs"):
		return a.serveFeed(r)
	case path == "/offers":
		return answer{status: 200, body: `{"Offers":[` + a.offer() + `],"_count":1}`}
	case strings.HasPrefix(path, "/offers/"):
		return a.serveOffer(p, r, body)
	default:
		return answer{status: 200, body: `{"id":"orders","_rid":"` + containerRID + `","partitionKey":{"paths":["/id"]}}`}
	}
}

func (a *account) endpoint(region int) string {
	if region == 0 {
		return "https://" + a.host + ":443"
	}
	return fmt.Sprintf("https://region-%d.%s:443", region, a.host)
}

func (a *account) serveRanges(r *http.Request) answer {
	if r.Header.Get("If-None-Match") != "" {
		return answer{status: 304, headers: map[string]string{"Etag": `"1"`}}
	}
	var ranges []string
	for _, k := range a.ranges {
		if k.gone {
			continue
		}
		parents := "[]"
		if len(k.parents) > 0 {
			parents = `["` + strings.Join(k.parents, `","`) + `"]`
		}
		ranges = append(ranges, fmt.Sprintf(`{"id":%q,"minInclusive":%q,"maxExclusive":%q,"parents":%s}`, k.id, bound(k.min), bound(k.max), parents))
	}
	return answer{status: 200, headers: map[string]string{"Etag": `"1"`}, body: fmt.Sprintf(`{"_rid":%q,"PartitionKeyRanges":[%s],"_count":%d}`, containerRID, strings.Join(ranges, ","), len(ranges))}
}

// serveQuery answers a query of leases, in pages of two or all at once.
func (a *account) serveQuery(r *http.Request, body []byte, d dice) answer {
	var query struct {
		Parameters []struct{ Value string } `json:"parameters"`
	}
	if json.Unmarshal(body, &query) != nil {
		return answer{status: 400}
	}
	all := make(map[string]string, len(a.leases))
	for id, l := range a.leases {
		all[id] = l.document()
	}
	for id := range a.markers {
		all[id] = fmt.Sprintf(`{"id":%q}`, id)
	}
	var documents []string
	for _, id := range sortedKeys(all) {
		any := len(query.Parameters) == 0
		for _, p := range query.Parameters {
			any = any || strings.HasPrefix(id, p.Value)
		}
		if any {
			documents = append(documents, all[id])
		}
	}
	out := answer{status: 200, headers: map[string]string{}}
	if d.roll("pages", a.name) < 0.5 {
		from, _ := strconv.Atoi(r.Header.Get("X-Ms-Continuation"))
		from = min(from, len(documents))
		if from+2 < len(documents) {
			out.headers["X-Ms-Continuation"] = strconv.Itoa(from + 2)
		}
		documents = documents[from:min(from+2, len(documents))]
	}
	out.body = fmt.Sprintf(`{"_rid":"x","Documents":[%s],"_count":%d}`, strings.Join(documents, ","), len(documents))
	return out
}

// serveFeed answers with the oldest change behind a position.
func (a *account) serveFeed(r *http.Request) answer {
	k := a.find(r.Header.Get("X-Ms-Documentdb-Partitionkeyrangeid"))
	if k == nil || k.gone {
		return answer{status: 410, substatus: 1002}
	}
	headers := map[string]string{
		"X-Ms-Session-Token": fmt.Sprintf("%s:-1#%d", k.id, k.lsn), "Etag": fmt.Sprintf(`"%d"`, k.lsn), "X-Ms-Content-Path": containerRID,
	}
	low, high := 0, lastKey
	if r.Header.Get("X-Ms-Read-Key-Type") != "" {
		low, high = key(r.Header.Get("X-Ms-Start-Epk")), key(r.Header.Get("X-Ms-End-Epk"))
	}
	after := int64(0)
	switch from := r.Header.Get("If-None-Match"); from {
	case "*":
		return answer{status: 304, headers: headers}
	case "":
	default:
		after, _ = changefeed.ContinuationLSN(from)
	}
	_, first := k.pending(after, low, high)
	if first == nil {
		return answer{status: 304, headers: headers}
	}
	headers["Etag"] = fmt.Sprintf(`"%d"`, first.lsn)
	return answer{status: 200, headers: headers, body: fmt.Sprintf(`{"_rid":%q,"Documents":[{"id":"x","_lsn":%d,"_ts":%d}],"_count":1}`, containerRID, first.lsn, first.written)}
}

func key(bound string) int {
	if bound == "" {
		return 0
	}
	n, _ := strconv.ParseInt(bound, 16, 32)
	return int(n)
}

func (a *account) offer() string {
	return fmt.Sprintf(`{"_rid":%q,"_self":"offers/aB1c/","_etag":"\"%d\"","id":"aB1c","offerResourceId":%q,"content":{"offerThroughput":%d}}`, offerRID, a.etag, containerRID, a.ru)
}

// serveOffer reads the throughput, or replaces it where nobody else has since it was read.
func (a *account) serveOffer(p *process, r *http.Request, body []byte) answer {
	if r.Method == http.MethodPut {
		var offer struct {
			Content struct {
				Throughput int `json:"offerThroughput"`
			} `json:"content"`
		}
		if json.Unmarshal(body, &offer) != nil || offer.Content.Throughput < found {
			return answer{status: 400, body: `{"code":"BadRequest","message":"valid throughput values"}`}
		}
		if r.Header.Get("If-Match") != fmt.Sprintf(`"%d"`, a.etag) {
			return answer{status: 412}
		}
		p.w.provisioned(a, offer.Content.Throughput)
		a.ru, a.etag = offer.Content.Throughput, a.etag+1
	}
	return answer{status: 200, headers: map[string]string{"X-Ms-Cosmos-Min-Throughput": strconv.Itoa(found)}, body: a.offer()}
}

// write adds a change to a range.
func (a *account) write(r *keyRange, at time.Time, key int) {
	r.lsn++
	r.changes = append(r.changes, change{lsn: r.lsn, written: at.Unix(), key: key})
	a.moved = time.Now()
}

// forget drops changes that every processor has done.
func (a *account) forget() {
	for _, r := range a.ranges {
		done := r.lsn
		for _, l := range a.leases {
			if l.min < r.max && r.min < l.max || l.token == r.id {
				done = min(done, l.position)
			}
		}
		if len(a.leases) == 0 {
			done = -1
		}
		// Some of what is done stays, so that a position that goes backwards finds it.
		r.changes = slices.DeleteFunc(r.changes, func(c change) bool { return c.lsn <= done-20 })
	}
}
